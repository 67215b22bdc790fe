// What the page says of states, codes and times, in words.

const REASONS = {
  by_client: "stopped",
  abandoned: "stopped: nobody was connected",
  superseded: "stopped for the next message",
  max_output_tokens: "cut off at the length limit",
  content_filter: "ended by the content filter",
  upstream_truncated: "broke off upstream",
  upstream_stalled: "upstream fell silent",
  server_restarted: "cut off by a server restart",
  server_shutdown: "cut off by a server shutdown",
  turn_timeout: "out of time",
};

const PHASES = {
  connecting: "connecting to the model",
  waiting_first_token: "waiting for the first token",
  retry_wait: "the model is busy, trying again",
};

const CLOSES = {
  4400: "The server closed the connection: too many bad frames.",
  4401: "The server wants a valid access token.",
  4403: "The server does not allow this page here.",
  4406: "The server speaks another version of the protocol.",
  4408: "The server waited for a hello in vain.",
};

/**
 * How a turn that is done ended.
 * @param {number} [stopMs] how long a stop took to be answered
 */
export function ending({ done: { status, reason }, parts }, stopMs) {
  if (status === "interrupted" && parts.length === 0) return "stopped before it began";
  if (reason === "by_client" && stopMs !== undefined) return `stopped in ${duration(stopMs)}`;
  return REASONS[reason] ?? { completed: "complete", failed: "failed" }[status] ?? status;
}

export function phase(name) {
  return PHASES[name] ?? name;
}

/** Why the client does not reconnect. */
export function stopped(code, error) {
  return error?.message ?? CLOSES[code] ?? "The server closed the connection.";
}

/** Milliseconds for a person. */
export function duration(ms) {
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
}

function number(value) {
  const maximumFractionDigits = Number.isInteger(value) || value >= 10 ? 0 : 1;
  return value.toLocaleString("en", { maximumFractionDigits });
}

function saved(kept, dropped) {
  const unseen = dropped > 0 ? `, ${number(dropped)} unseen dropped` : "";
  return `${number(kept)} characters saved${unseen}`;
}

/** The facts of a finished turn, one string each. */
export function facts({ done, usage, text, dropped }) {
  const { timing } = done;
  const found = [];
  if (timing.stop_ms != null) found.push(`the model let go after ${duration(timing.stop_ms)}`);
  if (done.status === "interrupted") found.push(saved(text.length, dropped));
  if (timing.ttft_ms != null) found.push(`first token ${duration(timing.ttft_ms)}`);
  if (timing.tokens_per_s != null) found.push(`${number(timing.tokens_per_s)} tokens/s`);
  if (usage) found.push(`${usage.estimated ? "≈ " : ""}${number(usage.output_tokens)} tokens`);
  if (timing.queue_ms >= 100) found.push(`queued ${duration(timing.queue_ms)}`);
  if (timing.tool_ms != null) found.push(`tools ${duration(timing.tool_ms)}`);
  // Of a turn that a restart cut off the server has no times.
  if (done.reason !== "server_restarted") found.push(`${duration(timing.total_ms)} in all`);
  return found;
}
