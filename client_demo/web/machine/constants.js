// What both clients keep to, so that they behave alike. Made by `python -m
// protocol.generate` from protocol/, which has each number once; do not edit.

/** The version for `hello`. */
export const PROTOCOL = 1;

/** What is offered as the WebSocket's subprotocol. */
export const SUBPROTOCOL = "wsserver.v1";

/** What the server counts an `ack` as; everything else is one frame. */
export const ACK_COST = 0.1;

/** Share of the burst that is kept for what does not ask for room, such as an interrupt, and for frames
 * that a network holds up and then brings together. */
export const KEPT_BACK = 0.1;

/** So that there is room at `roomAt`, whatever a clock makes of it. */
export const ROUNDING = 0.0001;

/** Commands that wait for replies; enough for 100 a second over half a second of network. */
export const MOST_UNDER_WAY = 64;

/** For a refusal that names no wait. */
export const USUAL_WAIT_SECONDS = 1.0;

/** How often a hole is asked for before the connection is given up. */
export const MOST_MISSES = 3;

/** A server may miss one heartbeat on a busy machine, hardly two. */
export const SILENT_HEARTBEATS = 2.5;

/** A timer this late says that this side slept, not that the server is silent. */
export const LATE_SECONDS = 1.0;

/** The first and the largest window of the back-off. */
export const BACKOFF_SECONDS = [2.0, 30.0];

/** How long a connection must have held for the back-off to start over. */
export const STABLE_SECONDS = 30.0;

/** Close codes after which reconnecting would fail alike. */
export const FATAL_CLOSES = [1000, 1003, 1007];

/** The range of others like that, first and last. */
export const ENDING_CLOSES = [4400, 4499];

/** The range of those after which the server asks to reconnect at once. */
export const PROMPT_CLOSES = [4600, 4699];

/** The error codes that close codes stand for. */
export const CLOSE_ERRORS = {"4401": "unauthorized", "4403": "forbidden", "4406": "unsupported_protocol", "4408": "hello_required"};
