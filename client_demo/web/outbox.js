// Commands that were not replied to: sent again on every new connection, under their
// ids. What came too fast for the server (`rate_limited`) goes out again after the wait
// that it asked for: one at a time, each once the one before it was taken, so that a
// long queue is not refused once more. Sister of `protocol/client_outbox.py`.

export class Outbox {
  #held = new Map();
  #late = new Set();
  #tried = null;
  #pausing = false;

  /** In the order they were given. */
  get held() {
    return [...this.#held.values()];
  }

  get(id) {
    return this.#held.get(id);
  }

  /**
   * Keeps a command until it is settled.
   * @returns {boolean} whether it may go out now: behind one that came too fast it
   *   waits, so that the order stays; an interrupt never does
   */
  hold(frame) {
    this.#held.set(frame.id, frame);
    if (this.#late.size === 0 || frame.type === "interrupt") return true;
    this.#late.add(frame.id);
    return false;
  }

  settle(id) {
    this.#held.delete(id);
    this.#late.delete(id);
  }

  /** A command came too fast; `due` has nothing until `paused` is called. */
  tooFast(id) {
    this.#late.add(id);
    this.#tried = null;
    this.#pausing = true;
  }

  /** The wait that the server asked for is over. */
  paused() {
    this.#pausing = false;
    this.#tried = "";
  }

  /** The next command that came too fast, if it may go out again now. */
  due() {
    if (this.#pausing || this.#tried === null || this.#late.has(this.#tried)) return undefined;
    const next = this.held.find(({ id }) => this.#late.has(id));
    this.#tried = next?.id ?? null;
    return next;
  }

  /** Forgets what came too fast: everything goes out anew. */
  newConnection() {
    this.#late.clear();
    this.#tried = null;
    this.#pausing = false;
  }
}
