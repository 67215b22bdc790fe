// Runs the client's machine: it gives `session.js` a socket (`link.js`), timers and the
// conversations that its events are folded into, and hands replies to who waits for
// them. `client.js` is what applications see of it.

import { Backoff } from "./backoff.js";
import { Conversation } from "./conversation.js";
import { CommandError } from "./errors.js";
import { Link, Timers } from "./link.js";
import { Session } from "../machine/session.js";

export class Engine {
  #credentials;
  #token = null;
  /** The last attempt that asked for credentials; what an older one gets is outdated. */
  #asking = null;
  #clock;
  #on;
  #session;
  #link;
  #timers;
  #reopening;
  /** When the session is to be told of the time; null for never. */
  #armed = null;
  #waiters = new Map();

  /**
   * @param {object} options those of `ChatClient`
   * @param {object} on `change(conversation)`, `event(conversation, event)` once it was applied, `status(status)`,
   *   `reply(command, reply)`, `tool(request)`, `toolOver(why, which)`,
   *   `expiring(inMs)`, `reset(conversation, reason)`, `caughtUp(conversation)`,
   *   `lost(conversation, error)`, `deleted(conversation, error)` by somebody else
   */
  constructor({ url, WebSocket, token, newId, random, clock, hidden, openTimeoutSeconds, backoffSeconds, client }, on) {
    this.#credentials = token;
    this.#clock = clock;
    this.#on = on;
    this.#session = new Session({ newId, client });
    this.#timers = new Timers(clock);
    this.#reopening = new Backoff(random);
    this.#link = new Link({ url, WebSocket, random, clock, hidden, openTimeoutSeconds, backoffSeconds, on: this.#linkEvents() });
    /** @type {Map<string, Conversation>} */
    this.conversations = new Map();
    this.welcome = null;
    this.status = { state: "stopped", code: null, retryAt: null, error: null, goaway: null, rttMs: null };
  }

  get link() {
    return this.#link;
  }

  /** Whether a command has no reply yet. */
  holds(id) {
    return this.#session.holds(id);
  }

  open(id, wanted) {
    this.#session.open(id, wanted);
    const conversation = this.conversations.get(id) ?? new Conversation(id);
    this.conversations.set(id, conversation);
    this.#flush();
    return conversation;
  }

  /** @returns {{id: string, replied: Promise<object>}} fails where the server refused */
  command(members) {
    const ends = members.type === "close" || members.type === "delete";
    if (ends) this.conversations.delete(members.conversation);
    if (members.type === "refresh") {
      this.#token = members.token;
      if (typeof this.#credentials !== "function") this.#credentials = members.token;
    }
    const id = this.#session.command(members);
    return { id, replied: this.#reply(id) };
  }

  /** Tells all that wait for a reply that none will come. */
  fail(error) {
    const waiters = [...this.#waiters.values()];
    this.#waiters.clear();
    for (const { reject } of waiters) reject(error);
  }

  /** Asks for credentials where that is possible, and gives those that are new. */
  async renew() {
    if (typeof this.#credentials !== "function") return;
    const before = this.#token;
    try {
      const token = await this.#credentials();
      // Those of a connection that began meanwhile are newer.
      const isNews = token !== null && token !== before && this.#token === before;
      if (isNews) this.command({ type: "refresh", token });
    } catch {
      // The server ends the connection, and the next one asks again.
    }
  }

  cursor(conversation) {
    return this.#session.subscription(conversation);
  }

  painted(conversation) {
    this.#session.painted(conversation);
    this.#flush();
  }

  /** Answers a call; null where its result is wanted no more. */
  async toolResult(conversation, call, result) {
    const id = this.#session.toolResult(conversation, call, result);
    return id === null ? null : this.#reply(id);
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

  /** The reply to a command that was just given, which goes out now if it may. */
  #reply(id) {
    const replied = new Promise((resolve, reject) => this.#waiters.set(id, { resolve, reject }));
    replied.catch(() => {}); // who wants to know awaits it
    this.#flush();
    return replied;
  }

  #linkEvents() {
    return {
      dialling: () => this.#authenticate(),
      opened: () => {
        this.#session.connected(this.#token);
        this.#flush();
      },
      frame: (text) => {
        this.#session.receive(text, this.#clock.now());
        this.#flush();
      },
      gone: () => {
        this.#timers.clear();
        this.#armed = null;
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

  /** Gets what the next `hello` says; a promise where that takes time. */
  #authenticate() {
    const asking = (this.#asking = {});
    const take = (token) => {
      if (this.#asking === asking) this.#token = token;
    };
    try {
      const token = typeof this.#credentials === "function" ? this.#credentials() : this.#credentials;
      if (typeof token?.then === "function") return Promise.resolve(token).then(take).catch((fault) => this.#noToken(fault));
      take(token);
      return undefined;
    } catch (fault) {
      return this.#noToken(fault);
    }
  }

  /** The attempt has failed; another follows. */
  #noToken(fault) {
    const message = `There are no credentials: ${fault?.message ?? fault}`;
    this.#setStatus({ error: { type: "error", code: "unauthorized", message, retryable: true } });
    return Promise.reject(fault);
  }

  #flush() {
    for (const notice of this.#session.notices()) this.#handle(notice);
    this.#link.send(this.#session.framesToSend());
    this.#arm();
  }

  #arm() {
    const due = this.#session.nextTimer();
    if (due === null || due === this.#armed) return;
    this.#armed = due;
    this.#timers.set("outbox", due - this.#clock.now(), () => {
      this.#armed = null;
      this.#session.advance(this.#clock.now());
      this.#flush();
    });
  }

  #handle(notice) {
    switch (notice.kind) {
      case "event":
        this.#event(notice.event);
        break;
      case "welcome":
        this.welcome = notice.frame;
        this.#setStatus({ error: null, goaway: null, rttMs: null });
        this.#link.welcomed(notice.frame.heartbeat_ms);
        break;
      case "opened":
        this.#reopening.reset();
        this.update(notice.conversation, (each) => each.opened(notice.reply));
        break;
      case "caught_up":
        this.update(notice.frame.conversation, (each) => (each.caughtUp = true));
        this.#on.caughtUp(notice.frame.conversation);
        break;
      case "reset":
        this.#reset(notice);
        break;
      case "lost":
        this.#cannotOpen(notice);
        break;
      case "deleted":
        this.#deleted(notice);
        break;
      case "waiting":
        this.update(notice.frame.conversation, (each) => (each.waiting = notice.frame));
        break;
      case "reply":
        this.#replied(notice);
        break;
      case "tool":
        this.#on.tool(notice.request);
        break;
      case "fault":
        this.#setStatus({ error: notice.error });
        break;
      case "goaway":
        this.#link.goingAway(notice.frame.reconnect_after_ms);
        this.#setStatus({ goaway: notice.frame });
        break;
      case "auth_expiring":
        this.#on.expiring(notice.frame.in_ms);
        break;
      case "pong":
        if (typeof notice.frame.t === "number") this.#setStatus({ rttMs: this.#clock.now() - notice.frame.t });
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
      this.#on.event(each, event);
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
    this.#on.reset(conversation, reason);
    this.update(conversation, (each) => {
      each.reset();
      each.forgetTaken((send) => this.holds(send));
    });
  }

  #deleted({ conversation: id, error }) {
    const conversation = this.conversations.get(id);
    this.conversations.delete(id);
    this.#on.deleted(conversation, error);
  }

  #cannotOpen({ conversation, error }) {
    if (error.code !== "rate_limited") this.update(conversation, (each) => (each.error = error));
    if (error.retryable) {
      this.#timers.set(`open ${conversation}`, this.#reopening.delayMs(error.retry_after_ms), () => {
        if (this.cursor(conversation)) this.#session.open(conversation);
        this.#flush();
      });
    } else {
      this.#on.lost(conversation, error);
    }
  }

  #replied({ command, reply }) {
    this.#on.reply(command, reply);
    const waiter = this.#waiters.get(command.id);
    this.#waiters.delete(command.id);
    if (reply.ok) waiter?.resolve(reply);
    else waiter?.reject(new CommandError(reply.error));
  }

  #setStatus(change) {
    this.status = { ...this.status, ...change };
    this.#on.status(this.status);
  }
}
