import assert from "node:assert/strict";
import { test } from "node:test";

import { crc32, Fold } from "../../client_demo/web/fold.js";

const encode = (text) => new TextEncoder().encode(text);
const proof = (text) => ({ bytes: encode(text).length, crc32: crc32(encode(text)) });

function folded(...events) {
  const fold = new Fold();
  events.forEach((event, i) => fold.apply({ conversation: "c", seq: i + 1, ...event }));
  return fold;
}

const message = { type: "message", id: "s1", role: "user", content: "hi", by: "me" };
const start = { type: "start", turn: 2, message: 1, model: "m", request_id: "r" };
const delta = (text) => ({ type: "delta", turn: 2, text });
const done = (text, more) => ({ type: "done", turn: 2, status: "completed", text: proof(text), ...more });

test("crc32 is the one of zlib", () => {
  assert.equal(crc32(encode("123456789")), 0xcbf43926);
  assert.equal(crc32(encode("")), 0);
});

test("an answer is its deltas, proven by its done", () => {
  const fold = folded(message, start, delta("Grüß "), delta("Gott 👋"), done("Grüß Gott 👋"));
  const turn = fold.turns.get(2);
  assert.equal(turn.text, "Grüß Gott 👋");
  assert.equal(turn.proven, true);
  assert.equal(fold.running, null);
});

test("a text that lost something is not proven", () => {
  const turn = folded(message, start, delta("Grüß"), done("Grüß Gott")).turns.get(2);
  assert.equal(turn.proven, false);
});

test("an answer that was cut here after its end is proven by the cut", () => {
  const fold = new Fold();
  const apply = (seq, event) => fold.apply({ conversation: "c", seq, ...event });
  apply(1, message);
  apply(2, start);
  apply(3, delta("Grüß"));
  apply(4, { type: "skip" });
  apply(5, done("Grüß Gott"));
  assert.equal(fold.turns.get(2).proven, null);
  apply(6, { type: "cut", turn: 2, keep_through: 3, by: "me", text: proof("Grüß") });
  assert.equal(fold.turns.get(2).proven, true);
});

test("reasoning, calls and text stand in their order, text alone is the answer", () => {
  const turn = folded(
    message,
    start,
    { type: "reasoning", turn: 2, text: "hm" },
    delta("a"),
    { type: "tool_call", turn: 2, call: "x", name: "f", arguments: { n: 1 } },
    { type: "tool_result", turn: 2, call: "x", status: "ok", output: 3, by: "me" },
    delta("b"),
  ).turns.get(2);
  assert.deepEqual(turn.parts.map((part) => part.kind), ["reasoning", "text", "tool", "text"]);
  assert.deepEqual(turn.parts[2].result, { status: "ok", output: 3, by: "me" });
  assert.equal(turn.text, "ab");
});

test("a cut drops what is behind its bytes, over parts and inside of one", () => {
  const turn = folded(
    message,
    start,
    delta("äb"),
    { type: "reasoning", turn: 2, text: "hm" },
    delta("cde"),
    { type: "cut", turn: 2, keep_through: 3, by: "me", text: proof("äbc") },
    done("äbc", { status: "interrupted" }),
  ).turns.get(2);
  assert.equal(turn.text, "äbc");
  assert.equal(turn.revision, 1);
  assert.equal(turn.proven, true);
  assert.equal(turn.keepThrough, 3);
});

test("a merged frame is the same as its pieces", () => {
  const merged = folded(message, start, { type: "delta", turn: 2, first: 3, seq: 5, text: "abc" });
  const pieces = folded(message, start, delta("a"), delta("b"), delta("c"));
  assert.equal(merged.turns.get(2).text, pieces.turns.get(2).text);
  assert.equal(merged.turns.get(2).parts[0].first, 3);
  assert.equal(merged.turns.get(2).parts[0].last, 5);
});

test("each turn stands after the message it answers", () => {
  const fold = new Fold();
  const apply = (seq, event) => fold.apply({ seq, ...event });
  apply(1, { ...message, id: "s1" });
  apply(2, { ...start, turn: 2, message: 1 });
  apply(3, { ...message, id: "s2" });
  apply(4, { ...message, id: "s3" });
  apply(5, { ...done(""), turn: 2 });
  apply(6, { ...start, turn: 6, message: 3 });
  assert.deepEqual(fold.items.map((item) => item.seq), [1, 2, 3, 6, 4]);
  assert.equal(fold.running.seq, 6);
  assert.equal(fold.messages.get(3).turn, 6);
  assert.equal(fold.messages.get(4).turn, null);
});

test("a log that begins inside a turn shows what there is, and proves nothing", () => {
  const fold = folded(delta("end"), done("beginning and end"));
  const turn = fold.turns.get(2);
  assert.equal(turn.text, "end");
  assert.equal(turn.whole, false);
  assert.equal(turn.proven, null);
});

test("a cut of a turn that is gone, and types of a later version, are passed over", () => {
  const fold = folded(
    { type: "cut", turn: 2, keep_through: 3, by: "me", text: proof("") },
    { type: "hologram", turn: 2 },
    { type: "hologram" },
  );
  assert.deepEqual(fold.items, []);
});

test("what still comes of an answer that was cut is not shown", () => {
  const cut = { type: "cut", turn: 2, keep_through: 3, by: "me", text: proof("a") };
  const late = { type: "reasoning", turn: 2, text: "hm" };
  const turn = folded(message, start, delta("a"), cut, delta("b"), late, done("a")).turns.get(2);
  assert.equal(turn.text, "a");
  assert.equal(turn.proven, true);
  assert.equal(turn.parts.at(-1).text, "hm");
});

test("a call that was invalid is known from its result", () => {
  const invalid = { name: "f", arguments: "{", batch: 1, index: 2, upstream_id: "u" };
  const result = { type: "tool_result", turn: 2, call: "x", status: "invalid", output: "no JSON", by: "server" };
  const [part] = folded(message, start, { ...result, invalid }).turns.get(2).parts;
  assert.equal(part.name, "f");
  assert.equal(part.arguments, "{");
  assert.equal(part.result.status, "invalid");
  assert.deepEqual([part.status, part.partial, part.batch, part.index], ["invalid", "{", 1, 2]);
});
