// The types of `session.js`: the client's half of the protocol, without I/O.

import type {
  AuthExpiring, CaughtUp, ClientFrame, ClientInfo, ErrorBody, Goaway, LogEvent, Open, Pong, Reply, ToolRequest, ToolResult,
  Waiting, Welcome,
} from "../protocol.d.ts";

/** A command as it is given: its `id` is made where none is there. */
export type Command = Exclude<ClientFrame, { type: "hello" | "open" | "ping" | "ack" | "tool_progress" }>;
export type GivenCommand = Command extends infer C ? (C extends Command ? Omit<C, "id"> & { id?: string } : never) : never;

/** What the application is told. */
export type Notice =
  | { kind: "welcome"; frame: Welcome }
  | { kind: "event"; event: LogEvent }
  | { kind: "opened"; conversation: string; reply: Reply }
  | { kind: "reset"; conversation: string; reason: "expired" | "seq_ahead" | "epoch_changed" }
  | { kind: "caught_up"; frame: CaughtUp }
  | { kind: "waiting"; frame: Waiting }
  /** The server did not open it. */
  | { kind: "lost"; conversation: string; error: ErrorBody }
  /** Somebody else deleted it. */
  | { kind: "deleted"; conversation: string; error: ErrorBody }
  | { kind: "reply"; command: Command; reply: Reply }
  | { kind: "tool"; request: ToolRequest }
  /** It belongs to no command. */
  | { kind: "fault"; error: ErrorBody }
  | { kind: "goaway"; frame: Goaway }
  | { kind: "auth_expiring"; frame: AuthExpiring }
  | { kind: "pong"; frame: Pong }
  /** The driver must drop the connection. */
  | { kind: "drop"; why: string };

/** Where a conversation stands that is open. */
export interface Subscription {
  readonly conversation: string;
  /** Null before the first verdict. */
  readonly epoch: string | null;
  /** The last number that was taken. */
  readonly last: number;
  /** Whether the verdict of this connection came. */
  readonly attached: boolean;
}

/** Outlives its connections. After each input, send `framesToSend()` and handle `notices()`. */
export class Session {
  constructor(options: { newId: () => string; client?: ClientInfo });
  readonly phase: "offline" | "greeting" | "online";
  /** Commands that were not replied to, in order. */
  readonly held: Command[];
  /** Takes the frames that are to go out, in order. */
  framesToSend(): ClientFrame[];
  /** Takes what the application is to be told, in order. */
  notices(): Notice[];
  holds(id: string): boolean;
  /** Undefined where it is not open. */
  subscription(conversation: string): Subscription | undefined;
  connected(token?: string | null): void;
  disconnected(): void;
  /** @throws {TypeError} JSON can't hold the members */
  open(conversation: string, given?: Partial<Omit<Open, "type" | "id" | "conversation" | "epoch">>): void;
  openAnew(conversation: string): void;
  /**
   * @returns its id
   * @throws {TypeError} JSON can't hold the members
   */
  command(members: GivenCommand): string;
  /** When `advance` must be called at the latest, in milliseconds; null while nothing waits for time. */
  nextTimer(): number | null;
  advance(now: number): void;
  painted(conversation: string): void;
  /** @returns the command's id; null where the result is wanted no more */
  toolResult(conversation: string, call: string, result: Pick<ToolResult, "output"> | Pick<ToolResult, "error">): string | null;
  toolProgress(conversation: string, call: string): void;
  ping(t: unknown): void;
  receive(text: string, now: number): void;
}
