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
  readonly arguments: unknown;
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

export class Fold {
  readonly config: Config;
  readonly items: (Message | Turn)[];
  readonly turns: Map<number, Turn>;
  readonly messages: Map<number, Message>;
  readonly running: Turn | null;
  /** What a send is in the log; undefined while it is not there. */
  messageOf(send: string): Message | undefined;
  apply(event: LogEvent): void;
}

export function crc32(bytes: Uint8Array): number;
export function contentText(content: MessageEvent["content"]): string;
