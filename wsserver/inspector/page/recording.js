// What the page has of a recording: entries in order, and what connections and
// conversations there are in them. Pure: no socket, no clock, no DOM.

/** Types of frames that grow a text. */
export const TEXTS = new Set(["delta", "reasoning", "refusal", "tool_delta"]);

const UNNUMBERED = new Set(["reply", "caught_up"]);
const TRIM = 0.2;

/**
 * @typedef {object} Entry
 * @property {number} n the line's number
 * @property {number} at milliseconds since the recording began
 * @property {"opened" | "in" | "out" | "closed" | "act" | "lost"} kind
 * @property {string | null} connection
 * @property {string | null} conversation of a reply: that of its command
 * @property {string} type of the frame, or what else it is
 * @property {boolean} event whether it is a numbered event
 * @property {number | null} seq
 * @property {number | null} first where it is merged
 * @property {number | null} gap milliseconds since the entry before it on its connection
 *   and conversation
 * @property {object} line the line itself
 */

export class Recording {
  /** @param {number} maxEntries the oldest are dropped beyond that */
  constructor(maxEntries = 200_000) {
    this.maxEntries = maxEntries;
    this.clear();
  }

  clear(header = null) {
    this.header = header;
    /** @type {Entry[]} */
    this.entries = [];
    /** By name: `{name, client, open, inMs, outMs, frames, bytes, ended}`. */
    this.connections = new Map();
    /** By id: `{id, entries, lanes, turns}`; a lane is what one connection has of it,
     * by the connection's name; a turn is `{turn, model, begin, end, status}`. */
    this.conversations = new Map();
    /** What is of no conversation, by connection. */
    this.loose = new Map();
    /** All types that were seen. */
    this.types = new Set();
    /** Lines that were never here or are dropped. */
    this.missed = 0;
    this.last = 0;
    /** Rises when entries were dropped: what was computed from them is void. */
    this.generation = (this.generation ?? 0) + 1;
    /** Per connection and id of a command, its conversation. */
    this.commands = new Map();
    this.before = new Map();
  }

  get redacted() {
    return this.header?.content !== "whole";
  }

  /** Takes a line; one that is known is ignored. Returns its entry, or null. */
  add(line) {
    if (line.n <= this.last) return null;
    this.last = line.n;
    if (line.kind === "lost") {
      this.missed += line.lines;
      return null;
    }
    const entry = this.#entry(line);
    this.entries.push(entry);
    this.types.add(entry.type);
    this.#connection(entry);
    this.#conversation(entry);
    if (this.entries.length > this.maxEntries) this.#trim();
    return entry;
  }

  /** The index of the last entry with a number up to `n`; -1 for none. */
  indexOf(n) {
    return upTo(this.entries, n) - 1;
  }

  #entry(line) {
    const { frame = {} } = line;
    const event = line.kind === "out" && frame.seq !== undefined && !UNNUMBERED.has(frame.type);
    const entry = {
      n: line.n,
      at: line.at_ms,
      kind: line.kind,
      connection: line.connection ?? null,
      // Clients send anything: what is used here is looked at first.
      conversation: typeof frame.conversation === "string" ? frame.conversation : null,
      type: typeOf(line),
      event,
      seq: typeof frame.seq === "number" ? frame.seq : null,
      first: typeof frame.first === "number" ? frame.first : null,
      gap: null,
      line,
    };
    const command = `${entry.connection} ${frame.id ?? frame.re}`;
    if (line.kind === "in" && frame.id !== undefined) this.commands.set(command, entry.conversation);
    if (frame.type === "reply") entry.conversation ??= this.commands.get(command) ?? null;
    if (line.kind === "in" || line.kind === "out") {
      const lane = `${entry.connection} ${entry.conversation}`;
      const before = this.before.get(lane);
      if (before !== undefined) entry.gap = entry.at - before;
      this.before.set(lane, entry.at);
    }
    return entry;
  }

  #connection(entry) {
    let connection = this.connections.get(entry.connection);
    if (!connection) {
      connection = { name: entry.connection, client: null, open: true, inMs: 0, outMs: 0, frames: 0, bytes: 0, ended: null };
      this.connections.set(entry.connection, connection);
    }
    const { line } = entry;
    if (entry.kind === "in" || entry.kind === "out") {
      connection.frames += 1;
      connection.bytes += line.bytes;
    }
    if (entry.type === "hello") connection.client = line.frame.client?.name ?? null;
    if (entry.kind === "act" && entry.type === "delay") {
      connection.inMs = line.in_ms;
      connection.outMs = line.out_ms;
    }
    if (entry.kind === "closed") {
      connection.open = false;
      connection.ended = { by: line.by, code: line.code ?? null };
    }
  }

  #conversation(entry) {
    if (entry.kind === "closed") {
      for (const each of this.conversations.values()) {
        if (each.lanes.has(entry.connection)) each.entries.push(entry);
      }
    }
    if (entry.conversation === null) {
      into(this.loose, entry);
      return;
    }
    let conversation = this.conversations.get(entry.conversation);
    if (!conversation) {
      conversation = { id: entry.conversation, entries: [], lanes: new Map(), turns: new Map() };
      this.conversations.set(entry.conversation, conversation);
    }
    conversation.entries.push(entry);
    into(conversation.lanes, entry);
    if (entry.event) this.#turn(conversation.turns, entry);
  }

  #turn(turns, { type, at, line: { frame } }) {
    if (type === "start" && !turns.has(frame.turn)) {
      turns.set(frame.turn, { turn: frame.turn, model: frame.model, begin: at, end: null, status: null });
    }
    const turn = turns.get(frame.turn);
    if (type === "done" && turn?.end === null) Object.assign(turn, { end: at, status: frame.status });
  }

  #trim() {
    const dropped = this.entries.splice(0, Math.ceil(this.maxEntries * TRIM));
    const oldest = this.entries[0].n;
    this.missed += dropped.length;
    this.generation += 1;
    trimLanes(this.loose, oldest);
    for (const [id, { entries, lanes }] of this.conversations) {
      entries.splice(0, upTo(entries, oldest - 1));
      trimLanes(lanes, oldest);
      if (entries.length === 0) this.conversations.delete(id);
    }
    for (const [name, { open }] of this.connections) {
      if (!open && !this.entries.some((entry) => entry.connection === name)) this.connections.delete(name);
    }
  }
}

function into(lanes, entry) {
  const lane = lanes.get(entry.connection);
  if (lane) lane.push(entry);
  else lanes.set(entry.connection, [entry]);
}

function trimLanes(lanes, oldest) {
  for (const [name, entries] of lanes) {
    entries.splice(0, upTo(entries, oldest - 1));
    if (entries.length === 0) lanes.delete(name);
  }
}

function typeOf({ kind, act, frame }) {
  if (kind === "act") return act;
  if (kind === "opened" || kind === "closed") return kind;
  if (!frame) return "no frame";
  return typeof frame.type === "string" ? frame.type : "no type";
}

/** How many of the entries have a number up to `n`. */
export function upTo(entries, n) {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[middle].n <= n) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Reads a recording's text. @returns {{header: object, lines: object[]}} */
export function parse(text) {
  const [first, ...rest] = text.split("\n").filter((line) => line.trim() !== "");
  const header = JSON.parse(first ?? "null");
  if (header?.recording !== 1) throw new Error("This is no recording of version 1.");
  return { header, lines: rest.map((line) => JSON.parse(line)) };
}

/** Writes a recording's text. */
export function format({ header, entries, missed }) {
  const lines = entries.map((entry) => entry.line);
  const gone = missed > 0 ? [{ kind: "lost", n: (lines[0]?.n ?? 1) - 1, at_ms: 0, lines: missed }] : [];
  return [header, ...gone, ...lines].map((line) => `${JSON.stringify(line)}\n`).join("");
}
