// One turn of the assistant as `fold.js` fills it in: its texts and calls in order, its
// end. Sister of `protocol/view.py`.

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

/** The kinds of text, by the events that bring it. */
const KINDS = { delta: "text", reasoning: "reasoning", refusal: "refusal", tool_delta: "tool" };

/** Whether an event brings text. */
export function isText({ type }) {
  return Object.hasOwn(KINDS, type);
}

/** A run of text of one kind; grows by pieces, so that a view can take only new ones. */
class TextPart {
  constructor(kind, first) {
    /** @type {"text" | "reasoning" | "refusal"} */
    this.kind = kind;
    this.pieces = [];
    this.first = first;
    this.last = first;
  }

  get text() {
    return this.pieces.join("");
  }
}

/** A call of a tool; `result` is null until it is settled. */
class ToolPart {
  constructor(call, name, first) {
    this.kind = "tool";
    this.call = call;
    this.name = name ?? "tool";
    /** @type {"streaming" | "open" | "ok" | "error" | "timeout" | "cancelled" | "invalid"} */
    this.status = "streaming";
    /** What came of the arguments' text while they come in. */
    this.pieces = [];
    this.arguments = null;
    this.batch = null;
    this.index = null;
    this.deadlineAt = null;
    this.first = first;
    this.last = first;
    /** @type {null | {status: string, output: unknown, by: string}} */
    this.result = null;
  }

  /** The arguments' text as far as it came; empty once they are complete. */
  get partial() {
    return this.pieces.join("");
  }

  complete(event) {
    this.name = event.name;
    this.status = "open";
    this.pieces = [];
    this.arguments = event.arguments;
    this.batch = event.batch;
    this.index = event.index;
    this.deadlineAt = event.deadline_at ?? null;
    this.last = event.seq;
  }

  settle(event) {
    const { status, output, by, invalid } = event;
    if (invalid) {
      // A call that was invalid is only known from its result; its arguments are text.
      this.name = invalid.name;
      this.batch = invalid.batch;
      this.index = invalid.index;
      this.arguments = invalid.arguments;
      this.pieces = [invalid.arguments];
    }
    this.status = status;
    this.result = { status, output, by };
    this.last = event.seq;
  }
}

/** One turn of the assistant. */
export class Turn {
  constructor(seq) {
    this.kind = "turn";
    this.seq = seq;
    /** Its `start` was seen; otherwise the log's older part is gone, and with it maybe
     * the beginning of what is shown. */
    this.whole = false;
    this.message = null;
    this.model = "";
    this.requestId = null;
    this.at = null;
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
    this.at = event.at;
  }

  /** The part whose text an event adds to; undefined where it adds to none that is there. */
  growing(event) {
    const kind = KINDS[event.type];
    if (kind === "tool") {
      const part = this.#call(event.call);
      return part?.status === "streaming" ? part : undefined;
    }
    const part = this.parts.at(-1);
    return part?.kind === kind && !this.#isCut(kind) ? part : undefined;
  }

  /**
   * Adds a text that begins with number `first`; undefined where nothing is added: to an
   * answer that was cut, to the arguments of a call that is complete.
   */
  addText(event, first) {
    const part = this.growing(event) ?? this.#begun(event, first);
    part?.pieces.push(event.text);
    if (part) part.last = event.seq;
    return part;
  }

  called(event) {
    this.#changing(event, event.name).complete(event);
  }

  settled(event) {
    this.#changing(event, null).settle(event);
  }

  ended(event) {
    this.done = event;
    const parts = this.parts.filter(({ status }) => status !== "streaming");
    if (parts.length < this.parts.length) {
      this.parts = parts;
      this.revision += 1;
    }
    this.prove(event.text);
    // The `cut` that follows says more.
    if (this.skipped && encoder.encode(this.text).length < event.text.bytes) this.proven = null;
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

  #isCut(kind) {
    return kind === "text" && this.keepThrough !== null;
  }

  #call(call) {
    return this.parts.find((part) => part.call === call);
  }

  /** The part of a call that an event is about; arguments that were shown as they came are void. */
  #changing({ call, seq }, name) {
    const part = this.#call(call);
    if (part?.status === "streaming") this.revision += 1;
    return part ?? this.#append(new ToolPart(call, name, seq));
  }

  #append(part) {
    this.parts.push(part);
    return part;
  }

  #begun(event, first) {
    const kind = KINDS[event.type];
    if (kind !== "tool") return this.#isCut(kind) ? undefined : this.#append(new TextPart(kind, first));
    return this.#call(event.call) ? undefined : this.#append(new ToolPart(event.call, event.name, first));
  }
}
