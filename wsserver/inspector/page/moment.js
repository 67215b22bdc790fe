// What a conversation was at a moment of the recording: its events folded, who was
// looking at it and how far each had come. Pure; the fold is the client's own.

import { TEXTS, upTo } from "./recording.js";

const MARK = /^«(\d+)»$/;

/** A text of the same length as the one that a recording has left out. */
function expanded(text) {
  const mark = MARK.exec(text);
  return mark ? "x".repeat(Number(mark[1])) : text;
}

/** One conversation; goes forward entry by entry, and back by starting anew. */
export class Moment {
  #Fold;
  #redacted;

  /**
   * @param {object} conversation of a `Recording`
   * @param {{Fold: Function, redacted: boolean}} options
   */
  constructor(conversation, { Fold, redacted }) {
    this.conversation = conversation;
    this.#Fold = Fold;
    this.#redacted = redacted;
    this.#begin();
  }

  #begin() {
    /** How many entries are in it. */
    this.taken = 0;
    this.epoch = null;
    /** By connection: the number up to which it was sent everything. */
    this.viewers = new Map();
    this.#opens = new Map();
    this.#forget();
  }

  #opens = new Map();

  #forget() {
    this.fold = new this.#Fold();
    this.last = null;
    /** Ranges of numbers that are in no frame of the recording. */
    this.holes = [];
    /** First numbers and lengths of the pieces of the text that grows. */
    this.run = [];
  }

  /** Goes to the last entry with a number up to `n`. */
  goTo(n) {
    const target = upTo(this.conversation.entries, n);
    if (target < this.taken) this.#begin();
    while (this.taken < target) {
      this.#take(this.conversation.entries[this.taken]);
      this.taken += 1;
    }
    return this;
  }

  /** The turn that runs, or null. */
  get running() {
    return this.fold.running;
  }

  #take(entry) {
    const { frame = {}, fault } = entry.line;
    if (entry.kind === "closed" || (entry.type === "close" && entry.kind === "in")) {
      this.viewers.delete(entry.connection);
    } else if (entry.type === "open" && entry.kind === "in") {
      this.#opens.set(`${entry.connection} ${frame.id}`, frame.after ?? 0);
    } else if (entry.type === "reply") {
      this.#reply(entry, frame);
    } else if (entry.event) {
      // What was kept from one client is in the log all the same.
      if (fault !== "lost") this.viewers.set(entry.connection, Math.max(entry.seq, this.viewers.get(entry.connection) ?? 0));
      this.#event(frame);
    }
  }

  #reply(entry, frame) {
    const command = `${entry.connection} ${frame.re}`;
    if (!frame.ok || frame.epoch === undefined) return;
    const after = this.#opens.get(command) ?? 0;
    if (this.epoch !== null && this.epoch !== frame.epoch) this.#forget();
    this.epoch = frame.epoch;
    this.viewers.set(entry.connection, frame.outcome === "replay" ? after : frame.oldest - 1);
  }

  #event(frame) {
    const first = frame.first ?? frame.seq;
    this.last ??= first - 1;
    if (frame.seq <= this.last) return;
    const isText = TEXTS.has(frame.type);
    let event = isText && this.#redacted ? { ...frame, text: expanded(frame.text) } : frame;
    if (first <= this.last) {
      event = this.#rest(event, first);
      if (event === null) return;
    }
    if (first > this.last + 1) this.#hole(frame.conversation, this.last + 1, first - 1);
    if (isText) this.run.push({ first: event.first ?? event.seq, length: event.text.length });
    else this.run = [];
    this.fold.apply(event);
    this.last = frame.seq;
  }

  #hole(conversation, from, to) {
    this.holes.push([from, to]);
    this.fold.apply({ type: "skip", conversation, first: from, seq: to });
  }

  /** The part of a merged frame that another connection was not sent before. */
  #rest(event, first) {
    if (event.type === "skip") return { ...event, first: this.last + 1 };
    const start = this.run.findIndex((piece) => piece.first === first);
    if (start < 0) return null; // a frame with the rest alone is to come
    const known = this.run.slice(start).reduce((sum, piece) => sum + piece.length, 0);
    return { ...event, first: this.last + 1, text: event.text.slice(known) };
  }
}
