// Reads logs, one a line, and writes what `fold.js` makes of each; for
// `test_fold_is_one.py`, which compares that with what `protocol.fold` makes.

import { createInterface } from "node:readline";

import { Fold, GapError } from "../../client_demo/web/fold.js";

const joined = (turn, kind) => turn.parts.map((part) => (part.kind === kind ? part.text : "")).join("");

const toolOf = ({ call, name, status, partial, batch, index }) => [call, name, status, partial, batch, index];

function shown(turn) {
  return {
    turn: turn.seq,
    whole: turn.whole,
    message: turn.message,
    model: turn.model,
    text: turn.text,
    reasoning: joined(turn, "reasoning"),
    refusal: joined(turn, "refusal"),
    at: turn.at,
    calls: turn.parts.filter((part) => part.kind === "tool").map(toolOf),
    status: turn.done?.status ?? null,
    failed: turn.error !== null,
    proven: turn.proven,
  };
}

function take(fold, event) {
  try {
    return fold.apply(event);
  } catch (fault) {
    if (fault instanceof GapError) return "gap";
    if (fault instanceof RangeError) return "another";
    throw fault;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const fold = new Fold();
  const taken = JSON.parse(line).map((event) => take(fold, event));
  const turns = [...fold.turns.values()].map(shown);
  const messages = [...fold.messages.keys()];
  console.log(JSON.stringify({ turns, messages, model: fold.config.model ?? null, running: fold.running?.seq ?? null, last: fold.last ?? 0, taken }));
}
