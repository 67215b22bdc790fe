// The types of `client.js`. Frames and their members are in `protocol.d.ts`, which is
// generated from the protocol.

import type { Config, DoneEvent, ErrorBody, ErrorFrame, Goaway, Interrupt, LogEvent, Reply, Send, ToolRequest, Waiting, Welcome } from "./protocol.d.ts";
import { Fold, GapError, type Turn } from "./fold.js";

export { Fold, GapError };
export type { Message, ShownPart, ShownText, ShownTool, Turn } from "./fold.js";
export type * from "./protocol.d.ts";

/** What a user says: a string, or parts of text and images. */
export type Content = Send["content"];
/** What a send does while a turn runs. */
export type Policy = NonNullable<Send["policy"]>;
/** Which text an interrupt leaves in the history. */
export type Keep = NonNullable<Interrupt["keep"]>;

/** A tool that this client runs when the server asks it to. */
export interface Tool<Arguments = any> {
  /** For the model. */
  description?: string;
  /** The JSON Schema of the arguments. */
  parameters?: object;
  /** Seconds it has; null where a person answers (24 h at the most). */
  timeoutS?: number | null;
  /** Its result is told to the model; so is what it throws. */
  run(args: Arguments, context: ToolContext): unknown;
}

export interface ToolContext extends Omit<ToolRequest, "type" | "arguments" | "deadline_ms"> {
  deadlineMs: number;
  /** Aborted when nobody waits any more: settled elsewhere, out of time, stopped. */
  signal: AbortSignal;
  /** Says that it still runs, which extends the deadline. */
  progress(): void;
}

export type LinkState = "connecting" | "online" | "waiting" | "stopped";

export interface Status {
  state: LinkState;
  /** Of the last close; null where no close frame came. */
  code: number | null;
  /** While `waiting`: when it dials again, on the clock. */
  retryAt: number | null;
  /** The last fault that belongs to no command. */
  error: ErrorFrame | null;
  /** The server is about to stop, or has, as it said; null from the next welcome on. */
  goaway: Goaway | null;
  /** Of the last ping. */
  rttMs: number | null;
}

export interface Clock {
  /** Milliseconds that only rise. */
  now(): number;
  setTimeout(run: () => void, ms: number): unknown;
  clearTimeout(timer: any): void;
}

/** What one throws is reported as uncaught, and changes nothing for the client. */
export interface Handlers {
  /** Something of a conversation changed; may come many times a frame. */
  change?(conversation: Conversation): void;
  /** Each event of a conversation as the server sent it, once and in order; `fold` has it already. */
  event?(conversation: Conversation, event: LogEvent): void;
  status?(status: Status): void;
  /** Each reply to a command, once. */
  reply?(command: { type: string; id: string }, reply: Reply): void;
  /** A conversation was deleted elsewhere; it is not opened again by itself. `unsent` had not arrived in it. */
  deleted?(conversation: string, error: CommandError, unsent: Send[]): void;
  /** The credentials run out. */
  expiring?(inMs: number): void;
}

export interface ClientOptions {
  /** `ws:` or `wss:`, ends in `/v1/chat`. */
  url: string;
  WebSocket?: new (url: string, protocols: string[]) => any;
  /** Credentials, or a function that gets new ones, asked before each connection and when they are about to expire. */
  token?: string | null | (() => string | null | Promise<string | null>);
  tools?: Record<string, Tool>;
  /** The server holds a conversation's events back while so many bytes were not reported by `painted`. */
  windowBytes?: number;
  /** The server may gather text for so long, and sends whole characters. */
  maxDelayMs?: number;
  /** Where sends are kept over a reload until they are replied to; see `keptIn`. */
  keep?: Keeper;
  newId?: () => string;
  /** Evenly spread over [0, 1). */
  random?: () => number;
  clock?: Clock;
  /** Whether the page is hidden: its timers can't be trusted then. */
  hidden?: () => boolean;
  /** How long one attempt to connect may take, 10 s if not given. */
  openTimeoutSeconds?: number;
  /** The first and the largest window of the back-off, 2 and 30 s if not given. */
  backoffSeconds?: [number, number];
  /** For the server's log. */
  client?: { name: string; version?: string };
  handlers?: Handlers;
}

export interface OpenOptions {
  /** Its settings. */
  config?: Config;
  /** False opens only what the server has; anything else ends as if it was deleted. */
  create?: boolean;
  /** False leaves the settings of one that exists as they are. */
  reconfigure?: boolean;
  windowBytes?: number;
  view?: "merged" | "frames";
  /** Event types that come only on request: with `tool_delta` the arguments of a call are shown as they come. */
  include?: "tool_delta"[];
  maxDelayMs?: number;
}

export interface SendOptions {
  policy?: Policy;
  /** With policy `interrupt`: the last number that was seen; all that has arrived if not given. */
  seenSeq?: number;
  onDisconnect?: "continue" | "cancel";
  metadata?: Record<string, unknown>;
}

export interface InterruptOptions {
  /** The turn that runs if not given. */
  turn?: number;
  /** Takes back this send. */
  send?: string;
  /** The last number that was seen; all that has arrived if not given. */
  seenSeq?: number;
  /** Which text stays; what was seen if not given. */
  keep?: Keep;
}

export interface Cursor {
  readonly epoch: string | null;
  readonly last: number;
}

/** A conversation that is open. */
export interface Conversation {
  readonly id: string;
  readonly fold: Fold;
  /** Sends that are not in the log yet, by id; `error` says why one was refused. */
  readonly sends: Map<string, { frame: Send; error: ErrorBody | null }>;
  /** Everything that was there when it was opened has arrived. */
  readonly caughtUp: boolean;
  readonly waiting: Waiting | null;
  /** Why it can't be opened, or null. Unless it is `retryable`, only `open` or a `send` asks again. */
  readonly error: ErrorBody | null;
  /** Names of the tools that the server runs itself, as it said at the opening. */
  readonly serverTools: string[];
  /** Whether an answer is under way or due. */
  readonly busy: boolean;
  turnOf(send: string): Turn | undefined;
}

/** What one send became. Its methods fail with a `ClientError` where there is no answer. */
export interface Answer {
  /** The id of the message's send. */
  readonly sendId: string;
  readonly conversation: string;
  /** All that has arrived of it; undefined until it begins. */
  readonly turn: Turn | undefined;
  /** How it ended; null until its end has arrived. */
  readonly done: DoneEvent | null;
  /** The answer as far as it has arrived and is kept. */
  readonly text: string;
  /** Waits until the server has the message: from here on it can't get lost. */
  accepted(): Promise<void>;
  /** Waits for the end, whatever it is. */
  wait(): Promise<DoneEvent>;
  /** Waits for the whole answer; fails with `TurnError` or `IncompleteAnswerError` where it is none. */
  answer(): Promise<string>;
  /** Gives the text as it comes; however the turn ends, text just ends, and `done` says how. */
  pieces(): AsyncGenerator<string>;
  /** Stops it, or takes the send back. */
  interrupt(options?: Pick<InterruptOptions, "keep" | "seenSeq">): Promise<Reply>;
}

/** The base of all errors that the client gives. */
export class ClientError extends Error {}

/** The client has stopped: by `stop`, or because the server ended it for good. */
export class StoppedError extends ClientError {
  /** Of the close; null where the application stopped it. */
  readonly code: number | null;
}

/** The server's log is another than before: what was read so far is void. */
export class ConversationResetError extends ClientError {
  /** `expired`, `seq_ahead` or `epoch_changed`. */
  readonly reason: string;
}

/** The answer is not the whole answer: it was interrupted or cut short. */
export class IncompleteAnswerError extends ClientError {
  /** What there is of it. */
  readonly text: string;
  readonly done: DoneEvent;
}

/** An error from the server's catalogue. */
export class CodedError extends ClientError {
  readonly code: string;
  /** Whether the same again may succeed. */
  readonly retryable: boolean;
  /** The least wait before that; null for no hint. */
  readonly retryAfterSeconds: number | null;
  /** A JSON path to the member at fault; null where it is no single one. */
  readonly param: string | null;
}

/** The server refused a command. */
export class CommandError extends CodedError {}

/** A turn failed: its `done` has the status `failed`. */
export class TurnError extends CodedError {}

export class ChatClient {
  constructor(options: ClientOptions);
  readonly conversations: Map<string, Conversation>;
  /** What the server said of itself; null before the first connection. */
  readonly welcome: Welcome | null;
  readonly status: Status;
  readonly connected: boolean;
  /** The tools of this client, as `config.tools` wants them. */
  readonly toolDeclarations: NonNullable<Config["tools"]>;
  start(): void;
  stop(): void;
  drop(offlineMs?: number): void;
  wake(): void;
  open(id?: string, options?: OpenOptions): Conversation;
  /** Opens the conversation where it is not open; so does `ask`. */
  send(conversation: string, content: Content, options?: SendOptions): Answer;
  ask(conversation: string, content: Content, options?: SendOptions): Promise<string>;
  sendAgain(conversation: string, id: string): Answer;
  discard(conversation: string, id: string): void;
  interrupt(conversation: string, options?: InterruptOptions): Promise<Reply>;
  configure(conversation: string, config: Config): Promise<Reply>;
  fork(conversation: string, through?: number, options?: { new?: string }): Promise<string>;
  close(conversation: string): Promise<Reply>;
  delete(conversation: string): Promise<Reply>;
  refresh(token: string): Promise<Reply>;
  toolProgress(conversation: string, call: string): void;
  cursor(conversation: string): Cursor | undefined;
  painted(conversation: string): void;
}

export interface Keeper {
  /** All that are kept, in the order they were given. */
  load(): Send[];
  add(send: Send): void;
  /** Void where none of this id is kept. */
  remove(id: string): void;
}

/** Keeps sends in a storage, so that they outlive a reload under the same ids. */
export function keptIn(
  storage: Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">, key?: string,
): Keeper;

export interface Switches {
  /** Each frame arrives so much later. */
  delayMs?: number;
  /** Share of the frames that never arrive, 0 to 1. */
  lose?: number;
  /** Share of the frames that arrive twice, 0 to 1. */
  double?: number;
  /** The socket breaks at random, so often on average. */
  cutEveryMs?: number;
}

/** Makes a WebSocket of a bad network; the switches may be changed at any time. */
export function chaotic<Socket extends new (url: string, protocols: string[]) => any>(
  WebSocket: Socket,
  switches: Switches,
  platform?: { random?: () => number; now?: () => number; setTimeout?: Function; setInterval?: Function; clearInterval?: Function },
): Socket;
