// A conversation that a client has open: its cursor and what fits after it. Not its
// content, and not the connection, which it outlives.

export class Subscription {
  constructor(conversation) {
    this.conversation = conversation;
    /** Further members of `open`. */
    this.wanted = {};
    this.epoch = null;
    /** The last number that was taken. */
    this.last = 0;
    /** The open whose verdict counts; events are void until it came. */
    this.wireId = null;
    this.attached = false;
    /** The server did not open it, and will not: only the application asks again. */
    this.refused = false;
    this.misses = 0;
    this.stuckAt = null;
    this.unackedBytes = 0;
  }

  /** An ack is due after so many bytes: well before a window of so many is full. */
  get ackEveryBytes() {
    return (this.wanted.window_bytes ?? Infinity) / 4;
  }

  /** Whether the server is asked for what it had, and not to make a conversation. */
  get resumes() {
    return this.epoch !== null || this.wanted.after !== undefined;
  }

  openFrame(id) {
    this.wireId = id;
    this.attached = false;
    this.stuckAt = null;
    this.unackedBytes = 0;
    const frame = { type: "open", id, conversation: this.conversation, ...this.wanted };
    return this.epoch === null ? frame : { ...frame, epoch: this.epoch, after: this.last };
  }

  /** Takes the verdict; says why what was there is void, or null where it goes on. */
  attach(reply) {
    this.attached = true;
    const known = this.epoch;
    this.epoch = reply.epoch ?? known ?? "";
    if (known !== null && reply.outcome !== "reset" && known === this.epoch) return null;
    this.last = (reply.oldest ?? 1) - 1;
    return known === null ? null : (reply.reason ?? "epoch_changed");
  }

  /** Moves the cursor over an event that fits; says `fits`, `old` or `gap`. */
  place(event) {
    if (event.seq <= this.last) return "old";
    const first = event.first ?? event.seq;
    // Of a skip that is known in part the rest is simply taken.
    const fits = event.type === "skip" ? first <= this.last + 1 : first === this.last + 1;
    if (!fits) return "gap";
    this.last = event.seq;
    this.misses = 0;
    return "fits";
  }

  /**
   * Heartbeats overtake events and verdicts: only the second one that finds the
   * cursor in the same place below the head shows that something was lost.
   */
  stuckBelow(head) {
    if (this.last >= head || this.unackedBytes >= this.ackEveryBytes) {
      this.stuckAt = null;
      return false;
    }
    const stuck = this.stuckAt === this.last;
    this.stuckAt = this.last;
    return stuck;
  }
}
