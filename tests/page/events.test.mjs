// What a client makes of events beyond text: the events themselves, what came with a
// message, arguments as they stream, and what does not fit.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Fold, GapError } from "../../client_demo/web/fold.js";
import { opened, settled, message, start, delta, done, read } from "./client_talk.mjs";

const skip = (seq, first = seq) => ({ type: "skip", conversation: "c", seq, first });
const toolDelta = (seq, text) => ({ type: "tool_delta", conversation: "c", seq, turn: 2, call: "2.1", name: "f", text });
const toolCall = (seq, more) => ({
  type: "tool_call", conversation: "c", seq, turn: 2, call: "2.1", name: "f", arguments: { n: 1 }, batch: 1, index: 2, deadline_at: "later", ...more,
});

function folded(...events) {
  const fold = new Fold();
  for (const event of events) fold.apply(event);
  return fold;
}

test("each event is told once and in order, when the fold has it", () => {
  const told = [];
  const event = ({ id, fold }, { seq, type }) => told.push([id, seq, type, fold.last]);
  const { socket } = opened({ handlers: { event } });
  socket.deliver(message(1, "m"), start(2, 1), delta(3, "a"), delta(3, "a"), skip(4), done(5, "a"));
  assert.deepEqual(told, [["c", 1, "message", 1], ["c", 2, "start", 2], ["c", 3, "delta", 3], ["c", 4, "skip", 4], ["c", 5, "done", 5]]);
});

test("what a handler of events throws harms nothing", async () => {
  const uncaught = [];
  globalThis.reportError = (fault) => uncaught.push(fault.message);
  const { client, socket } = opened({ handlers: { event: () => { throw new Error("mine"); } } });
  const answer = client.send("c", "hi");
  socket.deliver(message(1, answer.sendId), start(2, 1), delta(3, "a"), done(4, "a"));
  assert.equal(await answer.answer(), "a");
  assert.deepEqual(uncaught, ["mine", "mine", "mine", "mine"]);
  delete globalThis.reportError;
});

test("a message has what was given with it, a turn when it began", () => {
  const { socket, conversation } = opened();
  socket.deliver(message(1, "m", { metadata: { from: "mail" } }), { ...start(2, 1), at: "noon" }, message(3, "n"));
  const { messages, turns } = conversation.fold;
  assert.deepEqual(messages.get(1).metadata, { from: "mail" });
  assert.equal(messages.get(3).metadata, null);
  assert.equal(turns.get(2).at, "noon");
});

test("arguments that are asked for are shown as they come, until the call is complete", () => {
  const { client, socket } = opened();
  const { fold } = client.open("d", { include: ["tool_delta"] });
  assert.deepEqual(socket.last("open").include, ["tool_delta"]);
  for (const event of [message(1, "m"), start(2, 1), toolDelta(3, '{"n"')]) fold.apply({ ...event, conversation: "d" });
  const turn = fold.turns.get(2);
  const [part] = turn.parts;
  assert.deepEqual([part.status, part.partial, part.arguments, part.name, part.batch], ["streaming", '{"n"', null, "f", null]);
  fold.apply({ ...toolDelta(4, ":1}"), conversation: "d" });
  assert.deepEqual([part.partial, part.first, part.last, turn.revision], ['{"n":1}', 3, 4, 0]);
  fold.apply({ ...toolCall(5), conversation: "d" });
  assert.deepEqual(turn.parts, [part]);
  assert.deepEqual([part.status, part.partial, part.arguments, part.batch, part.index, part.deadlineAt], ["open", "", { n: 1 }, 1, 2, "later"]);
  assert.equal(turn.revision, 1); // a view that showed them starts over
  fold.apply({ ...toolDelta(6, "late"), conversation: "d" });
  assert.deepEqual([part.partial, part.last, turn.parts.length], ["", 5, 1]);
});

test("a call that never was complete is gone at the end, and no text with it", async () => {
  const { client, socket } = opened();
  const answer = client.send("c", "hi");
  const texts = read(answer);
  socket.deliver(message(1, answer.sendId), start(2, 1), delta(3, "a"), toolDelta(4, "{"), delta(5, "b"));
  await settled();
  socket.deliver(delta(6, "c"), done(7, "abc"));
  assert.deepEqual(await texts, ["ab", "c"]);
  assert.deepEqual(answer.turn.parts.map(({ kind }) => kind), ["text", "text"]);
  assert.deepEqual([answer.turn.revision, answer.turn.proven], [1, true]);
});

test("an event that is known changes nothing, of one known in part the rest is taken", () => {
  const fold = folded(message(1, "m"), start(2, 1), delta(3, "a"), delta(4, "b"));
  assert.equal(fold.apply(delta(4, "b")), false);
  assert.equal(fold.apply({ ...delta(5, "bc"), first: 4 }), true);
  assert.equal(fold.turns.get(2).text, "abc");
  assert.equal(fold.apply(skip(7, 4)), true);
  assert.equal(fold.last, 7);
});

test("what does not fit, or is another conversation's, changes nothing", () => {
  const fold = folded(message(1, "m"), start(2, 1), delta(3, "a"));
  const before = JSON.stringify([fold, fold.turns.get(2)]);
  assert.throws(() => fold.apply(delta(5, "c")), (fault) => fault instanceof GapError && fault.last === 3 && fault.event.seq === 5);
  assert.throws(() => fold.apply({ ...delta(4, "xb"), first: 3 }), { name: "GapError" });
  assert.throws(() => fold.apply(skip(6, 5)), { name: "GapError" });
  assert.throws(() => fold.apply({ ...delta(4, "b"), conversation: "d" }), { name: "RangeError", message: /d is none of c/ });
  assert.equal(JSON.stringify([fold, fold.turns.get(2)]), before);
});

test("of a text that something else interrupted no rest can be told", () => {
  const fold = folded(message(1, "m"), start(2, 1), delta(3, "a"), message(4, "n"));
  assert.throws(() => fold.apply({ ...delta(5, "ab"), first: 3 }), { name: "GapError" });
});

test("a fold begins with whichever event comes first, or where it is told to", () => {
  assert.equal(folded(delta(7, "end")).last, 7);
  assert.throws(() => new Fold({ last: 5 }).apply(delta(7, "end")), { name: "GapError" });
  assert.throws(() => new Fold({ conversation: "d" }).apply(delta(1, "a")), { name: "RangeError" });
});
