// Commands that were not replied to: sent again on every new connection, under their
// ids. What came too fast for the server (`rate_limited`) goes out again after the wait
// that it asked for: one at a time, each once the one before it was taken, so that a
// long queue is not refused once more. Interrupts go before the rest.
// Sister of `protocol/client_outbox.py`.

export class Outbox {
  #held = new Map();
  #late = new Set();
  #lateInterrupts = new Set();
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
    this.#lateInterrupts.delete(id);
  }

  /** A command came too fast; `due` has nothing until `paused` is called. */
  tooFast(id) {
    this.#late.add(id);
    if (this.#held.get(id)?.type === "interrupt") this.#lateInterrupts.add(id);
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
    this.#tried = this.#nextLate();
    return this.#held.get(this.#tried);
  }

  /** Forgets what came too fast: everything goes out anew. */
  newConnection() {
    this.#late.clear();
    this.#lateInterrupts.clear();
    this.#tried = null;
    this.#pausing = false;
  }

  #nextLate() {
    for (const id of this.#lateInterrupts) return id;
    for (const id of this.#held.keys()) if (this.#late.has(id)) return id;
    return null;
  }
}
