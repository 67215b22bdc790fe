// Commands that were not replied to: sent again on every new connection, under their
// ids. Only so many are under way at once; the others wait for replies, in order, so
// that a burst goes at the server's pace. What came too fast for it (`rate_limited`)
// goes out again after the wait that it asked for: one command at a time until all that
// was refused is taken, and then more with each reply. Behind a `delete` nothing goes into
// its conversation before the reply: it would be deleted too, if the `delete` had to be
// sent again. Other conversations go on. Sister of `protocol/client/outbox.py`.

import { MOST_UNDER_WAY } from "./constants.js";

/** What others wait for: a stop, a turn's tool, the connection's credentials. */
const URGENT = new Set(["interrupt", "tool_result", "refresh"]);

/** What comes to nothing with its conversation; a fork is one of its own. */
const WITHIN = new Set(["send", "configure", "interrupt", "tool_result"]);

/** The first of a set, or undefined; in constant time on average as it shrinks. */
function first(set) {
  for (const each of set) return each;
  return undefined;
}

export class Outbox {
  /** `{frame, number}` by id; `number`: how many were given before it. */
  #held = new Map();
  #count = 0;
  #waiting = new Set();
  #urgent = new Set();
  /** Sends that go before all else, since their interrupt has gone. */
  #named = new Set();
  #underWay = new Set();
  #refused = new Set();
  /** Per conversation, how many of the commands held are a `delete` of it. */
  #deletes = new Map();
  /** Per conversation whose `delete` is under way, what waits for its reply. */
  #deleting = new Map();
  #most = MOST_UNDER_WAY;
  #pausedUntil = null;

  /** In the order they were given. */
  get held() {
    return [...this.#held.values()].map(({ frame }) => frame);
  }

  get(id) {
    return this.#held.get(id)?.frame;
  }

  /** Keeps a command until it is settled; `due` gives it when it may go. */
  hold(frame) {
    this.settle(frame.id);
    this.#held.set(frame.id, { frame, number: (this.#count += 1) });
    const { type, conversation } = frame;
    if (type === "delete") this.#deletes.set(conversation, (this.#deletes.get(conversation) ?? 0) + 1);
    this.#wait(frame);
  }

  settle(id) {
    const frame = this.get(id);
    if (!frame) return;
    this.#held.delete(id);
    this.#takeOff(id);
    this.#landed(frame);
    if (frame.type === "delete") this.#forgetDelete(frame);
    if (this.#refused.size === 0) this.#most = Math.min(this.#most + 1, MOST_UNDER_WAY);
  }

  /** What is held for a conversation and comes to nothing with it. */
  into(conversation) {
    return this.held.filter((frame) => frame.conversation === conversation && WITHIN.has(frame.type));
  }

  /** Whether a `delete` of a conversation is held. */
  deletes(conversation) {
    return this.#deletes.has(conversation);
  }

  /** A command came too fast; nothing goes before `until` but what must not wait. */
  tooFast(id, until) {
    this.#landed(this.get(id));
    this.#refused.add(id);
    this.#most = 1;
    this.#pausedUntil = until;
  }

  /** Time has passed: maybe the wait that the server asked for. */
  advance(now) {
    if (this.#pausedUntil !== null && now >= this.#pausedUntil) this.#pausedUntil = null;
  }

  /**
   * When `due` has something by time alone; null for never.
   * @param {number} roomAt when there is room for one more frame
   */
  nextTimer(roomAt) {
    if (this.#pausedUntil !== null) return this.#pausedUntil;
    return this.#next() === undefined ? null : roomAt;
  }

  /**
   * Takes the next command that may go out now; undefined where none may.
   * @param {boolean} hasRoom whether there is room for a frame that can wait
   */
  due(hasRoom) {
    const id = first(this.#named) ?? (hasRoom ? this.#next() : undefined) ?? first(this.#urgent);
    if (id === undefined) return undefined;
    const frame = this.get(id);
    this.#takeOff(id);
    this.#underWay.add(id);
    if (frame.type === "delete") this.#deleting.set(frame.conversation, []);
    // The server remembers such an interrupt for a minute, and the send may wait longer.
    if (frame.type === "interrupt" && this.#waiting.has(frame.send)) this.#named.add(frame.send);
    return frame;
  }

  /** Everything goes out anew. */
  newConnection() {
    for (const set of [this.#waiting, this.#urgent, this.#named, this.#underWay, this.#refused, this.#deleting]) set.clear();
    this.#most = MOST_UNDER_WAY;
    this.#pausedUntil = null;
    for (const { frame } of this.#held.values()) this.#wait(frame);
  }

  #wait({ id, type }) {
    this.#waiting.add(id);
    if (URGENT.has(type)) this.#urgent.add(id);
  }

  #takeOff(id) {
    for (const set of [this.#waiting, this.#urgent, this.#named, this.#refused]) set.delete(id);
  }

  #landed({ id, type, conversation }) {
    if (!this.#underWay.delete(id) || type !== "delete") return;
    const behind = this.#deleting.get(conversation).filter((each) => this.#held.has(each));
    this.#deleting.delete(conversation);
    if (behind.length > 0) this.#waiting = new Set([...behind, ...this.#waiting]);
  }

  #forgetDelete({ conversation }) {
    const others = this.#deletes.get(conversation) - 1;
    if (others === 0) this.#deletes.delete(conversation);
    else this.#deletes.set(conversation, others);
  }

  /** The next in order; undefined where it has to wait for a reply, or for time. */
  #next() {
    if (this.#pausedUntil !== null || this.#underWay.size >= this.#most) return undefined;
    if (this.#refused.size > 0) return this.#nextRefused();
    for (const id of this.#waiting) {
      const behind = this.#behindDelete(this.get(id));
      if (!behind) return id;
      this.#waiting.delete(id);
      behind.push(id);
    }
    return undefined;
  }

  #behindDelete({ type, conversation }) {
    return type === "close" || URGENT.has(type) ? undefined : this.#deleting.get(conversation);
  }

  #nextRefused() {
    const rank = (id) => [URGENT.has(this.get(id).type) ? 0 : 1, this.#held.get(id).number];
    return [...this.#refused].reduce((a, b) => {
      const [[urgentA, numberA], [urgentB, numberB]] = [rank(a), rank(b)];
      return urgentA < urgentB || (urgentA === urgentB && numberA < numberB) ? a : b;
    });
  }
}
