// Reads logs, one a line, and writes what `fold.js` makes of each; for
// `test_fold_is_one.py`, which compares that with what `protocol.fold` makes.

import { createInterface } from "node:readline";

import { Fold } from "../../client_demo/web/fold.js";

const joined = (turn, kind) => turn.parts.map((part) => (part.kind === kind ? part.text : "")).join("");

function shown(turn) {
  return {
    turn: turn.seq,
    whole: turn.whole,
    message: turn.message,
    model: turn.model,
    text: turn.text,
    reasoning: joined(turn, "reasoning"),
    refusal: joined(turn, "refusal"),
    calls: turn.parts.filter((part) => part.kind === "tool").map((part) => [part.call, part.name, part.result?.status ?? "open"]).toSorted(),
    status: turn.done?.status ?? null,
    failed: turn.error !== null,
    proven: turn.proven,
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const fold = new Fold();
  for (const event of JSON.parse(line)) fold.apply(event);
  const turns = [...fold.turns.values()].map(shown);
  const messages = [...fold.messages.keys()];
  console.log(JSON.stringify({ turns, messages, model: fold.config.model ?? null, running: fold.running?.seq ?? null }));
}
