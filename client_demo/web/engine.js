// Runs the client's machine: it gives `session.js` a socket (`link.js`), timers and the
// conversations that its events are folded into, and hands replies to who waits for
// them. `client.js` is what applications see of it.

import { Backoff } from "./backoff.js";
import { Conversation } from "./conversation.js";
import { Link, Timers } from "./link.js";
import { Session } from "./session.js";

export class Engine {
  #token;
  #clock;
  #on;
  #session;
  #link;
  #timers;
  #reopening;
  #waiters = new Map();

  /**
   * @param {object} options those of `ChatClient`
   * @param {object} on `change(conversation)`, `status(status)`,
   *   `reply(command, reply)`, `tool(request)`, `toolOver(why, which)`,
   *   `expiring(inMs)`
   */
  constructor({ url, WebSocket, token, newId, random, clock, hidden, client }, on) {
    this.#token = token;
    this.#clock = clock;
    this.#on = on;
    this.#session = new Session({ newId, client });
    this.#timers = new Timers(clock);
    this.#reopening = new Backoff(random);
    this.#link = new Link({ url, WebSocket, random, clock, hidden, on: this.#linkEvents() });
    /** @type {Map<string, Conversation>} */
    this.conversations = new Map();
    this.welcome = null;
    this.status = { state: "stopped", code: null, retryAt: null, error: null, rttMs: null };
  }

  get link() {
    return this.#link;
  }

  /** Commands that were not replied to, in order. */
  get held() {
    return this.#session.held;
  }

  open(id, wanted) {
    const conversation = this.conversations.get(id) ?? new Conversation(id);
    this.conversations.set(id, conversation);
    this.#session.open(id, wanted);
    this.#flush();
    return conversation;
  }

  /** @returns {{id: string, replied: Promise<object>}} */
  command(members) {
    const ends = members.type === "close" || members.type === "delete";
    if (ends) this.conversations.delete(members.conversation);
    if (members.type === "refresh") this.#token = () => members.token;
    const id = this.#session.command(members);
    const replied = new Promise((resolve) => this.#waiters.set(id, resolve));
    this.#flush();
    return { id, replied };
  }

  cursor(conversation) {
    return this.#session.subscription(conversation);
  }

  painted(conversation) {
    this.#session.painted(conversation);
    this.#flush();
  }

  toolResult(conversation, call, result) {
    this.#session.toolResult(conversation, call, result);
    this.#flush();
  }

  toolProgress(conversation, call) {
    this.#session.toolProgress(conversation, call);
    this.#flush();
  }

  /** Changes a conversation that is open, and says so. */
  update(id, change) {
    const conversation = this.conversations.get(id);
    if (!conversation) return;
    change(conversation);
    this.#on.change(conversation);
  }

  #linkEvents() {
    return {
      opened: () => {
        this.#session.connected(this.#token());
        this.#flush();
      },
      frame: (text) => {
        this.#session.receive(text);
        this.#flush();
      },
      gone: () => {
        this.#timers.clear();
        this.#session.disconnected();
        this.#flush();
      },
      ping: (now) => {
        this.#session.ping(now);
        this.#flush();
      },
      status: (change) => this.#setStatus(change),
    };
  }

  #flush() {
    for (const notice of this.#session.notices()) this.#handle(notice);
    this.#link.send(this.#session.framesToSend());
  }

  #handle(notice) {
    switch (notice.kind) {
      case "event":
        this.#event(notice.event);
        break;
      case "welcome":
        this.welcome = notice.frame;
        this.#setStatus({ error: null, rttMs: null });
        this.#link.welcomed(notice.frame.heartbeat_ms);
        break;
      case "opened":
        this.#reopening.reset();
        this.update(notice.conversation, (each) => each.opened(notice.reply));
        break;
      case "caught_up":
        this.update(notice.frame.conversation, (each) => (each.caughtUp = true));
        break;
      case "reset":
        this.#reset(notice);
        break;
      case "lost":
        this.#cannotOpen(notice);
        break;
      case "waiting":
        this.update(notice.frame.conversation, (each) => (each.waiting = notice.frame));
        break;
      case "reply":
        this.#replied(notice);
        break;
      case "retry":
        this.#timers.set("retry", notice.afterMs, () => {
          this.#session.retry();
          this.#flush();
        });
        break;
      case "tool":
        this.#on.tool(notice.request);
        break;
      case "fault":
        this.#setStatus({ error: notice.error });
        break;
      case "goaway":
        this.#link.goingAway(notice.frame.reconnect_after_ms);
        break;
      case "auth_expiring":
        this.#on.expiring(notice.frame.in_ms);
        break;
      case "pong":
        this.#setStatus({ rttMs: this.#clock.now() - notice.frame.t });
        break;
      case "drop":
        this.#link.drop();
        break;
      default:
    }
  }

  #event(event) {
    const { conversation, turn } = event;
    if (event.type === "tool_result") this.#on.toolOver("The call is settled.", event);
    if (event.type === "done") this.#on.toolOver("The turn has ended.", { conversation, turn });
    this.update(conversation, (each) => {
      each.apply(event);
      if (each.fold.turns.get(turn)?.proven === false) this.#disproved(each, turn);
    });
  }

  /** Our copy is not the server's: takes all of it anew, once for each turn. */
  #disproved(conversation, turn) {
    if (conversation.disproved.has(turn)) return;
    conversation.disproved.add(turn);
    conversation.reset();
    this.#session.openAnew(conversation.id);
  }

  #reset({ conversation, reason }) {
    if (reason === "epoch_changed") this.#on.toolOver("The log began anew.", { conversation });
    this.update(conversation, (each) => each.reset());
  }

  #cannotOpen({ conversation, error }) {
    if (error.code !== "rate_limited") this.update(conversation, (each) => (each.error = error));
    if (error.code === "conversation_not_found" && this.cursor(conversation).epoch !== null) {
      // The server no longer has it: begin anew under the same name.
      this.update(conversation, (each) => each.reset());
      this.#session.openAnew(conversation);
    } else if (error.retryable) {
      this.#timers.set(`open ${conversation}`, this.#reopening.delayMs(error.retry_after_ms), () => {
        if (this.cursor(conversation)) this.#session.open(conversation);
        this.#flush();
      });
    }
  }

  #replied({ command, reply }) {
    this.#on.reply(command, reply);
    this.#waiters.get(command.id)?.(reply);
    this.#waiters.delete(command.id);
  }

  #setStatus(change) {
    this.status = { ...this.status, ...change };
    this.#on.status(this.status);
  }
}
