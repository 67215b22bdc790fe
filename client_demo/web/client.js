// A client of the wsserver protocol for browsers and Node: conversations over one
// WebSocket that reconnects, resumes where it was, and sends again what was not
// replied to. `session.js` has the rules, `link.js` the socket, `engine.js` runs both,
// `fold.js` makes of events what stands on a screen; this is what applications use.

import { Answer, AnswerError } from "./answer.js";
import { Engine } from "./engine.js";
import { randomId } from "./ids.js";
import { SYSTEM_CLOCK } from "./link.js";
import { ToolRunner } from "./tool_runner.js";

export { AnswerError };
export { chaotic } from "./chaos.js";
export { Fold } from "./fold.js";
export { keptIn } from "./keep.js";

/** Members that are there, in the protocol's spelling. */
function given(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

export class ChatClient {
  #engine;
  #tools;
  #runner;
  #windowBytes;
  #maxDelayMs;
  #keep;
  #handlers;
  #renew;
  #answers = new Set();

  /**
   * Its members, with their types, are described in `client.d.ts`.
   * @param {import("./client").ClientOptions} options
   */
  constructor({
    url,
    WebSocket = globalThis.WebSocket,
    token = () => null,
    renew,
    tools = {},
    windowBytes,
    maxDelayMs,
    keep = { load: () => [], save() {} },
    newId = randomId,
    random = Math.random,
    clock = SYSTEM_CLOCK,
    hidden = () => false,
    client = { name: "wsserver-js", version: "0.1.0" },
    handlers = {},
  }) {
    this.#tools = tools;
    this.#windowBytes = windowBytes;
    this.#maxDelayMs = maxDelayMs;
    this.#keep = keep;
    this.#handlers = handlers;
    this.#renew = renew;
    this.#runner = new ToolRunner(tools, {
      answer: (conversation, call, result) => this.#engine.toolResult(conversation, call, result),
      progress: (conversation, call) => this.toolProgress(conversation, call),
    });
    this.#engine = new Engine({ url, WebSocket, token, newId, random, clock, hidden, client }, this.#events());
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
   * command; `rttMs` of the last ping.
   */
  get status() {
    return this.#engine.status;
  }

  /** Connects, and reconnects until `stop` or a close that forbids it. */
  start() {
    this.#engine.link.start();
  }

  stop() {
    this.#engine.link.stop();
  }

  /** Cuts the socket as a bad network would, for at least so many milliseconds. */
  drop(offlineMs = 0) {
    this.#engine.link.drop(offlineMs);
  }

  /** Call when the page becomes visible or the network is back. */
  wake() {
    this.#engine.link.wake();
  }

  /** The tools of this client, as `config.tools` wants them. */
  get toolDeclarations() {
    return Object.entries(this.#tools).map(([name, { description, parameters, timeoutS }]) =>
      given({ name, description, parameters, timeout_s: timeoutS }),
    );
  }

  /** Opens a conversation, which is made if the server does not know the name. */
  open(id = randomId(), { config, windowBytes = this.#windowBytes, maxDelayMs = this.#maxDelayMs, view } = {}) {
    const more = { window_bytes: windowBytes, max_delay_ms: maxDelayMs, config, view };
    return this.#engine.open(id, { handles: Object.keys(this.#tools), ...given(more) });
  }

  /** Says something; it arrives once, whatever happens to the connection. */
  send(conversation, content, { policy, seenSeq, onDisconnect, metadata } = {}) {
    const more = { policy, seen_seq: seenSeq, on_disconnect: onDisconnect, metadata };
    return this.#send({ type: "send", conversation, content, ...given(more) });
  }

  /** Says something in a conversation that is open, to read what is answered. */
  ask(conversation, content, options) {
    const { id } = this.send(conversation, content, options);
    const answer = new Answer(this.conversations.get(conversation), id, (turn) => {
      const which = turn ? { turn: turn.seq, seenSeq: this.cursor(conversation)?.last } : { send: id };
      return this.interrupt(conversation, which);
    });
    this.#answers.add(answer);
    this.#look(answer);
    return answer;
  }

  /** Sends once more, under the same id, what was refused. */
  sendAgain(conversation, id) {
    return this.#send(this.conversations.get(conversation).sends.get(id).frame);
  }

  /** Forgets a send that was refused. */
  discard(conversation, id) {
    this.#engine.update(conversation, (each) => each.sends.delete(id));
  }

  /** Stops a turn, or takes a send back that has not begun. */
  interrupt(conversation, { turn, send, seenSeq, keep = seenSeq === undefined ? undefined : "seen" } = {}) {
    return this.#reply({ type: "interrupt", conversation, ...given({ turn, send, seen_seq: seenSeq, keep }) });
  }

  /** Changes settings for the turns that start from here on. */
  configure(conversation, config) {
    return this.#reply({ type: "configure", conversation, config });
  }

  /** Makes a new conversation of this one up to the end of the turn with that number. */
  fork(conversation, through, options = {}) {
    return this.#reply({ type: "fork", conversation, through, ...given({ new: options.new }) });
  }

  /** Leaves a conversation; a running turn goes on. */
  close(conversation) {
    return this.#reply({ type: "close", conversation });
  }

  /** Removes a conversation from the server. */
  delete(conversation) {
    this.#runner.stop("The conversation was deleted.", { conversation });
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

  /** Where a conversation stands: `epoch` and `last`; undefined if it is not open. */
  cursor(conversation) {
    return this.#engine.cursor(conversation);
  }

  /** Says that what arrived is on the screen, which opens the window again. */
  painted(conversation) {
    this.#engine.painted(conversation);
  }

  #events() {
    return {
      change: (conversation) => this.#changed(conversation),
      status: (status) => this.#statusChanged(status),
      reply: (command, reply) => this.#replied(command, reply),
      tool: (request) => this.#runner.run(request),
      toolOver: (why, which) => this.#runner.stop(why, which),
      expiring: (inMs) => this.#expiring(inMs),
    };
  }

  #reply(members) {
    return this.#engine.command(members).replied;
  }

  #send(members) {
    // What was kept over a reload opens its conversation; it is shown before it is sent.
    if (members.id && !this.conversations.has(members.conversation)) this.open(members.conversation);
    const sent = this.#engine.command(members);
    const frame = { ...members, id: sent.id };
    if (this.#engine.held.some(({ id }) => id === sent.id)) {
      this.#showSend(frame, null);
    }
    this.#saveSends();
    return sent;
  }

  #saveSends() {
    this.#keep.save(this.#engine.held.filter(({ type }) => type === "send"));
  }

  #changed(conversation) {
    for (const answer of this.#answers) this.#look(answer);
    this.#handlers.change?.(conversation);
  }

  #look(answer) {
    if (!answer.changed()) this.#answers.delete(answer);
  }

  #statusChanged(status) {
    if (status.state === "stopped" && this.#answers.size > 0) {
      const why = status.code === null ? "" : `: the server closed with ${status.code}`;
      const error = status.error ?? { message: `The client has stopped${why}.` };
      for (const answer of this.#answers) answer.fail(error);
      this.#answers.clear();
    }
    this.#handlers.status?.(status);
  }

  #replied(command, reply) {
    if (command.type === "send") this.#sendReplied(command, reply);
    if (command.type === "tool_result" && !reply.ok && command.output !== undefined) {
      // The call stays open until it has a result that the server takes.
      const error = { message: `The output was refused: ${reply.error.message}` };
      this.#engine.toolResult(command.conversation, command.call, { error });
    }
    this.#handlers.reply?.(command, reply);
  }

  #showSend(frame, error) {
    this.#engine.update(frame.conversation, ({ sends }) => {
      const send = sends.get(frame.id) ?? { frame };
      send.error = error;
      sends.set(frame.id, send);
    });
  }

  #sendReplied(frame, reply) {
    this.#saveSends();
    if (reply.ok) return;
    this.#showSend(frame, reply.error);
    for (const answer of this.#answers) {
      if (answer.id !== frame.id) continue;
      this.#answers.delete(answer);
      answer.fail(reply.error);
    }
  }

  async #expiring(inMs) {
    this.#handlers.expiring?.(inMs);
    const token = await this.#renew?.();
    if (token) this.refresh(token);
  }
}
