// The frames of wsserver.v1, version 1. Made by `python -m protocol.generate`
// from the Structs in protocol/; do not edit.
//
// Narrow a frame by `type`; of the two kinds of `error` the event has a
// `conversation`. Ignore frames whose `type` is not here, and unknown members.

/** The version for `hello`. */
export type ProtocolVersion = 1;

/** What to offer as the WebSocket's subprotocol. */
export type Subprotocol = "wsserver.v1";

/** A frame from the client. */
export type ClientFrame = Hello | Open | Configure | Send | Interrupt | ToolResult | ToolProgress | Fork | Ack | Close | Delete | Refresh | Ping;

/** A numbered event of a conversation, from the server. */
export type LogEvent = ConfigEvent | MessageEvent | StartEvent | TakeoverEvent | DeltaEvent | ReasoningEvent | RefusalEvent | ToolDeltaEvent | ToolCallEvent | ToolResultEvent | UsageEvent | TurnErrorEvent | CutEvent | SkipEvent | DoneEvent;

/** A frame about the connection, from the server. */
export type ControlFrame = Welcome | Reply | ErrorFrame | Pong | CaughtUp | Waiting | ToolRequest | Goaway | AuthExpiring | Heartbeat;

/** A frame from the server. */
export type ServerFrame = LogEvent | ControlFrame;

/** The first frame of a connection. */
export interface Hello {
  type: "hello";
  /** The version of the protocol that the client speaks. */
  protocol: number;
  /** Credentials, where the handshake had none. */
  token?: string;
  /** For the server's log. */
  client?: ClientInfo;
}

/** Who says hello, for the server's log. */
export interface ClientInfo {
  name: string;
  version?: string;
}

/** Attaches this connection to a conversation. */
export interface Open {
  type: "open";
  /** Its own, for its principal and conversation: the same again, with the same content, is applied once and gets the first reply again. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  id: string;
  /** Absent makes a new one. A name of one's own that is not yet in use makes it, which is safe to send again. */
  conversation?: string;
  /** With `after`: the epoch the cursor belongs to. */
  epoch?: string;
  /** The client's cursor; with none everything is sent. */
  after?: number;
  /** Applied when the conversation is new, else ignored. */
  config?: Config;
  /** Names of the tools that this connection runs. */
  handles?: string[];
  /** `merged` joins deltas not yet sent; `frames` never does. */
  view?: "frames" | "merged";
  /** Event types that are sent only on request. */
  include?: "tool_delta"[];
  /**
   * Stop sending while this many bytes are unacknowledged.
   *
   * From 1024 to 2147483648.
   */
  window_bytes?: number;
  /**
   * Text may be gathered this long, and is cut between characters.
   *
   * From 0 to 10000.
   */
  max_delay_ms?: number;
}

/**
 * Settings of a conversation.
 *
 * In a command a member that is absent stays as it is and null takes it back; in the `config` event absent members are not set.
 */
export interface Config {
  /** The model's name; with none the server's default. */
  model?: string | null;
  /** What the model is told before the conversation. */
  instructions?: string | null;
  /** What the model may call. */
  tools?: Tool[] | null;
  /** Whether it may, must or must not call a tool, or which. */
  tool_choice?: "auto" | "none" | "required" | NamedTool | null;
  /** Further members of the request to the model (`temperature`, ...). */
  params?: Record<string, unknown> | null;
  /** A JSON Schema that the answer has to fit. */
  response_schema?: Record<string, unknown> | null;
  /** What a turn does when nobody is connected. */
  detach?: Detach | null;
}

/** A tool that the model may call and a client runs. */
export interface Tool {
  /** Unique in its configuration. (1 to 64 of A-Z a-z 0-9 _ . -) */
  name: string;
  /** Told to the model. */
  description?: string;
  /** The JSON Schema of the arguments object; absent takes any. */
  parameters?: Record<string, unknown>;
  /** Seconds until a call of it counts as timed out; absent takes the server's default, null waits (for a person's approval) up to the server's ceiling. */
  timeout_s?: number | null;
}

/** Makes the model call this tool. */
export interface NamedTool {
  /** 1 to 64 of A-Z a-z 0-9 _ . - */
  name: string;
}

/** What a turn does when nobody is connected. */
export interface Detach {
  /** Seconds it goes on; 0 stops at once, null never. */
  grace_s: number | null;
}

/** Changes the conversation's settings for the turns that start from here on. */
export interface Configure {
  type: "configure";
  /** Its own, for its principal and conversation: the same again, with the same content, is applied once and gets the first reply again. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  id: string;
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  conversation: string;
  config: Config;
}

/** Says something to the model. */
export interface Send {
  type: "send";
  /** Its own, for its principal and conversation: the same again, with the same content, is applied once and gets the first reply again. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  id: string;
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  conversation: string;
  /** Text, or parts of text and images. */
  content: string | (TextPart | ImagePart)[];
  /** What to do while a turn runs. */
  policy?: "interrupt" | "queue" | "reject" | "steer";
  /** With policy `interrupt`: the last number the user saw. */
  seen_seq?: number;
  /** Overrides the conversation's `detach` for this turn: `continue` (never abandoned) or `cancel` (at once). */
  on_disconnect?: "cancel" | "continue";
  /** The client's own; kept with the message and shown to all. */
  metadata?: Record<string, unknown>;
}

/** A piece of text in a message. */
export interface TextPart {
  type: "text";
  text: string;
}

/** An image in a message. */
export interface ImagePart {
  type: "image_url";
  image_url: ImageUrl;
}

/** Where an image is: an `https:` or `data:` URL. */
export interface ImageUrl {
  /** an `https:` or `data:` URL */
  url: string;
  detail?: string;
}

/** Stops a turn, or takes a send back that has not started. */
export interface Interrupt {
  type: "interrupt";
  /** Its own, for its principal and conversation: the same again, with the same content, is applied once and gets the first reply again. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  id: string;
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  conversation: string;
  /** Which turn; with neither `turn` nor `send`: the one that runs. */
  turn?: number;
  /** The id of a send. */
  send?: string;
  /** The last number the user saw. */
  seen_seq?: number;
  /** Which text stays in the history. */
  keep?: "generated" | "none" | "seen" | "sent";
}

/** What a tool gave; exactly one of `output` and `error`. */
export interface ToolResult {
  type: "tool_result";
  /** Its own, for its principal and conversation: the same again, with the same content, is applied once and gets the first reply again. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  id: string;
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  conversation: string;
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  call: string;
  output?: unknown;
  error?: ToolFault;
}

/** How a tool failed. */
export interface ToolFault {
  message: string;
}

/** The tool still runs; extends its deadline, up to the ceiling. */
export interface ToolProgress {
  type: "tool_progress";
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  conversation: string;
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  call: string;
}

/** Makes a new conversation with the log up to the end of a turn. */
export interface Fork {
  type: "fork";
  /** Its own, for its principal and conversation: the same again, with the same content, is applied once and gets the first reply again. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  id: string;
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  conversation: string;
  /** A number in the last turn that is taken along. */
  through: number;
  /** The new conversation's id. */
  new?: string;
}

/** Everything up to `seq` was taken; opens the window of `window_bytes`. */
export interface Ack {
  type: "ack";
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  conversation: string;
  seq: number;
}

/** Detaches this connection; a running turn goes on. */
export interface Close {
  type: "close";
  /** Its own, for its principal and conversation: the same again, with the same content, is applied once and gets the first reply again. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  id: string;
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  conversation: string;
}

/** Removes the conversation from the store. */
export interface Delete {
  type: "delete";
  /** Its own, for its principal and conversation: the same again, with the same content, is applied once and gets the first reply again. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  id: string;
  /** Which one. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** The epoch that the client knows of it. What was made anew under the name has another one, and stays. */
  epoch?: string;
}

/** Gives new credentials of the same principal. */
export interface Refresh {
  type: "refresh";
  /** Its own, for its principal and conversation: the same again, with the same content, is applied once and gets the first reply again. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  id: string;
  token: string;
}

/** Asks for a `pong`; `t` comes back as it is. */
export interface Ping {
  type: "ping";
  t?: unknown;
}

/** The conversation's whole settings from here on. */
export interface ConfigEvent {
  type: "config";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  config: Config;
}

/** A user's message is in the log. */
export interface MessageEvent {
  type: "message";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  /** The id of the `send`. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  id: string;
  role: "user";
  content: string | (TextPart | ImagePart)[];
  /** The principal. */
  by: string;
  /** RFC 3339 in UTC with milliseconds, ending in Z. */
  at: string;
  metadata?: Record<string, unknown>;
  /** The turn that it joins at the next model call; if that turn ends first it is simply the next message. */
  steers?: number;
}

/** A turn begins; its `turn` equals its `seq`. */
export interface StartEvent {
  type: "start";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  /** A number in a log. */
  turn: number;
  /** A number in a log. */
  message: number;
  model: string;
  request_id: string;
  /** RFC 3339 in UTC with milliseconds, ending in Z. */
  at: string;
}

/** Another model answers from here on than the turn said before. */
export interface TakeoverEvent {
  type: "takeover";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  /** A number in a log. */
  turn: number;
  /** Its name. */
  model: string;
  /** Why the one before it does not: an error's code; absent where the first choice answers again. */
  code?: string;
}

/** A piece of the answer. */
export interface DeltaEvent {
  type: "delta";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  /** A number in a log. */
  turn: number;
  first?: number;
  text: string;
}

/** A piece of the model's thinking, never part of the answer. */
export interface ReasoningEvent {
  type: "reasoning";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  /** A number in a log. */
  turn: number;
  first?: number;
  text: string;
}

/** A piece of the model's refusal. */
export interface RefusalEvent {
  type: "refusal";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  /** A number in a log. */
  turn: number;
  first?: number;
  text: string;
}

/** A piece of a call's arguments as they stream; only on request. */
export interface ToolDeltaEvent {
  type: "tool_delta";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  /** A number in a log. */
  turn: number;
  first?: number;
  text: string;
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  call: string;
  name: string;
}

/** A complete and valid call. */
export interface ToolCallEvent {
  type: "tool_call";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  /** A number in a log. */
  turn: number;
  /** The server's own id of the call. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  call: string;
  name: string;
  /** The arguments as JSON. */
  arguments: unknown;
  /** Which model call of the turn asked for it, from 0. */
  batch: number;
  /** Its place in that batch, from 0. */
  index: number;
  /** When it counts as timed out. */
  deadline_at: string;
  /** The id that the model's history keeps. */
  upstream_id?: string;
}

/** A call is settled; exactly once per call. */
export interface ToolResultEvent {
  type: "tool_result";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  /** A number in a log. */
  turn: number;
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  call: string;
  status: "cancelled" | "error" | "invalid" | "ok" | "timeout";
  /** What the tool gave, or a note for the model. */
  output: unknown;
  /** The principal whose client ran it, or `server`. */
  by: string;
  /** With status `invalid`: the call, for which there was no `tool_call`. */
  invalid?: InvalidCall;
}

/** A call that was never shown as one to run. */
export interface InvalidCall {
  name: string;
  /** The text the model wrote for them. */
  arguments: string;
  batch: number;
  index: number;
  upstream_id: string;
}

/** What the turn cost; exactly once per turn. */
export interface UsageEvent {
  type: "usage";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  /** A number in a log. */
  turn: number;
  input_tokens: number;
  output_tokens: number;
  reasoning_tokens?: number;
  cached_tokens?: number;
  estimated: boolean;
  model_calls: number;
}

/** Why a turn failed; precedes its `done`. */
export interface TurnErrorEvent {
  type: "error";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  /** A number in a log. */
  turn: number;
  code: string;
  message: string;
  retryable: boolean;
  retry_after_ms?: number;
}

/** Answer text of the turn after `keep_through` is not part of the history. */
export interface CutEvent {
  type: "cut";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  /** A number in a log. */
  turn: number;
  /** The last number whose text stays. */
  keep_through: number;
  /** The principal who cut it, or `server`. */
  by: string;
  /** Proves the text that stays; a client whose frames were merged cuts its copy to `text.bytes`. */
  text: TextProof;
}

/** What proves a copy of a turn's kept answer text. */
export interface TextProof {
  /** Its length in UTF-8. */
  bytes: number;
  /** The CRC-32 of that, as an unsigned number. */
  crc32: number;
}

/** The numbers `first ... seq` hold nothing for this client. */
export interface SkipEvent {
  type: "skip";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  first?: number;
}

/** The only terminal event of a turn; nothing of it follows but `cut`. */
export interface DoneEvent {
  type: "done";
  /** Whose log it is in. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  conversation: string;
  /** Its number, contiguous from 1. */
  seq: number;
  /** A number in a log. */
  turn: number;
  status: "completed" | "failed" | "incomplete" | "interrupted";
  /** Why it was interrupted or incomplete. */
  reason?: "abandoned" | "by_client" | "content_filter" | "max_output_tokens" | "server_restarted" | "server_shutdown" | "superseded" | "turn_timeout" | "upstream_stalled" | "upstream_truncated";
  /** The upstream's own word, if it gave one. */
  finish_reason?: string;
  /** Proves the kept answer text. */
  text: TextProof;
  timing: Timing;
}

/** How long a turn took, in milliseconds; a member that has no value is absent. */
export interface Timing {
  /** From the message in the log to the turn's start. */
  queue_ms: number;
  /** From the last request sent before the first token to it. */
  upstream_ttft_ms?: number;
  /** From the message in the log to the first non-empty fragment of content, reasoning, refusal or call. */
  ttft_ms?: number;
  /** Time per output token after the first. */
  tpot_ms?: number;
  /** Output tokens per second after the first. */
  tokens_per_s?: number;
  /** Spent waiting for tools. */
  tool_ms?: number;
  /** From the message in the log to the end. */
  total_ms: number;
  /** From an interrupt to the upstream connection closed. */
  stop_ms?: number;
}

/** Answers `hello`. */
export interface Welcome {
  type: "welcome";
  protocol: number;
  /** This connection's id, as in the server's log. (1 to 128 of A-Z a-z 0-9 . _ : -) */
  connection: string;
  /** How often the server sends a `ping`. */
  heartbeat_ms: number;
  server: ServerInfo;
  /** Names that a configuration may ask for; others may work too. */
  models: string[];
  limits: Limits;
  /** Optional parts that this server has. */
  features: string[];
}

/** Who welcomes. */
export interface ServerInfo {
  name: string;
  version: string;
}

/** What the server takes; announced in `welcome`. What is absent has no limit. */
export interface Limits {
  /** The longest frame in either direction. */
  frame_bytes: number;
  /** Open conversations on one connection. */
  conversations: number;
  /** Running turns of one principal. */
  active_turns: number;
  /** Waiting messages of one conversation. */
  queued: number;
  /** Tool calls of one turn, in all. */
  pending_tools: number;
  /** The longest output of a tool. */
  tool_output_bytes: number;
  /** How long command ids are remembered at the least. */
  idempotency_s: number;
  /** Lists and objects that may stand in each other. */
  depth?: number;
  /** The text of one turn. */
  turn_bytes?: number;
  /** Model calls that tools may cause in one turn. */
  tool_rounds?: number;
  /** Frames of one connection, on average. */
  frames_per_second?: number;
  /** Frames of one connection at once. */
  frames_burst?: number;
  /** Frames of all connections of one principal, on average. */
  principal_frames_per_second?: number;
  /** Connections of one principal. */
  principal_connections?: number;
  /** Open conversations on all connections of one principal. */
  principal_conversations?: number;
  /** Conversations of one principal that are stored, open or not. */
  principal_stored_conversations?: number;
  /** Connections from one address. */
  address_connections?: number;
  /** The longest `max_delay_ms` of an `open`. */
  max_delay_ms?: number;
}

/** Answers the command whose id is `re`; members depend on the command. */
export interface Reply {
  type: "reply";
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  re: string;
  /** Whether `outcome` or `error` is there. */
  ok: boolean;
  outcome?: string;
  error?: ErrorBody;
  /** The command had been applied before; this is its first reply. */
  duplicate?: boolean;
  /** For `open`, `fork`: which conversation. */
  conversation?: string;
  /** For `open`: the log's epoch. */
  epoch?: string;
  /** For `open`: the last number. */
  head?: number;
  /** For `open`: the first number that is kept. */
  oldest?: number;
  /** For `open`: the running turn; else the turn the command concerns. */
  turn?: number;
  /** For `open`: ids of the newest sends in the log, oldest first. */
  last_ids?: string[];
  /** Why the cursor was `reset`. */
  reason?: "epoch_changed" | "expired" | "seq_ahead";
  /** For `send`, `configure`: the number of the event it became. */
  seq?: number;
  /** For `interrupt`: the last number whose text stays. */
  keep_through?: number;
  /** For `open`: names of the tools that the server runs itself, for a client that may `configure`; absent where there are none. */
  server_tools?: string[];
  /** False where an `interrupt` is answered while the store does not take what came of it: a crash may take that back. */
  stored?: boolean;
}

/** What went wrong and what can be done. */
export interface ErrorBody {
  /** From the catalogue in `protocol.codes`. */
  code: string;
  /** For a person: what was wrong and what to do. */
  message: string;
  /** Whether sending the same again may succeed. */
  retryable: boolean;
  /** The least wait before that. */
  retry_after_ms?: number;
  /** A JSON path to the member at fault, such as `$.config.model`. */
  param?: string;
}

/** A fault that belongs to no command; has no `conversation`. */
export interface ErrorFrame {
  type: "error";
  code: string;
  message: string;
  retryable: boolean;
  retry_after_ms?: number;
  param?: string;
  /** The conversation that somebody deleted, which is open here no more; no other fault has it. */
  gone?: string;
  conversation?: undefined;
}

/** Answers the client's `ping`. */
export interface Pong {
  type: "pong";
  t?: unknown;
  /** RFC 3339 in UTC with milliseconds, ending in Z. */
  server_time: string;
}

/** The replay is over at `seq`; what follows is live. */
export interface CaughtUp {
  type: "caught_up";
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  conversation: string;
  seq: number;
}

/** The turn has no token yet; sent each 10 s. */
export interface Waiting {
  type: "waiting";
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  conversation: string;
  /** A number in a log. */
  turn: number;
  /** `connecting`: the upstream has not answered the request. `waiting_first_token`: it has, and says nothing yet. `retry_wait`: it failed, and is asked again in a moment. */
  phase: "connecting" | "retry_wait" | "waiting_first_token";
  /** Milliseconds. */
  elapsed_ms: number;
}

/** Asks exactly this connection to run a tool. */
export interface ToolRequest {
  type: "tool_request";
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  conversation: string;
  /** A number in a log. */
  turn: number;
  /** 1 to 128 of A-Z a-z 0-9 . _ : - */
  call: string;
  name: string;
  arguments: unknown;
  /** How long it has from now. */
  deadline_ms: number;
  /** It was asked of a connection before. */
  redelivered: boolean;
}

/** The server goes away: finish, then reconnect after a while. */
export interface Goaway {
  type: "goaway";
  /** Milliseconds. */
  deadline_ms: number;
  /** Milliseconds. */
  reconnect_after_ms: number;
  reason: string;
}

/** The credentials run out; send `refresh`. */
export interface AuthExpiring {
  type: "auth_expiring";
  /** Milliseconds. */
  in_ms: number;
}

/** A sign of life; `heads` lets a client see that it missed something. */
export interface Heartbeat {
  type: "ping";
  /** Milliseconds. */
  t: number;
  heads: Record<string, number>;
}

/** Codes of errors; a later server may have more. */
export type ErrorCode =
  | "bad_json"
  | "bad_frame"
  | "unknown_type"
  | "hello_required"
  | "unsupported_protocol"
  | "unauthorized"
  | "forbidden"
  | "conversation_not_found"
  | "bad_cursor"
  | "bad_model"
  | "busy"
  | "queue_full"
  | "too_large"
  | "too_many_conversations"
  | "too_many_turns"
  | "rate_limited"
  | "idempotency_conflict"
  | "draining"
  | "store_unavailable"
  | "internal"
  | "upstream_auth"
  | "upstream_rate_limited"
  | "upstream_unavailable"
  | "upstream_timeout"
  | "upstream_error"
  | "context_length"
  | "content_filter"
  | "schema_mismatch"
  | "too_many_tool_rounds"
  | "response_too_large";

/** Codes with which the server closes. */
export type CloseCode =
  | 1000
  | 1001
  | 1003
  | 1007
  | 1009
  | 1011
  | 1012
  | 1013
  | 4400
  | 4401
  | 4403
  | 4406
  | 4408
  | 4508
  | 4513
  | 4529
  | 4601;
