// A client of the wsserver protocol for browsers and Node: conversations over one
// WebSocket that reconnects, resumes where it was, and sends again what was not
// replied to. `session.js` has the rules, `link.js` the socket, `engine.js` runs both,
// `fold.js` makes of events what stands on a screen; this is what applications use.

import { BACKOFF_SECONDS } from "./machine/constants.js";
import { Answer, Answers } from "./runtime/answer.js";
import { call } from "./runtime/boundary.js";
import { Engine } from "./runtime/engine.js";
import { CommandError, stopError } from "./runtime/errors.js";
import { randomId } from "./runtime/ids.js";
import { SYSTEM_CLOCK } from "./runtime/link.js";
import { change } from "./runtime/settings.js";
import { ToolRunner } from "./runtime/tool_runner.js";

export { chaotic } from "./runtime/chaos.js";
export {
  ClientError, CodedError, CommandError, ConversationResetError, IncompleteAnswerError, StoppedError, TurnError,
} from "./runtime/errors.js";
export { Fold, GapError } from "./fold.js";
export { keptIn } from "./runtime/keep.js";

/** Members that are there, in the protocol's spelling. */
function given(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

function goneHere(how) {
  return { code: "conversation_not_found", message: `The conversation was ${how} here.` };
}

export class ChatClient {
  #engine;
  #tools;
  #runner;
  #windowBytes;
  #maxDelayMs;
  #keep;
  #newId;
  #handlers;
  #answers = new Answers();
  /** Settings that are compared once the history is there, by conversation. */
  #wanted = new Map();

  /**
   * Its members, with their types, are described in `client.d.ts`.
   * @param {import("./client").ClientOptions} options
   */
  constructor({
    url,
    WebSocket = globalThis.WebSocket,
    token = null,
    tools = {},
    windowBytes,
    maxDelayMs,
    keep = { load: () => [], add() {}, remove() {} },
    newId = randomId,
    random = Math.random,
    clock = SYSTEM_CLOCK,
    hidden = () => false,
    openTimeoutSeconds = 10,
    backoffSeconds = BACKOFF_SECONDS,
    client = { name: "wsserver-js", version: "0.1.0" },
    handlers = {},
  }) {
    this.#tools = tools;
    this.#windowBytes = windowBytes;
    this.#maxDelayMs = maxDelayMs;
    this.#keep = keep;
    this.#newId = newId;
    this.#handlers = handlers;
    this.#runner = new ToolRunner(tools, {
      answer: (conversation, call, result) => this.#engine.toolResult(conversation, call, result),
      progress: (conversation, call) => this.toolProgress(conversation, call),
    });
    this.#engine = new Engine(
      { url, WebSocket, token, newId, random, clock, hidden, openTimeoutSeconds, backoffSeconds, client },
      this.#events(),
    );
    for (const frame of keep.load()) this.#send(frame);
  }

  /** The conversations that are open, by id. */
  get conversations() {
    return this.#engine.conversations;
  }

  /** What the server said of itself; null before the first connection. */
  get welcome() {
    return this.#engine.welcome;
  }

  /**
   * `state`: `connecting`, `online`, `waiting` (until `retryAt` on the clock) or
   * `stopped`; `code` of the last close; `error`: the last fault that belongs to no
   * command; `goaway`: what a server said that is about to stop, until the next one welcomes; `rttMs` of the
   * last ping.
   */
  get status() {
    return this.#engine.status;
  }

  /** Whether there is a connection at this moment. */
  get connected() {
    return this.status.state === "online";
  }

  /**
   * Connects, and reconnects until `stop` or a close that forbids it. After those it
   * connects anew, and what had no reply is given again under its id.
   */
  start() {
    this.#engine.link.start();
  }

  /** Leaves the server; what waits for a reply or an answer fails. */
  stop() {
    this.#engine.link.stop();
  }

  /** Cuts the socket as a bad network would; no attempt is made for at least so many milliseconds, whoever wakes it. */
  drop(offlineMs = 0) {
    this.#engine.link.drop(offlineMs);
  }

  /** Call when the page becomes visible or the network is back: a wait ends, unless `drop` or the server's `goaway` asked for it. */
  wake() {
    this.#engine.link.wake();
  }

  /** The tools of this client, as `config.tools` wants them. */
  get toolDeclarations() {
    return Object.entries(this.#tools).map(([name, { description, parameters, timeoutS }]) =>
      given({ name, description, parameters, timeout_s: timeoutS }),
    );
  }

  /**
   * Opens a conversation, which is made if the server does not know the name, unless
   * `create` is false: then it ends as one that was deleted elsewhere. Where it exists
   * already and its settings are others than `config`, it is configured anew, unless told
   * otherwise. Settings that JSON can't hold are a `TypeError`; what is changed of them later changes nothing here.
   */
  open(
    id = randomId(),
    { config, create = true, reconfigure = true, windowBytes = this.#windowBytes, maxDelayMs = this.#maxDelayMs, view, include } = {},
  ) {
    const after = create ? undefined : 0;
    const more = { window_bytes: windowBytes, max_delay_ms: maxDelayMs, config, view, include, after };
    const opened = this.#engine.open(id, { handles: Object.keys(this.#tools), ...given(more) });
    if (config && reconfigure) this.#wanted.set(id, this.#engine.cursor(id).wanted.config);
    return opened;
  }

  /**
   * Says something; it arrives once, whatever happens to the connection. A conversation that
   * is not open is opened as by `open(conversation)`. What JSON can't hold is a `TypeError`.
   * With the policy `interrupt` the turn that runs keeps what had arrived here, or what
   * `seenSeq` says.
   */
  send(conversation, content, { policy, seenSeq, onDisconnect, metadata } = {}) {
    const seen = seenSeq ?? (policy === "interrupt" ? this.cursor(conversation)?.last : undefined);
    const more = { policy, seen_seq: seen, on_disconnect: onDisconnect, metadata };
    return this.#send({ type: "send", conversation, content, ...given(more) });
  }

  /** Says something and waits for the whole answer. */
  ask(conversation, content, options) {
    return this.send(conversation, content, options).answer();
  }

  /** Sends once more, under the same id, what was refused. */
  sendAgain(conversation, id) {
    return this.#send(this.conversations.get(conversation).sends.get(id).frame);
  }

  /** Forgets a send that was refused. */
  discard(conversation, id) {
    this.#engine.update(conversation, (each) => each.sends.delete(id));
  }

  /**
   * Stops a turn, the one that runs where none is named, or takes a send back that has
   * not begun. What stays is what had arrived here, or what `seenSeq` or `keep` say.
   */
  interrupt(conversation, { turn, send, seenSeq, keep } = {}) {
    const isSend = send !== undefined;
    const which = isSend ? { send } : { turn: turn ?? this.conversations.get(conversation)?.fold.running?.seq };
    const seen = seenSeq ?? (isSend ? undefined : this.cursor(conversation)?.last);
    return this.#reply({ type: "interrupt", conversation, ...given({ ...which, seen_seq: seen, keep }) });
  }

  /** Changes settings for the turns that start from here on. */
  configure(conversation, config) {
    return this.#reply({ type: "configure", conversation, config });
  }

  /**
   * Makes a new conversation of this one up to the end of the turn with that number, or
   * of all of it; gives its id.
   */
  fork(conversation, through = this.cursor(conversation)?.last, options = {}) {
    const fork = { type: "fork", conversation, through, ...given({ new: options.new }) };
    const made = this.#reply(fork).then((reply) => reply.conversation);
    made.catch(() => {}); // who wants to know awaits it
    return made;
  }

  /** Leaves a conversation; a running turn goes on. */
  close(conversation) {
    this.#left(conversation, goneHere("closed"));
    return this.#reply({ type: "close", conversation });
  }

  /** Removes a conversation from the server. */
  delete(conversation) {
    this.#deleted(conversation, goneHere("deleted"));
    return this.#reply({ type: "delete", conversation });
  }

  /** Gives new credentials, to this connection and those that follow. */
  refresh(token) {
    return this.#reply({ type: "refresh", token });
  }

  /** Says that a tool still runs, which extends its deadline. */
  toolProgress(conversation, call) {
    this.#engine.toolProgress(conversation, call);
  }

  /** Where a conversation stands now: `epoch` and `last`; undefined if it is not open. */
  cursor(conversation) {
    const cursor = this.#engine.cursor(conversation);
    return cursor && { epoch: cursor.epoch, last: cursor.last };
  }

  /** Says that what arrived is on the screen, which opens the window again. */
  painted(conversation) {
    this.#engine.painted(conversation);
  }

  #events() {
    return {
      change: (conversation) => call(this.#handlers, "change", conversation),
      event: (conversation, event) => {
        this.#answers.event(conversation, event);
        call(this.#handlers, "event", conversation, event);
      },
      status: (status) => this.#statusChanged(status),
      reply: (command, reply) => this.#replied(command, reply),
      tool: (request) => this.#runner.run(request),
      toolOver: (why, which) => this.#runner.stop(why, which),
      expiring: (inMs) => this.#expiring(inMs),
      reset: (conversation, reason) => this.#answers.reset(conversation, reason),
      caughtUp: (conversation) => this.#caughtUp(conversation),
      deleted: ({ id, sends }, error) => {
        this.#deleted(id, error);
        const unsent = [...sends.values()].map(({ frame }) => frame);
        call(this.#handlers, "deleted", id, new CommandError(error), unsent);
      },
      lost: (conversation, error) => this.#answers.fail(new CommandError(error), conversation),
    };
  }

  #reply(members) {
    return this.#engine.command(members).replied;
  }

  #send(members) {
    const { conversation } = members;
    if (!this.conversations.has(conversation)) this.open(conversation);
    else if (this.#engine.cursor(conversation)?.refused) this.#engine.open(conversation);
    const id = members.id ?? this.#newId();
    const frame = { ...members, id };
    const answer = new Answer(this.conversations.get(conversation), id, (options) => this.interrupt(conversation, options));
    this.#answers.add(answer);
    this.#engine.command(frame);
    if (this.#engine.holds(id)) {
      call(this.#keep, "add", frame);
      this.#showSend(frame, null);
    }
    return answer;
  }

  #statusChanged(status) {
    if (status.state === "stopped") {
      const error = stopError(status.code, status.error);
      this.#answers.fail(error);
      this.#engine.fail(error);
    }
    call(this.#handlers, "status", status);
  }

  #caughtUp(conversation) {
    this.#answers.caughtUp(conversation);
    const wanted = this.#wanted.get(conversation);
    this.#wanted.delete(conversation);
    const members = wanted && change(this.conversations.get(conversation).fold.config, wanted);
    if (members) this.configure(conversation, members);
  }

  #deleted(conversation, error) {
    this.#runner.stop("The conversation was deleted.", { conversation });
    this.#left(conversation, error);
  }

  #left(conversation, error) {
    this.#wanted.delete(conversation);
    this.#answers.fail(new CommandError(error), conversation);
  }

  #replied(command, reply) {
    if (command.type === "send") this.#sendReplied(command, reply);
    call(this.#handlers, "reply", command, reply);
  }

  #showSend(frame, error) {
    this.#engine.update(frame.conversation, ({ sends }) => {
      const send = sends.get(frame.id) ?? { frame };
      send.error = error;
      sends.set(frame.id, send);
    });
  }

  #sendReplied(frame, reply) {
    call(this.#keep, "remove", frame.id);
    if (!reply.ok) this.#showSend(frame, reply.error);
    this.#answers.replied(frame.id, reply);
  }

  #expiring(inMs) {
    call(this.#handlers, "expiring", inMs);
    this.#engine.renew();
  }
}
