// The conversations of this browser: which there are, which is shown, and their
// versions. The screen is told by `onShow`; what is in them is the client's.

import { contentText } from "../fold.js";
import { randomId } from "../runtime/ids.js";
import { link, linked } from "./address.js";
import * as store from "./store.js";
import { families, familyOf, placeOf, rootOf, slotOf, versionsAt } from "./versions.js";

const OPEN_AT_START = 12;
const TITLE_LENGTH = 48;
const GONE = "This conversation is no longer on the server.";
const DRAFTED = "A conversation is no longer on the server. What was not sent in it is the draft of a new one.";

export function shortened(text) {
  // By characters: half of one would be shown as none.
  const title = Array.from(text.trim().replaceAll(/\s+/g, " "));
  return title.length > TITLE_LENGTH ? `${title.slice(0, TITLE_LENGTH - 1).join("").trimEnd()}…` : title.join("");
}

export class Library {
  #client;
  #onShow;

  /**
   * @param {import("../client.js").ChatClient} client
   * @param {() => void} onShow another conversation is to be shown
   */
  constructor(client, onShow) {
    this.#client = client;
    this.#onShow = onShow;
    /** @type {string | null} */
    this.activeId = null;
  }

  get active() {
    return this.#client.conversations.get(this.activeId);
  }

  /** Whether nothing was said yet in the one that is shown. */
  get isFresh() {
    const { active } = this;
    return active !== undefined && active.fold.items.length === 0 && active.sends.size === 0;
  }

  /** Shows what the address names, or what was shown last; keeps the newest ones open. */
  start() {
    const list = store.listed();
    const last = store.activeId();
    // What this tab showed and is not listed was deleted in another one.
    if (linked() !== last) this.follow();
    if (this.activeId === null) {
      if (list.some(({ id }) => id === last)) this.show(last);
      else this.#showNewest();
    }
    for (const { id, there } of list.slice(0, OPEN_AT_START)) this.#client.open(id, { create: !there });
  }

  /** Those that are no version of another, newest first, each with its title. */
  roots(list) {
    const found = this.families(list);
    return list
      .filter((entry) => found.has(entry.id))
      .map(({ id, title }) => ({ id, title: title || this.#firstWords(id) }));
  }

  /** The entry of `roots` that the shown conversation is a version of. */
  activeRoot(list) {
    return rootOf(list, this.activeId);
  }

  /** Shows the conversation that the address names, which may be new to this browser. */
  follow() {
    const id = linked();
    if (id === null || id === this.activeId) return;
    if (!store.listed().some((entry) => entry.id === id)) this.#list(id);
    this.show(id);
  }

  show(id) {
    this.activeId = id;
    store.saveActiveId(id);
    link(id);
    const { model } = store.look();
    const { there } = store.listed().find((entry) => entry.id === id) ?? {};
    const options = { config: model ? { model } : undefined, create: !there, reconfigure: false };
    // One that could not be opened is asked for again.
    if (this.#client.conversations.get(id)?.error !== null) this.#client.open(id, options);
    this.#onShow();
  }

  /** Shows a conversation in the version that was shown last. */
  pick(root) {
    const { shown } = store.listed().find((entry) => entry.id === root) ?? {};
    this.show(shown ?? root);
  }

  /** Shows the next one in the list, or with -1 the one before. */
  step(by) {
    const list = store.listed();
    const roots = this.roots(list);
    const at = roots.findIndex(({ id }) => id === this.activeRoot(list)) + by;
    if (roots[at]) this.pick(roots[at].id);
  }

  /** Begins a conversation, unless the one that is shown is still empty. */
  begin() {
    if (this.isFresh) {
      this.#onShow();
      return;
    }
    const id = randomId();
    this.#list(id);
    this.show(id);
  }

  /**
   * Removes a conversation with all its versions. What the server does not delete is
   * listed again.
   * @returns {Promise<Error | null>} why it could not be, or null
   */
  async remove(root) {
    const list = store.listed();
    const family = familyOf(list, root);
    const replies = family.map((id) => {
      if (!this.#client.conversations.has(id)) this.#client.open(id);
      store.saveDraft(id, "");
      return this.#client.delete(id);
    });
    store.changeListed((now) => now.filter((entry) => !family.includes(entry.id)));
    if (family.includes(this.activeId)) this.#showNewest();
    const outcomes = await Promise.allSettled(replies);
    const stays = family.filter((_, index) => outcomes[index].status === "rejected");
    if (stays.length === 0) return null;
    store.changeListed((now) => [...now, ...list.filter((entry) => stays.includes(entry.id))]);
    return outcomes.find(({ status }) => status === "rejected").reason;
  }

  /** The server has a conversation: from here on it is there, or was deleted. */
  met(id) {
    if (!store.listed().some((entry) => entry.id === id && !entry.there)) return;
    store.changeListed((list) => list.map((entry) => (entry.id === id ? { ...entry, there: true } : entry)));
  }

  /**
   * Leaves a conversation that was deleted elsewhere, in whatever browser. What was to be
   * said in it becomes the draft of a new one.
   * @returns {string | null} what the user is to be told: it was shown, or words are elsewhere now
   */
  leave(id, unsent) {
    const words = [...unsent.map(({ content }) => contentText(content)), store.draft(id)].filter((text) => text !== "");
    store.saveDraft(id, "");
    store.changeListed((list) =>
      list.filter((entry) => entry.id !== id).map((entry) => (entry.shown === id ? { ...entry, shown: undefined } : entry)),
    );
    const wasShown = id === this.activeId;
    if (words.length > 0) this.#beginWith(words.join("\n\n"), wasShown);
    else if (wasShown) this.#showNewest();
    if (words.length > 0) return DRAFTED;
    return wasShown ? GONE : null;
  }

  /**
   * Leaves conversations that another tab has deleted.
   * @returns {string | null} as `leave`
   */
  forgetDeleted() {
    const list = store.listed();
    const isGone = (id) => !list.some((entry) => entry.id === id);
    const gone = [...this.#client.conversations.values()].filter(({ id }) => isGone(id));
    const told = gone.map(({ id, sends }) => {
      this.#client.close(id);
      return this.leave(id, [...sends.values()].map(({ frame }) => frame));
    });
    return told.find((each) => each !== null) ?? null;
  }

  /** Says something in the shown conversation. */
  send(content, options) {
    this.#client.send(this.activeId, content, options);
    this.#touch(this.activeId, contentText(content));
  }

  /** Whether a message can be replaced: nothing was under way when it was said. */
  canReplace({ seq }) {
    const { turns } = this.active.fold;
    return ![...turns.values()].some((turn) => turn.seq < seq && !(turn.done?.seq < seq));
  }

  /**
   * Makes a version in which a message is another one, or is answered anew.
   * @returns {Promise<Error | null>} why it could not be, or null
   */
  async replace(message, content) {
    const from = this.activeId;
    const slot = this.#slot(store.listed(), message);
    const id = randomId();
    try {
      await this.#client.fork(from, message.seq - 1, { new: id });
    } catch (refused) {
      return refused;
    }
    const at = Date.now();
    store.changeListed((list) => {
      const root = rootOf(list, from);
      const version = { id, title: "", at, made: at, parent: placeOf(list, from, slot), slot };
      return [...list.map((entry) => (entry.id === root ? { ...entry, shown: id } : entry)), version];
    });
    if (this.activeId === from) this.show(id);
    else this.#client.open(id);
    this.#client.send(id, content);
    this.#touch(id, contentText(content));
    return null;
  }

  /** The versions of a message of the shown conversation. */
  versions(list, message) {
    return versionsAt(list, this.activeId, this.#slot(list, message));
  }

  /** Shows another version of a message. */
  showVersion(id) {
    store.changeListed((list) => {
      const root = rootOf(list, id);
      return list.map((entry) => (entry.id === root ? { ...entry, shown: id } : entry));
    });
    this.show(id);
  }

  /** By the id of each root the ids of its versions. */
  families(list) {
    return families(list);
  }

  titleOf(list, id) {
    const root = rootOf(list, id);
    return list.find((entry) => entry.id === root)?.title || this.#firstWords(id);
  }

  #beginWith(draft, isShown) {
    const id = randomId();
    store.saveDraft(id, draft);
    this.#list(id);
    if (isShown) this.show(id);
  }

  #list(id) {
    const now = Date.now();
    store.changeListed((list) => [{ id, title: "", at: now, made: now }, ...list]);
  }

  #slot(list, { seq }) {
    return slotOf(list, this.activeId, [...this.active.fold.messages.keys()], seq);
  }

  #touch(id, text) {
    const at = Date.now();
    store.changeListed((list) => {
      const root = rootOf(list, id);
      return list.map((entry) =>
        entry.id === id || entry.id === root ? { ...entry, title: entry.title || shortened(text), at } : entry,
      );
    });
  }

  #firstWords(id) {
    const first = this.#client.conversations.get(id)?.fold.items.find((item) => item.kind === "message");
    return first ? shortened(contentText(first.content)) : "New chat";
  }

  #showNewest() {
    const [newest] = this.roots(store.listed());
    this.activeId = null;
    if (newest) this.pick(newest.id);
    else this.begin();
  }
}
