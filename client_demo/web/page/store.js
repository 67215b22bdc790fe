// What the page remembers: over visits the names of conversations and how things
// look (local storage, shared by tabs); over a reload of this tab drafts, sends that
// were not replied to, and the access token (session storage).

import { keptIn } from "../runtime/keep.js";
import { browserStorage } from "./page_storage.js";

const LIST = "wsserver.conversations";
const LOOK = "wsserver.look";
const DRAFTS = "wsserver.drafts";
const ACTIVE = "wsserver.active";
const TOKEN = "wsserver.token";

const lasting = browserStorage("localStorage");
const ofTab = browserStorage("sessionStorage");

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value) => typeof value === "string";

/** What is kept; what is none of ours is as good as nothing. */
function read(storage, key, isOurs, otherwise) {
  try {
    const value = JSON.parse(storage.getItem(key));
    return isOurs(value) ? value : otherwise;
  } catch {
    return otherwise;
  }
}

function write(storage, key, value) {
  storage.setItem(key, JSON.stringify(value));
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
  return read(lasting, LIST, Array.isArray, []).filter((entry) => isText(entry?.id));
}

/** Reads the list anew before changing it: another tab may have. */
export function changeListed(change) {
  write(lasting, LIST, change(listed()).toSorted((a, b) => b.at - a.at));
}

/** Runs when another tab changed the list. */
export function onListed(run) {
  addEventListener("storage", (event) => {
    if (event.key === LIST) run();
  });
}

/** `theme`, `numbers`, `model`. */
export function look() {
  return read(lasting, LOOK, isObject, {});
}

export function changeLook(change) {
  write(lasting, LOOK, { ...look(), ...change });
}

/** Where `ChatClient` keeps its sends. */
export const keptSends = keptIn(ofTab);

function drafts() {
  return read(ofTab, DRAFTS, isObject, {});
}

export function draft(conversation) {
  return drafts()[conversation] ?? "";
}

export function saveDraft(conversation, text) {
  const { [conversation]: _, ...others } = drafts();
  write(ofTab, DRAFTS, text === "" ? others : { ...others, [conversation]: text });
}

export function activeId() {
  return read(ofTab, ACTIVE, isText, null);
}

export function saveActiveId(id) {
  write(ofTab, ACTIVE, id);
}

export function token() {
  return read(ofTab, TOKEN, isText, null);
}

export function saveToken(value) {
  write(ofTab, TOKEN, value || null);
}
