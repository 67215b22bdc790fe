// A conversation that a client has open: what stands in it, and what is on its way.

import { Fold } from "../fold.js";

export class Conversation {
  constructor(id) {
    this.id = id;
    this.fold = new Fold({ conversation: id });
    /** Sends that are not in the log yet: `{frame, error}` by id. */
    this.sends = new Map();
    /** Everything that was there when it was opened has arrived. */
    this.caughtUp = false;
    /** The newest `waiting` frame of the running turn, or null. */
    this.waiting = null;
    /** Why it can't be opened, or null. */
    this.error = null;
    /** Names of the tools that the server runs itself, as it said at the opening. */
    this.serverTools = [];
    /** Turns whose text was found to differ from the server's. */
    this.disproved = new Set();
  }

  /** Whether an answer is under way or due. */
  get busy() {
    if (this.fold.running) return true;
    for (const send of this.sends.values()) if (!send.error) return true;
    return false;
  }

  /** The turn that a send became or joined, or undefined while there is none. */
  turnOf(send) {
    const message = this.messageOf(send);
    return message && this.turnAnswering(message);
  }

  /** What a send is in the log, or undefined while it is not there. */
  messageOf(send) {
    return this.fold.messageOf(send);
  }

  turnAnswering({ turn, steers }) {
    return this.fold.turns.get(turn ?? steers);
  }

  opened(reply) {
    this.error = null;
    this.caughtUp = false;
    this.serverTools = reply.server_tools ?? [];
  }

  apply(event) {
    this.fold.apply(event);
    if (event.type === "message") this.sends.delete(event.id);
    if (event.turn !== undefined) this.waiting = null;
  }

  /** Forgets sends that the server took before its log was another: they are in that one, or lost. */
  forgetTaken(isHeld) {
    for (const [id, { error }] of this.sends) if (!error && !isHeld(id)) this.sends.delete(id);
  }

  /** Forgets what was there: all of it comes anew. */
  reset() {
    this.fold = new Fold({ conversation: this.id });
    this.caughtUp = false;
    this.waiting = null;
  }
}
