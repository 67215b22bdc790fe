// A conversation as a fold over its events: what stands on a screen. Pure: no
// socket, no clock, no DOM. The same rules as `protocol/fold.py`.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

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
    this.kind = "tool";
    this.call = event.call;
    this.name = event.name;
    this.arguments = event.arguments;
    this.deadlineAt = event.deadline_at;
    this.first = event.seq;
    this.last = event.seq;
    /** @type {null | {status: string, output: unknown, by: string}} */
    this.result = null;
  }
}

/** One turn of the assistant. */
class Turn {
  constructor(event) {
    this.kind = "turn";
    this.seq = event.seq;
    this.message = event.message;
    this.model = event.model;
    this.requestId = event.request_id;
    this.parts = [];
    this.usage = null;
    this.error = null;
    this.done = null;
    /** Where it was cut; text after it was dropped. */
    this.keepThrough = null;
    /** Whether the kept text has the server's length and checksum; null if not known. */
    this.proven = null;
    /** Rises when something that was shown changed, so that a view starts over. */
    this.revision = 0;
  }

  /** The answer text that counts. */
  get text() {
    return this.parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
  }

  addText(kind, event) {
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
      const bytes = encoder.encode(part.text);
      if (bytes.length > left) {
        part.pieces = [decoder.decode(bytes.subarray(0, left))];
        this.revision += 1;
      }
      left -= Math.min(left, bytes.length);
    }
    this.prove(event.text);
  }

  prove(proof) {
    const bytes = encoder.encode(this.text);
    this.proven = bytes.length === proof.bytes && crc32(bytes) === proof.crc32;
  }
}

/** What a conversation is after the events that were applied. */
export class Fold {
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

  /** Takes the next event; an unknown type changes nothing. */
  apply(event) {
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
      default: {
        const turn = this.turns.get(event.turn);
        // After a reset the log may begin inside a turn.
        if (turn) applyToTurn(turn, event);
      }
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
  }

  #start(event) {
    const turn = new Turn(event);
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
}

function applyToTurn(turn, event) {
  switch (event.type) {
    case "delta":
      turn.addText("text", event);
      break;
    case "reasoning":
    case "refusal":
      turn.addText(event.type, event);
      break;
    case "tool_call":
      turn.parts.push(new ToolPart(event));
      break;
    case "tool_result": {
      const part = turn.parts.find((each) => each.call === event.call);
      if (part) {
        part.result = { status: event.status, output: event.output, by: event.by };
        part.last = event.seq;
      }
      break;
    }
    case "usage":
      turn.usage = event;
      break;
    case "error":
      turn.error = event;
      break;
    case "cut":
      turn.cut(event);
      break;
    case "done":
      turn.done = event;
      turn.prove(event.text);
      break;
    default:
  }
}
