// A conversation as a fold over its events: what stands on a screen. Pure: no
// socket, no clock, no DOM. The same rules as `protocol/fold.py`.

const encoder = new TextEncoder();

const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  return crc;
});

/** The CRC-32 of bytes, as an unsigned number. */
export function crc32(bytes) {
  let crc = -1;
  for (const byte of bytes) crc = (crc >>> 8) ^ CRC_TABLE[(crc ^ byte) & 0xff];
  return ~crc >>> 0;
}

/** The text of UTF-8 bytes, without a last character that is not whole. */
function decodeWhole(bytes) {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: true });
}

/** The text of a user's message, whatever parts it has. */
export function contentText(content) {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "[image]")).join("");
}

/** A run of text of one kind; grows by pieces, so that a view can take only new ones. */
class TextPart {
  constructor(kind, event) {
    /** @type {"text" | "reasoning" | "refusal"} */
    this.kind = kind;
    this.pieces = [];
    this.first = event.first ?? event.seq;
    this.last = event.seq;
  }

  get text() {
    return this.pieces.join("");
  }

  add(event) {
    this.pieces.push(event.text);
    this.last = event.seq;
  }
}

/** A call of a tool; `result` is null until it is settled. */
class ToolPart {
  constructor(event) {
    // A call that was invalid is only known from its result; its arguments are text.
    const { name, arguments: args } = event.invalid ?? event;
    this.kind = "tool";
    this.call = event.call;
    this.name = name ?? "tool";
    this.arguments = args ?? null;
    this.deadlineAt = event.deadline_at ?? null;
    this.first = event.seq;
    this.last = event.seq;
    /** @type {null | {status: string, output: unknown, by: string}} */
    this.result = null;
  }

  settle(event) {
    this.result = { status: event.status, output: event.output, by: event.by };
    this.last = event.seq;
  }
}

/** One turn of the assistant. */
class Turn {
  constructor(seq) {
    this.kind = "turn";
    this.seq = seq;
    /** Its `start` was seen; otherwise the log's older part is gone, and with it maybe
     * the beginning of what is shown. */
    this.whole = false;
    this.message = null;
    this.model = "";
    this.requestId = null;
    this.parts = [];
    this.usage = null;
    this.error = null;
    this.done = null;
    /** Where it was cut; text after it was dropped. */
    this.keepThrough = null;
    /** How many characters of it were dropped by cuts. */
    this.dropped = 0;
    /** Numbers of it came without what they hold: maybe text that this client cut. */
    this.skipped = false;
    /** Whether the kept text has the server's length and checksum; null if not known. */
    this.proven = null;
    /** Rises when something that was shown changed, so that a view starts over. */
    this.revision = 0;
  }

  /** The answer text that counts. */
  get text() {
    return this.parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
  }

  start(event) {
    this.whole = true;
    this.message = event.message;
    this.model = event.model;
    this.requestId = event.request_id;
  }

  addText(kind, event) {
    if (kind === "text" && this.keepThrough !== null) return;
    let part = this.parts.at(-1);
    if (part?.kind !== kind) {
      part = new TextPart(kind, event);
      this.parts.push(part);
    }
    part.add(event);
  }

  cut(event) {
    this.keepThrough = event.keep_through;
    let left = event.text.bytes;
    for (const part of this.parts) {
      if (part.kind !== "text") continue;
      const { text } = part;
      const bytes = encoder.encode(text);
      if (bytes.length > left) {
        part.pieces = [decodeWhole(bytes.subarray(0, left))];
        this.dropped += text.length - part.text.length;
        this.revision += 1;
      }
      left -= Math.min(left, bytes.length);
    }
    this.prove(event.text);
  }

  prove(proof) {
    if (!this.whole) return;
    const bytes = encoder.encode(this.text);
    this.proven = bytes.length === proof.bytes && crc32(bytes) === proof.crc32;
  }
}

/** What each event does to its turn. */
const APPLY = {
  takeover: (turn, event) => (turn.model = event.model),
  delta: (turn, event) => turn.addText("text", event),
  reasoning: (turn, event) => turn.addText("reasoning", event),
  refusal: (turn, event) => turn.addText("refusal", event),
  tool_delta: () => {}, // sent only on request, which this client does not make
  tool_call: (turn, event) => turn.parts.push(new ToolPart(event)),
  tool_result: (turn, event) => {
    let part = turn.parts.find((each) => each.call === event.call);
    if (!part) {
      part = new ToolPart(event);
      turn.parts.push(part);
    }
    part.settle(event);
  },
  usage: (turn, event) => (turn.usage = event),
  error: (turn, event) => (turn.error = event),
  cut: (turn, event) => turn.cut(event),
  done: (turn, event) => {
    turn.done = event;
    turn.prove(event.text);
    // The `cut` that follows says more.
    if (turn.skipped && encoder.encode(turn.text).length < event.text.bytes) turn.proven = null;
  },
};

/** What a conversation is after the events that were applied. */
export class Fold {
  #last = 0;
  #bySend = new Map();

  constructor() {
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

  /** Takes the next event; an unknown type changes nothing. */
  apply(event) {
    const skips = event.type === "skip" || (event.first ?? event.seq) > this.#last + 1;
    if (skips && this.running) this.running.skipped = true;
    this.#last = event.seq;
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
        if (Object.hasOwn(APPLY, event.type)) this.#ofTurn(event);
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
      steers: event.steers ?? null,
      /** Number of the turn that answers it, once there is one. */
      turn: null,
    };
    this.items.push(message);
    this.messages.set(event.seq, message);
    if (!this.#bySend.has(message.id)) this.#bySend.set(message.id, message);
  }

  #start(event) {
    const turn = new Turn(event.seq);
    turn.start(event);
    const message = this.messages.get(event.message);
    if (message) message.turn = event.seq;
    this.turns.set(event.seq, turn);
    // A queued message stands in the log before the turns ahead of it; on a screen
    // each turn follows the message it answers.
    const at = message ? this.items.indexOf(message) : -1;
    if (at >= 0 && this.items.slice(at + 1).every((item) => item.kind === "message")) {
      this.items.splice(at + 1, 0, turn);
    } else {
      this.items.push(turn);
    }
  }

  #ofTurn(event) {
    let turn = this.turns.get(event.turn);
    if (!turn) {
      // The log begins inside of it, or it is gone and only a late cut is left.
      if (event.type === "cut") return;
      turn = new Turn(event.turn);
      this.turns.set(turn.seq, turn);
      this.items.push(turn);
    }
    APPLY[event.type](turn, event);
  }
}
