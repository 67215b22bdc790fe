// What the members of the server's frames are. Made by `python -m protocol.generate` from
// the Structs in protocol/; do not edit. `frames.js` checks frames by it.
//
// A member with a `?` may be absent, or null. Kinds are those of JSON, and `integer`; of
// a list `[]` says what is in it, and `|` stands between several.

/** Of numbered events, by type. */
export const EVENTS = {
  config: { conversation: "string", seq: "integer", config: { "model?": "string", "instructions?": "string", "tools?": "object[]", "tool_choice?": "string|object", "params?": "object", "response_schema?": "object", "detach?": { grace_s: "number|null" } } },
  message: { conversation: "string", seq: "integer", id: "string", role: "string", content: "string|object[]", by: "string", at: "string", "metadata?": "object", "steers?": "integer" },
  start: { conversation: "string", seq: "integer", turn: "integer", message: "integer", model: "string", request_id: "string", at: "string" },
  takeover: { conversation: "string", seq: "integer", turn: "integer", model: "string", "code?": "string" },
  delta: { conversation: "string", seq: "integer", turn: "integer", "first?": "integer", text: "string" },
  reasoning: { conversation: "string", seq: "integer", turn: "integer", "first?": "integer", text: "string" },
  refusal: { conversation: "string", seq: "integer", turn: "integer", "first?": "integer", text: "string" },
  tool_delta: { conversation: "string", seq: "integer", turn: "integer", "first?": "integer", text: "string", call: "string", name: "string" },
  tool_call: { conversation: "string", seq: "integer", turn: "integer", call: "string", name: "string", arguments: "any", batch: "integer", index: "integer", deadline_at: "string", "upstream_id?": "string" },
  tool_result: { conversation: "string", seq: "integer", turn: "integer", call: "string", status: "string", output: "any", by: "string", "invalid?": { name: "string", arguments: "string", batch: "integer", index: "integer", upstream_id: "string" } },
  usage: { conversation: "string", seq: "integer", turn: "integer", input_tokens: "integer", output_tokens: "integer", "reasoning_tokens?": "integer", "cached_tokens?": "integer", estimated: "boolean", model_calls: "integer" },
  error: { conversation: "string", seq: "integer", turn: "integer", code: "string", message: "string", retryable: "boolean", "retry_after_ms?": "integer" },
  cut: { conversation: "string", seq: "integer", turn: "integer", keep_through: "integer", by: "string", text: { bytes: "integer", crc32: "integer" } },
  skip: { conversation: "string", seq: "integer", "first?": "integer" },
  done: { conversation: "string", seq: "integer", turn: "integer", status: "string", "reason?": "string", "finish_reason?": "string", text: { bytes: "integer", crc32: "integer" }, timing: { queue_ms: "number", "upstream_ttft_ms?": "number", "ttft_ms?": "number", "tpot_ms?": "number", "tokens_per_s?": "number", "tool_ms?": "number", total_ms: "number", "stop_ms?": "number" } },
};

/** Of frames about the connection, by type. */
export const CONTROLS = {
  welcome: { protocol: "integer", connection: "string", heartbeat_ms: "integer", server: { name: "string", version: "string" }, models: "string[]", limits: { frame_bytes: "integer", conversations: "integer", active_turns: "integer", queued: "integer", pending_tools: "integer", tool_output_bytes: "integer", idempotency_s: "integer", "depth?": "integer", "turn_bytes?": "integer", "tool_rounds?": "integer", "frames_per_second?": "integer", "frames_burst?": "integer", "principal_frames_per_second?": "integer", "principal_connections?": "integer", "principal_conversations?": "integer", "principal_stored_conversations?": "integer", "address_connections?": "integer", "max_delay_ms?": "integer" }, features: "string[]" },
  reply: { re: "string", ok: "boolean", "outcome?": "string", "error?": { code: "string", message: "string", retryable: "boolean", "retry_after_ms?": "integer", "param?": "string" }, "duplicate?": "boolean", "conversation?": "string", "epoch?": "string", "head?": "integer", "oldest?": "integer", "turn?": "integer", "last_ids?": "string[]", "reason?": "string", "seq?": "integer", "keep_through?": "integer", "server_tools?": "string[]", "stored?": "boolean" },
  error: { code: "string", message: "string", retryable: "boolean", "retry_after_ms?": "integer", "param?": "string", "gone?": "string" },
  pong: { server_time: "string" },
  caught_up: { conversation: "string", seq: "integer" },
  waiting: { conversation: "string", turn: "integer", phase: "string", elapsed_ms: "integer" },
  tool_request: { conversation: "string", turn: "integer", call: "string", name: "string", arguments: "any", deadline_ms: "integer", redelivered: "boolean" },
  goaway: { deadline_ms: "integer", reconnect_after_ms: "integer", reason: "string" },
  auth_expiring: { in_ms: "integer" },
  ping: { t: "integer", heads: "object" },
};
