// The types of `fold.js`: what a conversation is after the events that were applied.

import type { Config, DoneEvent, LogEvent, MessageEvent, ToolResultEvent, TurnErrorEvent, UsageEvent } from "./protocol.d.ts";

/** Text of one kind, as it came. */
export interface ShownText {
  readonly kind: "text" | "reasoning" | "refusal";
  /** Only grows, but for a cut. */
  readonly pieces: string[];
  readonly text: string;
  readonly first: number;
  readonly last: number;
}

export interface ShownTool {
  readonly kind: "tool";
  readonly call: string;
  readonly name: string;
  /** `streaming` while its arguments come in, `open` while it runs, then how it was settled. */
  readonly status: "streaming" | "open" | ToolResultEvent["status"];
  /** Null until the call is complete. Of one that is `invalid`, the text that the model wrote. */
  readonly arguments: unknown;
  /** The arguments' text as far as it came; empty once they are complete. Of a call that is `invalid` all of it. */
  readonly partial: string;
  readonly pieces: string[];
  /** Which model call asked for it, from 0; null until the call is complete. */
  readonly batch: number | null;
  /** Its place in that batch, from 0. */
  readonly index: number | null;
  readonly deadlineAt: string | null;
  /** Null until it is settled. */
  readonly result: { status: ToolResultEvent["status"]; output: unknown; by: string } | null;
  readonly first: number;
  readonly last: number;
}

export type ShownPart = ShownText | ShownTool;

export interface Message {
  readonly kind: "message";
  readonly seq: number;
  /** Of the send. */
  readonly id: string;
  readonly content: MessageEvent["content"];
  readonly by: string;
  readonly at: string;
  /** What was given with the send. */
  readonly metadata: Record<string, unknown> | null;
  readonly steers: number | null;
  /** Number of the turn that answers it, once there is one. */
  readonly turn: number | null;
}

/** One turn of the assistant. */
export interface Turn {
  readonly kind: "turn";
  readonly seq: number;
  readonly whole: boolean;
  readonly message: number | null;
  readonly model: string;
  readonly requestId: string | null;
  /** When it began; null where its beginning is gone. */
  readonly at: string | null;
  readonly parts: ShownPart[];
  readonly usage: UsageEvent | null;
  readonly error: TurnErrorEvent | null;
  readonly done: DoneEvent | null;
  readonly keepThrough: number | null;
  /** How many characters of it were dropped by cuts. */
  readonly dropped: number;
  /** Whether the text is the server's, to the byte; null if not known. */
  readonly proven: boolean | null;
  /** Rises when something that was shown changed. */
  readonly revision: number;
  /** The answer text that counts. */
  readonly text: string;
}

/** What a conversation is after its events; those of a `Conversation` are folded already. */
export class Fold {
  /** `last`: the number before the first event; whichever comes first begins if not given. */
  constructor(from?: { conversation?: string | null; last?: number | null });
  readonly conversation: string | null;
  /** Everything up to this number is in it; null before the first event. */
  readonly last: number | null;
  readonly config: Config;
  readonly items: (Message | Turn)[];
  readonly turns: Map<number, Turn>;
  readonly messages: Map<number, Message>;
  readonly running: Turn | null;
  /** What a send is in the log; undefined while it is not there. */
  messageOf(send: string): Message | undefined;
  /**
   * Takes the next event; says whether anything of it was new. Throws a `GapError` where it does not fit, a `RangeError`
   * where it is another conversation's.
   */
  apply(event: LogEvent): boolean;
}

/** An event does not fit after the last one; nothing was changed. */
export class GapError extends Error {
  /** The last number that was taken. */
  readonly last: number;
  readonly event: LogEvent;
}

export function crc32(bytes: Uint8Array): number;
export function contentText(content: MessageEvent["content"]): string;
