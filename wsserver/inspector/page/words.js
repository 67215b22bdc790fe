// Times, sizes and frames in few words.

import { TEXTS } from "./recording.js";

const UNITS = [[1_048_576, "MB"], [1_024, "kB"]];

/** A moment of the recording, as minutes, seconds and milliseconds. */
export function clock(ms) {
  const minutes = Math.floor(ms / 60_000);
  const seconds = ((ms % 60_000) / 1_000).toFixed(3).padStart(6, "0");
  return `${String(minutes).padStart(2, "0")}:${seconds}`;
}

export function duration(ms) {
  if (ms < 1) return `${ms.toFixed(1)} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
}

export function size(bytes) {
  for (const [unit, name] of UNITS) if (bytes >= unit) return `${(bytes / unit).toFixed(1)} ${name}`;
  return `${bytes} B`;
}

/** An id short enough for a label: its beginning and its end. */
export function short(id, length = 14) {
  const bare = id.replace(/^(conn|conv)_/, "");
  return bare.length <= length ? bare : `${bare.slice(0, length - 5)}…${bare.slice(-4)}`;
}

export function numbers({ first, seq }) {
  if (seq === null) return "";
  return first !== null && first !== seq ? `${first}…${seq}` : String(seq);
}

/** Which of a few families a frame is of; colours go by that. */
export function family(entry) {
  const { line, kind, type } = entry;
  if (line.fault) return "fault";
  if (kind === "act") return "act";
  if (kind === "opened" || kind === "closed") return "link";
  if (kind === "in") return line.frame ? "command" : "bad";
  if (type === "error" || line.frame?.ok === false) return "bad";
  if (type === "delta") return "delta";
  if (type === "reasoning" || type === "refusal") return "reasoning";
  if (type.startsWith("tool_") || TEXTS.has(type)) return "tool";
  if (type === "start" || type === "done" || type === "message" || type === "cut") return "turn";
  return "control";
}

function content(value) {
  if (typeof value === "string") return value;
  return value.map((part) => part.text ?? "[image]").join("");
}

const SUMMARY = {
  hello: (frame) => frame.client?.name ?? "",
  welcome: (frame) => `heartbeat ${frame.heartbeat_ms} ms`,
  open: (frame) => (frame.after ? `after ${frame.after}` : "from the start"),
  send: (frame) => [frame.policy, content(frame.content)].filter(Boolean).join(" · "),
  interrupt: (frame) => (frame.seen_seq === undefined ? "" : `seen ${frame.seen_seq}`),
  ack: (frame) => `through ${frame.seq}`,
  message: (frame) => content(frame.content),
  start: (frame) => frame.model,
  tool_call: (frame) => frame.name,
  tool_request: (frame) => frame.name,
  tool_result: (frame) => frame.status ?? (frame.error ? "error" : "output"),
  usage: (frame) => `${frame.input_tokens} in, ${frame.output_tokens} out`,
  error: (frame) => frame.code,
  cut: (frame) => `keep through ${frame.keep_through}`,
  done: (frame) => [frame.status, frame.reason].filter(Boolean).join(", "),
  caught_up: (frame) => `at ${frame.seq}`,
  waiting: (frame) => frame.phase,
  goaway: (frame) => frame.reason,
  reply: (frame) => (frame.ok ? frame.outcome : frame.error.code) + (frame.duplicate ? ", a duplicate" : ""),
};

/** One line about an entry. */
export function summary({ line, kind, type }) {
  const { frame } = line;
  if (kind === "closed") return `by ${line.by}, ${line.code ?? "no close frame"}`;
  if (kind === "act") return type === "delay" ? `${line.in_ms} ms in, ${line.out_ms} ms out` : "ordered here";
  if (!frame) return "";
  const fault = line.fault ? `${line.fault} by the inspector · ` : "";
  return fault + (TEXTS.has(type) ? frame.text : described(type, frame));
}

function described(type, frame) {
  try {
    return SUMMARY[type]?.(frame) ?? "";
  } catch {
    return ""; // a frame that a client made up
  }
}

/** How a turn stands, in a word. */
export function turnState({ done, error }) {
  if (!done) return "running";
  if (error) return `failed: ${error.code}`;
  return [done.status, done.reason].filter(Boolean).join(": ");
}
