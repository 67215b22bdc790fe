// A client of the wsserver protocol for browsers and Node: conversations over one
// WebSocket that reconnects, resumes where it was, and sends again what was not
// replied to. `session.js` has the rules, `link.js` the socket, `fold.js` makes of
// events what stands on a screen; here they become conversations, sends and tools.

import { Fold } from "./fold.js";
import { Link, SYSTEM_CLOCK, Timers } from "./link.js";
import { Session } from "./session.js";

const REOPEN_AFTER_MS = 2_000;

/** A conversation that a client has open. */
export class Conversation {
  constructor(id) {
    this.id = id;
    this.fold = new Fold();
    /** Sends that are not in the log yet: `{frame, error}` by id. */
    this.sends = new Map();
    /** Everything that was there when it was opened has arrived. */
    this.caughtUp = false;
    /** The newest `waiting` frame of the running turn, or null. */
    this.waiting = null;
    /** Why it can't be opened, or null. */
    this.error = null;
    /** Turns whose text was found to differ from the server's. */
    this.disproved = new Set();
  }

  /** Whether an answer is under way or due. */
  get busy() {
    if (this.fold.running) return true;
    for (const send of this.sends.values()) if (!send.error) return true;
    return false;
  }
}

/**
 * @typedef {object} Tool
 * @property {string} [description] for the model
 * @property {object} [parameters] the JSON Schema of the arguments
 * @property {(args: any, request: object) => unknown} run may be async; what it
 *   throws is told to the model
 */

export class ChatClient {
  #token;
  #tools;
  #windowBytes;
  #maxDelayMs;
  #keep;
  #clock;
  #handlers;
  #session;
  #link;
  #timers;
  #waiters = new Map();

  /**
   * @param {object} options
   * @param {string} options.url `ws:` or `wss:`, ends in `/v1/chat`
   * @param {typeof WebSocket} [options.WebSocket]
   * @param {() => string | null} [options.token] asked for at each connection
   * @param {Record<string, Tool>} [options.tools] run on the server's request
   * @param {number} [options.windowBytes] the server holds a conversation's events
   *   back while so many bytes were not reported by `painted`
   * @param {number} [options.maxDelayMs] the server may gather text for so long, and
   *   sends whole characters
   * @param {{load(): object[], save(frames: object[]): void}} [options.keep] where
   *   sends are kept over a reload until they are replied to
   * @param {() => string} [options.newId]
   * @param {() => number} [options.random]
   * @param {object} [options.clock] as `SYSTEM_CLOCK`
   * @param {() => boolean} [options.hidden] whether the page is hidden
   * @param {object} [options.handlers] `change(conversation)`, `status(status)`,
   *   `reply(command, reply)`
   */
  constructor({
    url,
    WebSocket = globalThis.WebSocket,
    token = () => null,
    tools = {},
    windowBytes,
    maxDelayMs,
    keep = { load: () => [], save() {} },
    newId = () => crypto.randomUUID(),
    random = Math.random,
    clock = SYSTEM_CLOCK,
    hidden = () => false,
    client = { name: "wsserver-js", version: "0.1.0" },
    handlers = {},
  }) {
    this.#token = token;
    this.#tools = tools;
    this.#windowBytes = windowBytes;
    this.#maxDelayMs = maxDelayMs;
    this.#keep = keep;
    this.#clock = clock;
    this.#handlers = handlers;
    this.#session = new Session({ newId, client });
    this.#timers = new Timers(clock);
    this.#link = new Link({ url, WebSocket, random, clock, hidden, on: this.#linkEvents() });
    /** @type {Map<string, Conversation>} */
    this.conversations = new Map();
    /** What the server said of itself; null before the first connection. */
    this.welcome = null;
    /**
     * `state`: `connecting`, `online`, `waiting` (until `retryAt` on the clock) or
     * `stopped`; `code` of the last close; `error`: the last fault that belongs to no
     * command; `rttMs` of the last ping.
     */
    this.status = { state: "stopped", code: null, retryAt: null, error: null, rttMs: null };
    for (const frame of keep.load()) this.#restore(frame);
  }

  /** Connects, and reconnects until `stop` or a close that forbids it. */
  start() {
    this.#link.start();
  }

  stop() {
    this.#link.stop();
  }

  /** Cuts the socket as a bad network would, for at least so many milliseconds. */
  drop(offlineMs = 0) {
    this.#link.drop(offlineMs);
  }

  /** Call when the page becomes visible or the network is back. */
  wake() {
    this.#link.wake();
  }

  /** The tools of this client, as `config.tools` wants them. */
  get toolDeclarations() {
    return Object.entries(this.#tools).map(([name, { description, parameters }]) => ({
      name,
      description,
      parameters,
    }));
  }

  /**
   * Opens a conversation, which is made if the server does not know the name.
   * @param {object} [config] its settings if it is made now
   */
  open(id, config) {
    const conversation = this.conversations.get(id) ?? new Conversation(id);
    this.conversations.set(id, conversation);
    this.#session.open(id, {
      ...(config && { config }),
      handles: Object.keys(this.#tools),
      ...(this.#windowBytes && { window_bytes: this.#windowBytes }),
      ...(this.#maxDelayMs !== undefined && { max_delay_ms: this.#maxDelayMs }),
    });
    this.#flush();
    return conversation;
  }

  /**
   * Says something; it arrives once, whatever happens to the connection.
   * @param {{policy?: string, seenSeq?: number}} [options]
   * @returns {{id: string, replied: Promise<object>}}
   */
  send(conversation, content, { policy, seenSeq } = {}) {
    return this.#send({
      type: "send",
      conversation,
      content,
      ...(policy && { policy }),
      ...(seenSeq !== undefined && { seen_seq: seenSeq }),
    });
  }

  /** Sends once more, under the same id, what was refused. */
  sendAgain(conversation, id) {
    return this.#send(this.conversations.get(conversation).sends.get(id).frame);
  }

  /** Forgets a send that was refused. */
  discard(conversation, id) {
    this.#update(conversation, (each) => each.sends.delete(id));
  }

  /**
   * Stops a turn, or takes a send back that has not begun.
   * @param {{turn?: number, send?: string, seenSeq?: number}} what
   * @returns {Promise<object>} the reply
   */
  interrupt(conversation, { turn, send, seenSeq } = {}) {
    return this.#command({
      type: "interrupt",
      conversation,
      ...(turn !== undefined && { turn }),
      ...(send !== undefined && { send }),
      ...(seenSeq !== undefined && { seen_seq: seenSeq, keep: "seen" }),
    }).replied;
  }

  /** Changes settings for the turns that start from here on. */
  configure(conversation, config) {
    return this.#command({ type: "configure", conversation, config }).replied;
  }

  /** Leaves a conversation; a running turn goes on. */
  close(conversation) {
    this.conversations.delete(conversation);
    return this.#command({ type: "close", conversation }).replied;
  }

  /** Removes a conversation from the server. */
  delete(conversation) {
    this.conversations.delete(conversation);
    return this.#command({ type: "delete", conversation }).replied;
  }

  /** Where a conversation stands: `epoch` and `last`; undefined if it is not open. */
  cursor(conversation) {
    return this.#session.subscription(conversation);
  }

  /** Says that what arrived is on the screen, which opens the window again. */
  painted(conversation) {
    this.#session.painted(conversation);
    this.#flush();
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
        this.#update(notice.conversation, (each) => {
          each.error = null;
          each.caughtUp = false;
        });
        break;
      case "caught_up":
        this.#update(notice.frame.conversation, (each) => (each.caughtUp = true));
        break;
      case "reset":
        this.#update(notice.conversation, (each) => (each.fold = new Fold()));
        break;
      case "lost":
        this.#cannotOpen(notice);
        break;
      case "waiting":
        this.#update(notice.frame.conversation, (each) => (each.waiting = notice.frame));
        break;
      case "reply":
        this.#replied(notice);
        break;
      case "retry":
        this.#timers.set(`again ${notice.id}`, notice.afterMs, () => {
          this.#session.again(notice.id);
          this.#flush();
        });
        break;
      case "tool":
        this.#runTool(notice.request);
        break;
      case "fault":
        this.#setStatus({ error: notice.error });
        break;
      case "goaway":
        this.#link.goingAway(notice.frame.reconnect_after_ms);
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
    this.#update(event.conversation, (each) => {
      each.fold.apply(event);
      if (event.type === "message") each.sends.delete(event.id);
      if (event.turn !== undefined) each.waiting = null;
      if (each.fold.turns.get(event.turn)?.proven === false) this.#disproved(each, event.turn);
    });
  }

  /** Our copy is not the server's: takes all of it anew, once for each turn. */
  #disproved(conversation, turn) {
    if (conversation.disproved.has(turn)) return;
    conversation.disproved.add(turn);
    conversation.fold = new Fold();
    this.#session.openAnew(conversation.id);
  }

  #cannotOpen({ conversation, error }) {
    this.#update(conversation, (each) => (each.error = error));
    if (error.code === "conversation_not_found" && this.cursor(conversation).epoch !== null) {
      // The server no longer has it: begin anew under the same name.
      this.#update(conversation, (each) => (each.fold = new Fold()));
      this.#session.openAnew(conversation);
    } else if (error.retryable) {
      this.#timers.set(`open ${conversation}`, error.retry_after_ms ?? REOPEN_AFTER_MS, () => {
        if (this.cursor(conversation)) this.#session.open(conversation);
        this.#flush();
      });
    }
  }

  #replied({ command, reply }) {
    if (command.type === "send") this.#saveSends();
    this.#update(command.conversation, (each) => {
      const send = each.sends.get(command.id);
      if (send && !reply.ok) send.error = reply.error;
    });
    this.#waiters.get(command.id)?.(reply);
    this.#waiters.delete(command.id);
    this.#handlers.reply?.(command, reply);
  }

  async #runTool({ conversation, call, name, arguments: args, ...rest }) {
    let result;
    try {
      const output = await this.#tools[name].run(args, { conversation, call, name, ...rest });
      result = { output: output ?? null };
    } catch (fault) {
      result = { error: { message: String(fault?.message ?? fault) } };
    }
    this.#session.toolResult(conversation, call, result);
    this.#flush();
  }

  #command(members) {
    const id = this.#session.command(members);
    const replied = new Promise((resolve) => this.#waiters.set(id, resolve));
    this.#flush();
    return { id, replied };
  }

  #send(members) {
    const given = this.#command(members);
    const frame = { ...members, id: given.id };
    this.#update(frame.conversation, (each) => each.sends.set(frame.id, { frame, error: null }));
    this.#saveSends();
    return given;
  }

  #restore(frame) {
    this.#session.command(frame);
    this.open(frame.conversation).sends.set(frame.id, { frame, error: null });
  }

  #saveSends() {
    this.#keep.save(this.#session.held.filter((frame) => frame.type === "send"));
  }

  #update(id, change) {
    const conversation = this.conversations.get(id);
    if (!conversation) return;
    change(conversation);
    this.#handlers.change?.(conversation);
  }

  #setStatus(change) {
    this.status = { ...this.status, ...change };
    this.#handlers.status?.(this.status);
  }
}
