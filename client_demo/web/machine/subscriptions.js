// The conversations that a client has open: opened again on each new connection and
// after a hole, with what their verdicts say. Sister of `protocol/client/subscriptions.py`.

import { MOST_MISSES } from "./constants.js";
import { Subscription } from "./subscription.js";

/** For people; the server's own words are for who writes a client. */
const DELETED = "The server no longer has this conversation: it was deleted, or the server's store was.";

export class Subscriptions {
  #byConversation = new Map();
  #isOnline = false;
  /** What the server opened on this connection. */
  #heldByServer = new Set();
  #output;
  #newId;
  #isDeleting;
  #over;
  #newEpoch;

  /**
   * @param {import("./output.js").Output} output
   * @param {object} from
   * @param {() => string} from.newId makes ids that no one else makes
   * @param {(conversation: string) => boolean} from.isDeleting whether a `delete` of it waits for its reply
   * @param {(conversation: string, error: object) => void} from.over somebody else deleted it
   * @param {(conversation: string) => void} from.newEpoch its log is another than before
   */
  constructor(output, { newId, isDeleting, over, newEpoch }) {
    this.#output = output;
    this.#newId = newId;
    this.#isDeleting = isDeleting;
    this.#over = over;
    this.#newEpoch = newEpoch;
  }

  get(conversation) {
    return this.#byConversation.get(conversation);
  }

  has(conversation) {
    return this.#byConversation.has(conversation);
  }

  /** Keeps a conversation open from now on, with further members of `open` or those it had. */
  want(conversation, wanted) {
    let subscription = this.get(conversation);
    if (!subscription) {
      subscription = new Subscription(conversation);
      this.#byConversation.set(conversation, subscription);
    }
    subscription.wanted = wanted ?? subscription.wanted;
    subscription.refused = false;
    this.#attach(subscription);
  }

  /** Opens once more, for all that the server has. */
  wantAnew(conversation) {
    const { wanted } = this.get(conversation);
    this.drop(conversation);
    this.want(conversation, { ...wanted, after: 0 });
  }

  /** @returns {boolean} whether it was there */
  drop(conversation) {
    return this.#byConversation.delete(conversation);
  }

  /** A connection is there. */
  online() {
    this.#isOnline = true;
    for (const subscription of this.#byConversation.values()) this.#attach(subscription);
  }

  offline() {
    this.#isOnline = false;
    this.#heldByServer.clear();
    for (const subscription of this.#byConversation.values()) {
      subscription.attached = false;
      subscription.misses = 0;
    }
  }

  /** The `delete` of a conversation that is open once more was replied to. */
  deleted(conversation) {
    const subscription = this.get(conversation);
    if (subscription && !subscription.attached) this.#attach(subscription);
  }

  /** Moves a cursor over an event; says whether the event is to be taken. */
  take(event, bytes) {
    const subscription = this.get(event.conversation);
    if (!subscription?.attached) return false;
    subscription.unackedBytes += bytes;
    const placing = subscription.place(event);
    if (placing === "gap") this.#reattach(subscription);
    return placing === "fits";
  }

  caughtUp(frame) {
    const subscription = this.get(frame.conversation);
    if (!subscription?.attached) return;
    if (subscription.last < frame.seq) this.#reattach(subscription);
    else this.#output.notice("caught_up", { frame });
  }

  /** Compares the cursors with the heads that a heartbeat tells. */
  compare(heads) {
    for (const [conversation, head] of Object.entries(heads)) {
      const subscription = this.get(conversation);
      if (subscription?.stuckBelow(head)) this.#reattach(subscription);
    }
  }

  /** Somebody else deleted a conversation: nothing of it is asked for or said any more. */
  gone({ gone: conversation, code, message }) {
    // One that had no verdict yet is the next of that name.
    if (this.get(conversation)?.epoch === null) return;
    this.#over(conversation, { code, message, retryable: false });
  }

  /** Takes the reply to an `open`; what is a reply to nothing is nothing. */
  verdict(reply) {
    if (reply.ok && reply.conversation) this.#heldByServer.add(reply.conversation);
    for (const subscription of this.#byConversation.values()) {
      if (subscription.wireId === reply.re && !subscription.attached) {
        if (reply.ok) this.#opened(subscription, reply);
        else this.#refused(subscription, reply.error);
        return;
      }
    }
  }

  /** Opens a conversation; behind a `delete` of it only when that was replied to. */
  #attach(subscription) {
    const { conversation } = subscription;
    if (subscription.refused || !this.#isOnline || this.#isDeleting(conversation)) return;
    const frame = subscription.openFrame(this.#newId());
    const error = this.#output.tooLarge(frame);
    if (error) this.#lost(subscription, error);
    else this.#output.write(frame);
  }

  #reattach(subscription) {
    subscription.misses += 1;
    if (subscription.misses > MOST_MISSES) this.#output.notice("drop", { why: "gap" });
    else this.#attach(subscription);
  }

  #opened(subscription, reply) {
    const { conversation } = subscription;
    const reason = subscription.attach(reply);
    if (reason === "epoch_changed") this.#newEpoch(conversation);
    if (reason) this.#output.notice("reset", { conversation, reason });
    this.#output.notice("opened", { conversation, reply });
  }

  #refused(subscription, error) {
    const { conversation } = subscription;
    if (error.code === "draining") return; // the next connection opens it
    if (error.code === "conversation_not_found" && subscription.resumes) this.#over(conversation, { ...error, message: DELETED });
    else this.#lost(subscription, error);
  }

  #lost(subscription, error) {
    const { conversation } = subscription;
    subscription.refused = !error.retryable;
    if (subscription.refused) this.#leave(conversation);
    this.#output.notice("lost", { conversation, error });
  }

  /**
   * Closes what the server still has open, as it was before a refused open. Nothing of it
   * is taken any more; a call is to be asked of somebody else.
   */
  #leave(conversation) {
    if (!this.#heldByServer.delete(conversation)) return;
    this.#output.write({ type: "close", id: this.#newId(), conversation });
  }
}
