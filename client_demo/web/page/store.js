// What the page remembers: over visits the names of conversations and how things
// look (local storage, shared by tabs); over a reload of this tab drafts, sends that
// were not replied to, and the access token (session storage).

import { keptIn } from "../keep.js";

const LIST = "wsserver.conversations";
const LOOK = "wsserver.look";
const DRAFTS = "wsserver.drafts";
const ACTIVE = "wsserver.active";
const TOKEN = "wsserver.token";

function read(storage, key, otherwise) {
  try {
    return JSON.parse(storage.getItem(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function write(storage, key, value) {
  try {
    storage.setItem(key, JSON.stringify(value));
  } catch {
    // Full or forbidden: the page works all the same, it only forgets.
  }
}

/**
 * @typedef {object} Listed
 * @property {string} id
 * @property {string} title
 * @property {boolean} [there] the server had it
 * @property {number} at when something was said last
 * @property {number} [made]
 * @property {string} [parent] of a version: what it is a version of; see `versions.js`
 * @property {number} [slot] of a version: the number of the parent's message it replaces
 * @property {string} [shown] the version that was shown last
 */

/** The conversations of this browser, newest first. @returns {Listed[]} */
export function listed() {
  return read(localStorage, LIST, []);
}

/** Reads the list anew before changing it: another tab may have. */
export function changeListed(change) {
  write(localStorage, LIST, change(listed()).toSorted((a, b) => b.at - a.at));
}

/** Runs when another tab changed the list. */
export function onListed(run) {
  addEventListener("storage", (event) => {
    if (event.key === LIST) run();
  });
}

/** `theme`, `numbers`, `model`. */
export function look() {
  return read(localStorage, LOOK, {});
}

export function changeLook(change) {
  write(localStorage, LOOK, { ...look(), ...change });
}

/** Where `ChatClient` keeps its sends. */
export const keptSends = keptIn(sessionStorage);

export function draft(conversation) {
  return read(sessionStorage, DRAFTS, {})[conversation] ?? "";
}

export function saveDraft(conversation, text) {
  const { [conversation]: _, ...others } = read(sessionStorage, DRAFTS, {});
  write(sessionStorage, DRAFTS, text === "" ? others : { ...others, [conversation]: text });
}

export function activeId() {
  return read(sessionStorage, ACTIVE, null);
}

export function saveActiveId(id) {
  write(sessionStorage, ACTIVE, id);
}

export function token() {
  return read(sessionStorage, TOKEN, null);
}

export function saveToken(value) {
  write(sessionStorage, TOKEN, value || null);
}
