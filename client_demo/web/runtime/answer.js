// What one send became, to be read as it comes; and all those that somebody may read.

import { CommandError, ConversationResetError, IncompleteAnswerError, TurnError } from "./errors.js";

/** A promise that nobody has to await, with what settles it. */
function promised() {
  let settle;
  const promise = new Promise((resolve, reject) => (settle = { resolve, reject }));
  promise.catch(() => {}); // who reads in another way gets it there
  return { promise, ...settle };
}

export class Answer {
  #conversation;
  #interrupt;
  #taken = promised();
  #ended = promised();
  #reply = null;
  #message = null;
  #doubt = null;
  #part = 0;
  #piece = 0;
  #failure = null;
  #isVoid = false;
  #news = promised();

  /**
   * @param {import("./conversation.js").Conversation} conversation
   * @param {string} sendId
   * @param {(options: object) => Promise<object>} interrupt
   */
  constructor(conversation, sendId, interrupt) {
    this.#conversation = conversation;
    this.#interrupt = interrupt;
    this.sendId = sendId;
  }

  /** The conversation's id. */
  get conversation() {
    return this.#conversation.id;
  }

  /** The turn, or undefined before it begins. */
  get turn() {
    this.#message ??= this.#conversation.messageOf(this.sendId) ?? null;
    return this.#message ? this.#conversation.turnAnswering(this.#message) : undefined;
  }

  /** How it ended, or null before. */
  get done() {
    return this.turn?.done ?? null;
  }

  /** The answer as far as it has arrived and is kept. */
  get text() {
    return this.turn?.text ?? "";
  }

  /** Waits until the server has the message: from here on it can't get lost. */
  accepted() {
    return this.#taken.promise;
  }

  /** Waits for the end, whatever it is. */
  wait() {
    return this.#ended.promise;
  }

  /** Waits for the whole answer. */
  async answer() {
    const done = await this.wait();
    const { text, turn } = this;
    if (done.status === "completed") return text;
    if (done.status !== "failed") throw new IncompleteAnswerError(text, done);
    throw new TurnError(turn.error ?? { code: "internal", message: "No reason was given." });
  }

  /** Stops the turn, or takes the send back; what has come by now stays. */
  interrupt({ keep, seenSeq } = {}) {
    const { turn } = this;
    return this.#interrupt(turn ? { turn: turn.seq, keep, seenSeq } : { send: this.sendId, keep, seenSeq });
  }

  /** Gives the answer's text as it comes; however the turn ends, text just ends. */
  async *pieces() {
    for (;;) {
      const news = this.#news.promise;
      const { turn } = this;
      const text = turn && !this.#isVoid ? this.#take(turn) : "";
      if (text !== "") yield text;
      else if (this.#failure) throw this.#failure;
      else if (turn?.done) return;
      else await news;
    }
  }

  /** The server replied to the send. */
  replied(reply) {
    this.#reply = reply;
    if (reply.ok) this.#taken.resolve();
    else this.fail(new CommandError(reply.error));
  }

  /** The conversation has changed. @returns {boolean} whether more may come */
  changed() {
    const { done } = this;
    if (done) this.#ended.resolve(done);
    this.#tell();
    return !done && !this.#failure;
  }

  /** What was there is void; what was read of it can't be taken back. */
  reset(reason) {
    this.#message = null;
    this.#isVoid = this.#part > 0 || this.#piece > 0;
    if (this.#isVoid) this.fail(new ConversationResetError(reason));
    else this.#doubt = this.#reply && reason;
  }

  /** The history is there: a message that was taken and is not in it is lost. */
  caughtUp() {
    if (this.#doubt && !this.#conversation.messageOf(this.sendId)) this.fail(new ConversationResetError(this.#doubt));
    this.#doubt = null;
  }

  fail(error) {
    this.#failure = error;
    this.#taken.reject(error);
    this.#ended.reject(error);
    this.#tell();
  }

  /** Wakes all that read. */
  #tell() {
    this.#news.resolve();
    this.#news = promised();
  }

  #take({ parts }) {
    // Other parts may be dropped again.
    const texts = parts.filter(({ kind }) => kind === "text");
    let text = "";
    for (; this.#part < texts.length; this.#part += 1, this.#piece = 0) {
      const { pieces } = texts[this.#part];
      text += pieces.slice(this.#piece).join("");
      this.#piece = pieces.length;
      if (this.#part === texts.length - 1) break;
    }
    return text;
  }
}

/** The answers that have not ended, by the ids of their sends. */
export class Answers {
  #open = new Map();
  /** By turn, those that it answers: the message it began with, and what steers it. */
  #following = new WeakMap();

  add(answer) {
    this.#open.set(answer.sendId, answer);
    this.#look(answer);
  }

  replied(id, reply) {
    const answer = this.#open.get(id);
    answer?.replied(reply);
    if (answer) this.#look(answer);
  }

  /** An event was applied: only answers that it may concern are looked at. */
  event({ fold }, { type, id, message, turn }) {
    if (type === "message") this.#look(this.#open.get(id));
    if (type === "start") this.#look(this.#open.get(fold.messages.get(message)?.id));
    for (const answer of this.#following.get(fold.turns.get(turn)) ?? []) this.#look(answer);
  }

  reset(conversation, reason) {
    for (const answer of this.#of(conversation)) answer.reset(reason);
  }

  caughtUp(conversation) {
    for (const answer of this.#of(conversation)) {
      answer.caughtUp();
      this.#look(answer);
    }
  }

  /** Nothing more comes, of one conversation or of all. */
  fail(error, conversation) {
    for (const answer of conversation === undefined ? [...this.#open.values()] : this.#of(conversation)) {
      this.#open.delete(answer.sendId);
      answer.fail(error);
    }
  }

  #of(conversation) {
    return [...this.#open.values()].filter((answer) => answer.conversation === conversation);
  }

  #look(answer) {
    if (!answer) return;
    if (!answer.changed()) this.#open.delete(answer.sendId);
    else if (answer.turn) this.#follow(answer);
  }

  #follow(answer) {
    const others = this.#following.get(answer.turn);
    if (others) others.add(answer);
    else this.#following.set(answer.turn, new Set([answer]));
  }
}
