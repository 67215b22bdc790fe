// A conversation as a fold over its events: what stands on a screen. Pure: no
// socket, no clock, no DOM. The same rules as `protocol/fold.py`, which a test compares.

import { isText, Turn } from "./turn.js";

export { crc32 } from "./turn.js";

/** The text of a user's message, whatever parts it has. */
export function contentText(content) {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "[image]")).join("");
}

/** An event does not fit after the last one; nothing was changed. */
export class GapError extends Error {
  name = "GapError";

  constructor(last, event) {
    super(`The numbers ${event.first ?? event.seq} to ${event.seq} do not fit after ${last}; open the conversation with its cursor.`);
    this.last = last;
    this.event = event;
  }
}

/** Where in a text the numbers that came in last began. */
class Run {
  /** For each piece of it: its first number, and its place in the text. */
  #begins = [];

  constructor(part) {
    this.part = part;
  }

  /** The last piece of the text is one of the run. */
  grew(first) {
    this.#begins.push([first, this.part.pieces.length - 1]);
  }

  /** The text from number `first` on; undefined if no piece began there. */
  since(first) {
    const begin = this.#begins.find(([number]) => number === first);
    return begin && this.part.pieces.slice(begin[1]).join("");
  }
}

/** What each event does to its turn. */
const APPLY = {
  takeover: (turn, event) => (turn.model = event.model),
  tool_call: (turn, event) => turn.called(event),
  tool_result: (turn, event) => turn.settled(event),
  usage: (turn, event) => (turn.usage = event),
  error: (turn, event) => (turn.error = event),
  cut: (turn, event) => turn.cut(event),
  done: (turn, event) => turn.ended(event),
};

const OTHERS = new Set(["config", "message", "start", ...Object.keys(APPLY)]);

/** Whether an event has a number and nothing else; so has one of a later version. */
const isSkip = (event) => !isText(event) && !OTHERS.has(event.type);

/** What a conversation is after the events that were applied. */
export class Fold {
  #run = null;
  #bySend = new Map();

  /**
   * @param {object} [from]
   * @param {string | null} [from.conversation] its id; null until an event names it
   * @param {number | null} [from.last] the number before the first event; null begins with
   *   whichever comes first: a log may have lost its oldest part
   */
  constructor({ conversation = null, last = null } = {}) {
    this.conversation = conversation;
    /** Everything up to this number is in it: the cursor's `seq`. */
    this.last = last;
    this.config = {};
    /** Messages and turns in the order of the log. */
    this.items = [];
    this.turns = new Map();
    this.messages = new Map();
  }

  /** The turn that runs, or null. */
  get running() {
    for (let i = this.items.length - 1; i >= 0; i -= 1) {
      const item = this.items[i];
      if (item.kind === "turn") return item.done ? null : item;
    }
    return null;
  }

  /** What a send is in the log, or undefined while it is not there. */
  messageOf(send) {
    return this.#bySend.get(send);
  }

  /**
   * Takes the next event. One whose numbers are all known is passed over; of one that is
   * known in part the rest is taken, where that can be told. An unknown type is a `skip`.
   * @returns {boolean} whether anything was new
   * @throws {GapError} it does not fit
   * @throws {RangeError} it is another conversation's
   */
  apply(event) {
    const { conversation, seq } = event;
    if (this.conversation !== null && conversation !== this.conversation) {
      throw new RangeError(`An event of ${conversation} is none of ${this.conversation}.`);
    }
    const first = event.first ?? seq;
    const last = this.last ?? first - 1;
    if (seq <= last) return false;
    const fitting = first === last + 1 ? event : this.#rest(event, first, last);
    if (isText(fitting)) this.#text(fitting, last + 1);
    else this.#other(fitting);
    this.conversation = conversation;
    this.last = seq;
    return true;
  }

  #text(event, first) {
    const part = this.#turn(event.turn).addText(event, first);
    if (part === undefined) {
      this.#run = null;
      return;
    }
    if (this.#run?.part !== part) this.#run = new Run(part);
    this.#run.grew(first);
  }

  /** The part of an event that comes after `last`. */
  #rest(event, first, last) {
    if (first <= last && isSkip(event)) return { ...event, first: last + 1 };
    if (first <= last && isText(event)) {
      const part = this.turns.get(event.turn)?.growing(event);
      const known = part && this.#run?.part === part ? this.#run.since(first) : undefined;
      if (known !== undefined && event.text.startsWith(known)) {
        return { ...event, first: last + 1, text: event.text.slice(known.length) };
      }
    }
    throw new GapError(last, event);
  }

  #other(event) {
    this.#run = null;
    switch (event.type) {
      case "config":
        this.config = event.config;
        return;
      case "message":
        this.#message(event);
        return;
      case "start":
        this.#start(event);
        return;
      default:
        if (!isSkip(event)) this.#ofTurn(event);
        else if (this.running) this.running.skipped = true;
    }
  }

  #message(event) {
    const message = {
      kind: "message",
      seq: event.seq,
      id: event.id,
      content: event.content,
      by: event.by,
      at: event.at,
      metadata: event.metadata ?? null,
      steers: event.steers ?? null,
      /** Number of the turn that answers it, once there is one. */
      turn: null,
    };
    this.items.push(message);
    this.messages.set(event.seq, message);
    if (!this.#bySend.has(message.id)) this.#bySend.set(message.id, message);
  }

  #start(event) {
    const message = this.messages.get(event.message);
    if (message) message.turn = event.seq;
    // A queued message stands in the log before the turns ahead of it; on a screen
    // each turn follows the message it answers.
    const at = message ? this.items.indexOf(message) : -1;
    const isNext = at >= 0 && this.items.slice(at + 1).every((item) => item.kind === "message");
    this.#turn(event.seq, isNext ? at + 1 : this.items.length).start(event);
  }

  #ofTurn(event) {
    // The turn is gone, and only a late cut is left.
    if (event.type === "cut" && !this.turns.has(event.turn)) return;
    APPLY[event.type](this.#turn(event.turn), event);
  }

  /** A turn; where it is not there the log begins inside of it. */
  #turn(number, at = this.items.length) {
    const known = this.turns.get(number);
    if (known) return known;
    const turn = new Turn(number);
    this.turns.set(number, turn);
    this.items.splice(at, 0, turn);
    return turn;
  }
}
