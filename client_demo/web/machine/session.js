// The client's half of the protocol as a machine without I/O. Frames come in;
// frames to send and notices for the application come out. It outlives its
// connections: on each new one it opens again what was open, from the last number
// it had, and sends again what was not replied to. `client.js` drives it over a
// WebSocket; `fold.js` makes a screen of its events. Sister of `protocol/client/machine.py`.

import { Calls } from "./calls.js";
import { ACK_COST, PROTOCOL, USUAL_WAIT_SECONDS } from "./constants.js";
import { readFrame } from "./frames.js";
import { Outbox } from "./outbox.js";
import { Output } from "./output.js";
import { Subscriptions } from "./subscriptions.js";

const NO_REASON = { code: "internal", message: "No reason was given.", retryable: false };

/** A `delete` that finds nothing has what it asked for: its reply was lost, or another was faster. */
function meant({ type }, reply) {
  if (type !== "delete" || reply.error?.code !== "conversation_not_found") return reply;
  return { type: "reply", re: reply.re, ok: true, outcome: "deleted" };
}

/**
 * After each input, send `framesToSend()` and handle `notices()`; call `advance` when
 * `nextTimer()` is there. A notice is `{kind, …}`: `welcome`, `event`, `reset`,
 * `caught_up`, `waiting`, `opened`, `reply`, `lost`, `deleted`, `tool`, `fault`, `goaway`,
 * `auth_expiring`, `pong`, `drop` (the driver must drop the connection). Times are
 * milliseconds on one clock.
 */
export class Session {
  #subscriptions;
  #outbox = new Outbox();
  #output = new Output();
  /** Ids of `refresh` commands that are older than the `hello` of this connection. */
  #overtaken = [];
  #calls = new Calls();
  #newId;
  #hello;

  /**
   * @param {object} options
   * @param {() => string} options.newId makes ids that no one else makes
   * @param {{name: string, version?: string}} [options.client]
   */
  constructor({ newId, client }) {
    this.#newId = newId;
    this.#hello = { type: "hello", protocol: PROTOCOL, ...(client && { client }) };
    this.#subscriptions = new Subscriptions(this.#output, {
      newId,
      isDeleting: (conversation) => this.#outbox.deletes(conversation),
      over: (conversation, error) => this.#over(conversation, error),
      newEpoch: (conversation) => this.#calls.forget(conversation),
    });
    /** @type {"offline" | "greeting" | "online"} */
    this.phase = "offline";
  }

  framesToSend() {
    return this.#output.takeFrames();
  }

  notices() {
    return this.#output.takeNotices();
  }

  /** Commands that were not replied to, in order. */
  get held() {
    return this.#outbox.held;
  }

  /** Whether a command has no reply yet. */
  holds(id) {
    return this.#outbox.get(id) !== undefined;
  }

  /** Where a conversation stands, or undefined when it is not open. */
  subscription(conversation) {
    return this.#subscriptions.get(conversation);
  }

  /** @param {string | null} token the credential, where there is one */
  connected(token = null) {
    this.phase = "greeting";
    this.#overtaken = this.held.filter(({ type }) => type === "refresh");
    this.#output.write(token === null ? this.#hello : { ...this.#hello, token });
  }

  disconnected() {
    this.phase = "offline";
    this.#output.takeFrames();
    for (const held of this.held) if (held.type === "close") this.#done(held, "closed");
    this.#subscriptions.offline();
  }

  /**
   * Keeps a conversation open from now on, also over reconnects.
   * @param {object} given further members of `open`: `config`, `handles`, …; what is
   *   changed of them later changes nothing here
   * @throws {TypeError} JSON can't hold them
   */
  open(conversation, given) {
    this.#subscriptions.want(conversation, given && JSON.parse(JSON.stringify(given)));
  }

  /** Opens once more, for all that the server has. */
  openAnew(conversation) {
    this.#subscriptions.wantAnew(conversation);
  }

  /**
   * Gives a command, sent now or as soon as it can be, and again until it is
   * replied to. An `id` that is given (a send from before a reload) stays. What is
   * changed of the members later changes nothing here.
   * @returns {string} its id
   * @throws {TypeError} JSON can't hold the members
   */
  command(members) {
    const frame = JSON.parse(JSON.stringify({ ...members, id: members.id ?? this.#newId() }));
    // What was made anew under the name has another epoch, and stays.
    const epoch = this.#subscriptions.get(frame.conversation)?.epoch;
    if (frame.type === "delete" && epoch) frame.epoch = epoch;
    this.#outbox.hold(frame);
    if (frame.type === "close" || frame.type === "delete") this.#subscriptions.drop(frame.conversation);
    if (this.phase === "online") this.#sendDue();
    else if (frame.type === "close") this.#done(frame, "closed");
    return frame.id;
  }

  /** When `advance` must be called at the latest; null while nothing waits for time. */
  nextTimer() {
    return this.phase === "online" ? this.#outbox.nextTimer(this.#output.pace.roomAt) : null;
  }

  /** Time has passed; may be called at any time. */
  advance(now) {
    this.#outbox.advance(now);
    this.#output.pace.advance(now);
    this.#sendDue();
  }

  /** Says that everything up to the cursor is on the screen; acks when it is time. */
  painted(conversation) {
    const subscription = this.#subscriptions.get(conversation);
    if (!subscription?.attached || subscription.unackedBytes < subscription.ackEveryBytes) return;
    subscription.unackedBytes = 0;
    this.#say({ type: "ack", conversation, seq: subscription.last }, ACK_COST);
  }

  /**
   * Answers a `tool` notice; goes out again until the server has it.
   * @returns {string | null} the command's id; null where the result is wanted no more
   */
  toolResult(conversation, call, result) {
    if (!this.#calls.has(conversation, call)) return null;
    const id = this.command({ type: "tool_result", conversation, call, ...result });
    this.#calls.answer(conversation, call, id);
    return id;
  }

  /** Says that a tool still runs. */
  toolProgress(conversation, call) {
    this.#say({ type: "tool_progress", conversation, call });
  }

  ping(t) {
    this.#say({ type: "ping", t });
  }

  /** Takes a frame of the server. */
  receive(text, now) {
    this.#outbox.advance(now);
    this.#output.pace.advance(now);
    const read = readFrame(text);
    if (read === null) return;
    if (read.fault) this.#output.notice("fault", { error: read.fault });
    else if (read.isEvent) this.#event(read.frame, text.length);
    else this.#control(read.frame, now);
  }

  #say(frame, cost = 1) {
    if (this.phase === "online") this.#output.write(frame, cost);
  }

  #transmit(frame) {
    const error = this.#output.tooLarge(frame);
    if (error) this.#settle(frame, { type: "reply", re: frame.id, ok: false, error });
    else this.#say(frame);
  }

  #sendAgain(id) {
    const frame = this.#outbox.get(id);
    if (frame) this.#transmit(frame);
  }

  /** Sends the commands that may go now. */
  #sendDue() {
    while (this.phase === "online") {
      const frame = this.#outbox.due(this.#output.pace.hasRoom);
      if (!frame) return;
      // What was opened again meanwhile would end with its close.
      if (frame.type === "close" && this.#subscriptions.has(frame.conversation)) this.#done(frame, "closed");
      else this.#transmit(frame);
    }
  }

  #event(event, bytes) {
    if (!this.#subscriptions.take(event, bytes)) return;
    if (event.type === "done") this.#calls.forget(event.conversation, event.turn);
    this.#output.notice("event", { event });
  }

  #control(frame, now) {
    switch (frame.type) {
      case "welcome":
        this.#welcome(frame, now);
        break;
      case "reply":
        this.#reply(frame, now);
        break;
      case "ping":
        this.#subscriptions.compare(frame.heads);
        break;
      case "tool_request":
        this.#toolRequest(frame);
        break;
      case "error":
        if ((frame.gone ?? null) === null) this.#output.notice("fault", { error: frame });
        else this.#subscriptions.gone(frame);
        break;
      case "caught_up":
        this.#subscriptions.caughtUp(frame);
        break;
      case "pong":
      case "waiting":
      case "goaway":
      case "auth_expiring":
        this.#output.notice(frame.type, { frame });
        break;
      default:
        throw new Error(`There is no control frame ${frame.type}.`);
    }
  }

  /** Says what the server would have said to a command that need not be sent. */
  #done(command, outcome) {
    this.#settle(command, { type: "reply", re: command.id, ok: true, outcome });
  }

  #welcome(frame, now) {
    if (this.phase !== "greeting") return; // it was said before
    this.phase = "online";
    this.#output.frameBytes = frame.limits.frame_bytes ?? Infinity;
    this.#output.pace.announced(frame.limits, now);
    this.#output.notice("welcome", { frame });
    for (const refresh of this.#overtaken) this.#done(refresh, "refreshed");
    this.#subscriptions.online();
    this.#outbox.newConnection();
    this.#sendDue();
  }

  #reply(said, now) {
    const reply = said.ok ? said : { ...said, error: said.error ?? NO_REASON };
    const command = this.#outbox.get(reply.re);
    if (!command) {
      this.#subscriptions.verdict(reply);
    } else if (reply.error?.code === "draining") {
      // Stays held: the next connection sends it again under the same id.
    } else if (reply.error?.code === "rate_limited") {
      this.#outbox.tooFast(reply.re, now + (reply.error.retry_after_ms ?? USUAL_WAIT_SECONDS * 1_000));
    } else {
      this.#settle(command, reply);
      this.#sendDue();
    }
  }

  /** Somebody else deleted a conversation. */
  #over(conversation, error) {
    if (this.#subscriptions.drop(conversation)) this.#output.notice("deleted", { conversation, error });
    this.#calls.forget(conversation);
    for (const held of this.#outbox.into(conversation)) {
      this.#settle(held, { type: "reply", re: held.id, ok: false, error });
    }
    this.#sendDue();
  }

  #settle(command, reply) {
    this.#outbox.settle(command.id);
    const said = meant(command, reply);
    this.#output.notice("reply", { command, reply: said });
    if (command.type !== "delete") return;
    if (said.ok) this.#calls.forget(command.conversation); // else its calls go on
    this.#subscriptions.deleted(command.conversation);
  }

  #toolRequest(request) {
    // One that was let go, or opened anew, meanwhile: who has it is asked again.
    if (!this.#subscriptions.get(request.conversation)?.attached) return;
    if (this.#calls.ask(request)) this.#output.notice("tool", { request });
    else this.#sendAgain(this.#calls.answered(request));
  }
}
