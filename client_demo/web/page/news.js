// Answers that end: which are news until they are looked at, and which are still to be told.

export class News {
  /** Conversations with an answer that was not looked at. */
  #unseen = new Set();
  /** What has its history: an answer that ends in it from then on is news. */
  #known = new WeakSet();
  /** Per conversation, the turn that was running last. */
  #running = new Map();
  /** Shown answers that ended, to be told once they are on the screen. */
  #toTell = [];

  get isAny() {
    return this.#unseen.size > 0;
  }

  has(id) {
    return this.#unseen.has(id);
  }

  /** A conversation was looked at, or is gone. */
  forget(id) {
    this.#unseen.delete(id);
  }

  /** A conversation has changed; gives the turn that ended with that, or null. */
  ended({ id, fold }) {
    const before = this.#running.get(id);
    this.#running.set(id, fold.running);
    return before?.done && before !== fold.running && this.#known.has(fold) ? before : null;
  }

  /**
   * An answer of a conversation has ended.
   * @param {{isShown: boolean, isSeen: boolean}} how it is on the screen, and somebody looks
   */
  add(id, turn, { isShown, isSeen }) {
    if (!isSeen) this.#unseen.add(id);
    if (isShown) this.#toTell.push(turn);
  }

  /** Whether a conversation has its history since this change. */
  meets({ caughtUp, fold }) {
    if (!caughtUp || this.#known.has(fold)) return false;
    this.#known.add(fold);
    return true;
  }

  takeToTell() {
    return this.#toTell.splice(0);
  }
}
