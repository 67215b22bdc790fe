// What applications do with a client: ask, stop, fork, open, delete, and wait for what
// comes of it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { opened, greet, attach, settled, ok, refused, message, start, delta, done, request, read } from "./client_talk.mjs";
import { WELCOME } from "./doubles.mjs";
import { online } from "./online.mjs";

test("an answer is read as it comes, over a cut", async () => {
  const { client, socket, clock, network } = opened();
  const answer = client.send("c", "hi");
  const texts = read(answer);
  socket.deliver(message(1, answer.sendId), start(2, 1), delta(3, "One "));
  await settled();
  socket.deliver(delta(4, "two"));
  await settled();
  socket.cut();
  clock.pass(1_000);
  const second = greet(network);
  attach(second);
  second.deliver({ type: "reasoning", conversation: "c", seq: 5, turn: 2, text: "hm" }, delta(6, " three"), done(7, "One two three"));
  assert.deepEqual(await texts, ["One ", "two", " three"]);
  assert.equal((await answer.wait()).status, "completed");
  assert.equal(answer.done, answer.turn.done);
  assert.equal(await answer.answer(), "One two three");
});

test("an answer that was complete before it is read is read at once", async () => {
  const { client, socket } = opened();
  const answer = client.send("c", "hi");
  socket.deliver(message(1, answer.sendId), start(2, 1), delta(3, "All"), done(4, "All"));
  assert.deepEqual(await read(answer), ["All"]);
});

test("an answer can be stopped: the turn by what was had, a send that waits by its id", async () => {
  const { client, socket } = opened();
  const answer = client.send("c", "hi");
  answer.interrupt();
  assert.equal(socket.last("interrupt").send, answer.sendId);
  socket.deliver(message(1, answer.sendId), start(2, 1), delta(3, "One"));
  answer.interrupt();
  const { turn, seen_seq: seen } = socket.last("interrupt");
  assert.deepEqual([turn, seen], [2, 3]);
});

test("a message that joins a turn is answered by it", async () => {
  const { client, socket } = opened();
  socket.deliver(message(1, "other"), start(2, 1));
  const answer = client.send("c", "and this", { policy: "steer" });
  socket.deliver(message(3, answer.sendId, { steers: 2 }), delta(4, "Yes"), done(5, "Yes"));
  assert.deepEqual(await read(answer), ["Yes"]);
});

test("no answer has a reason: a refusal, or the end of the client", async () => {
  const { client, socket } = opened();
  const first = client.send("c", "hi");
  socket.deliver(refused(first.sendId, "queue_full"));
  await assert.rejects(read(first), { name: "CommandError", code: "queue_full", message: "It is queue_full." });
  await assert.rejects(first.accepted(), { code: "queue_full" });
  await assert.rejects(first.wait(), { code: "queue_full" });
  const second = client.send("c", "hi");
  socket.cut(4401);
  await assert.rejects(read(second), { name: "CommandError", code: "unauthorized", message: /4401/ });
});

test("what waits for a reply or an answer fails where the client stops", async () => {
  const { client, socket } = opened();
  const interrupted = client.interrupt("c");
  const asked = client.ask("c", "hi");
  client.stop();
  await assert.rejects(interrupted, { name: "StoppedError", code: null });
  await assert.rejects(asked, { name: "StoppedError" });
  assert.ok(socket);
});

test("an answer ends with its conversation", async () => {
  const { client, socket } = opened();
  const closed = client.ask("c", "hi");
  client.close("c");
  await assert.rejects(closed, { name: "CommandError", code: "conversation_not_found" });
  client.open("c");
  const lost = client.ask("c", "hi");
  socket.deliver(refused(socket.last("open").id, "forbidden"));
  await assert.rejects(lost, { code: "forbidden" });
});

test("what is not opened anew is closed, and the server asks others to run its calls", () => {
  const { client, socket } = opened();
  client.open("c", { config: { params: 5 } });
  const refusal = refused(socket.last("open").id, "bad_frame");
  assert.equal(socket.last("close"), undefined);
  socket.deliver(refusal);
  const { id, conversation } = socket.last("close");
  assert.equal(conversation, "c");
  socket.deliver(ok(id, "closed"));
  assert.equal(client.conversations.get("c").error.code, "bad_frame");
  socket.deliver(refusal);
  assert.equal(socket.last("close").id, id, "once");
});

test("what is not opened anew is asked for again by a send, from where it was", async () => {
  const { client, socket, clock, network } = opened();
  const first = client.ask("c", "hi");
  client.open("c", { config: { params: 5 } });
  socket.deliver(refused(socket.last("open").id, "bad_frame"));
  await assert.rejects(first, { code: "bad_frame" });
  socket.cut();
  clock.pass(1_000);
  const second = greet(network);
  assert.equal(second.last("open"), undefined);
  const { last, epoch } = client.cursor("c");
  const answer = client.ask("c", "again");
  const open = second.last("open");
  assert.deepEqual([open.after, open.epoch, open.config], [last, epoch, { params: 5 }]);
  second.deliver(refused(open.id, "bad_frame"));
  await assert.rejects(answer, { code: "bad_frame" });
  client.open("c");
  attach(second);
  assert.equal(client.conversations.get("c").error, null);
});

test("what this connection never opened is not closed", () => {
  const { client, socket } = online();
  client.open("c");
  socket.deliver(refused(socket.last("open").id, "forbidden"));
  assert.equal(socket.last("close"), undefined);
});

test("what is too large to be opened anew is closed", () => {
  const { client, socket } = opened();
  client.open("c", { config: { instructions: "x".repeat(2 ** 20) } });
  assert.equal(socket.last("close")?.conversation, "c");
});

test("an answer fails as its turn did, and where it is not whole", async () => {
  const { client, socket } = opened();
  const failed = client.send("c", "hi");
  const error = { type: "error", conversation: "c", seq: 3, turn: 2, code: "upstream_rate_limited", message: "Slow.", retryable: true, retry_after_ms: 1_500 };
  socket.deliver(message(1, failed.sendId), start(2, 1), error, done(4, "", { status: "failed" }));
  await assert.rejects(failed.answer(), { name: "TurnError", code: "upstream_rate_limited", retryable: true, retryAfterSeconds: 1.5 });
  assert.equal((await failed.wait()).status, "failed");
  assert.deepEqual(await read(failed), []);
  const cut = client.send("c", "hi");
  socket.deliver(message(5, cut.sendId), start(6, 5), delta(7, "Half", 6), done(8, "Half", { turn: 6, status: "incomplete", reason: "max_output_tokens" }));
  await assert.rejects(cut.answer(), { name: "IncompleteAnswerError", text: "Half", message: /max_output_tokens/ });
});

test("a reset voids what was read, and lets the rest begin anew", async () => {
  const { client, socket, network, clock } = opened();
  const half = client.send("c", "hi");
  const fresh = client.send("c", "and");
  const gone = client.send("c", "or");
  for (const { sendId: id } of [half, fresh, gone]) socket.deliver(ok(id, "queued"));
  await half.accepted();
  const texts = half.pieces();
  socket.deliver(message(1, half.sendId), start(2, 1), delta(3, "One "));
  assert.equal((await texts.next()).value, "One ");
  socket.cut();
  clock.pass(1_000);
  const second = greet(network);
  attach(second, { outcome: "reset", reason: "expired", oldest: 5, head: 8 });
  await assert.rejects(texts.next(), { name: "ConversationResetError", reason: "expired" });
  second.deliver(message(5, fresh.sendId), { ...start(6, 5) }, delta(7, "Yes", 6), done(8, "Yes", { turn: 6 }), { type: "caught_up", conversation: "c", seq: 8 });
  assert.equal(await fresh.answer(), "Yes");
  await assert.rejects(gone.wait(), { name: "ConversationResetError" });
});

test("a conversation that exists is configured anew where it is otherwise", () => {
  const tools = [{ name: "f", parameters: {} }];
  const configures = (options, config) => {
    const { client, socket } = opened();
    client.open("d", options);
    attach(socket, { head: 1, server_tools: ["search"] });
    assert.deepEqual(client.conversations.get("d").serverTools, ["search"]);
    socket.deliver({ type: "config", conversation: "d", seq: 1, config }, { type: "caught_up", conversation: "d", seq: 1 });
    return socket.last("configure")?.config;
  };
  assert.deepEqual(configures({ config: { model: "n", tools } }, { model: "m", tools: [{ name: "f" }] }), { model: "n" });
  assert.equal(configures({ config: { model: "m", instructions: null } }, { model: "m" }), undefined);
  assert.deepEqual(configures({ config: { instructions: null } }, { instructions: "Be brief." }), { instructions: null });
  assert.equal(configures({ config: { model: "n" }, reconfigure: false }, { model: "m" }), undefined);
  assert.deepEqual(configures({ config: { tools: [{ name: "f", timeout_s: null }] } }, { tools: [{ name: "f" }] })?.tools.length, 1);
});

test("a stop and a send that replaces say what had arrived", () => {
  const { client, socket } = opened();
  socket.deliver(message(1, "s"), start(2, 1), delta(3, "One"));
  client.interrupt("c");
  assert.deepEqual([socket.last("interrupt").turn, socket.last("interrupt").seen_seq], [2, 3]);
  client.send("c", "no, this", { policy: "interrupt" });
  assert.equal(socket.last("send").seen_seq, 3);
  client.fork("c");
  assert.equal(socket.last("fork").through, 3);
});

test("fork, configure, delete and close are promises of what the server says", async () => {
  const { client, socket } = opened();
  const fork = client.fork("c", 4, { new: "d" });
  const { id, ...frame } = socket.last("fork");
  assert.deepEqual(frame, { type: "fork", conversation: "c", through: 4, new: "d" });
  socket.deliver(ok(id, "created", { conversation: "d" }));
  assert.equal(await fork, "d");
  const configured = client.configure("c", { model: "m" });
  socket.deliver(refused(socket.last("configure").id, "bad_model"));
  await assert.rejects(configured, { name: "CommandError", code: "bad_model", retryable: false });
  const deleted = client.delete("c");
  assert.equal(client.conversations.size, 0);
  socket.deliver(ok(socket.last("delete").id, "deleted"));
  assert.equal((await deleted).outcome, "deleted");
});

test("what is deleted elsewhere ends as by a delete of one's own", async () => {
  const gone = [];
  const handlers = { deleted: (id, error) => gone.push([id, error.code, error.message]) };
  let signal;
  const tools = { f: { run: (_, context) => new Promise(() => ({ signal } = context)) } };
  const removed = [];
  const keep = { load: () => [], add() {}, remove: (id) => removed.push(id) };
  const { client, socket, clock, network } = opened({ handlers, tools, keep });
  const [running, waiting] = [client.send("c", "hi"), client.send("c", "and")];
  socket.deliver(message(1, running.sendId), ok(running.sendId, "started"), start(2, 1), request("k"));
  const configured = client.configure("c", { model: "m" });
  await settled();
  assert.equal(signal.aborted, false);
  socket.deliver({ type: "error", code: "conversation_not_found", message: "It was deleted.", retryable: false, gone: "c" });
  await settled();
  assert.deepEqual(gone, [["c", "conversation_not_found", "It was deleted."]]);
  const said = { name: "CommandError", code: "conversation_not_found", message: "It was deleted." };
  for (const ended of [running.wait(), waiting.accepted(), configured]) await assert.rejects(ended, said);
  assert.equal(signal.aborted, true);
  assert.deepEqual(removed, [running.sendId, waiting.sendId]);
  assert.equal(client.conversations.size, 0);
  assert.equal(client.status.error, null, "it is no fault of the connection");
  socket.cut();
  clock.pass(1_000);
  assert.deepEqual(greet(network).sent.map(({ type }) => type), ["hello", "ping"]);
});

test("what was deleted while the connection was down is not made anew, and what was to be said in it is told", async () => {
  const gone = [];
  const handlers = { deleted: (id, { code }, unsent) => gone.push([id, code, unsent.map(({ content }) => content)]) };
  const { client, socket, clock, network } = opened({ handlers });
  const [said, first] = [client.send("c", "said"), client.send("c", "one")];
  socket.deliver(message(1, said.sendId), ok(said.sendId, "started"));
  socket.cut();
  const second = client.send("c", "two");
  clock.pass(1_000);
  const next = greet(network);
  next.deliver(refused(next.last("open").id, "conversation_not_found"));
  assert.deepEqual(gone, [["c", "conversation_not_found", ["one", "two"]]]);
  const lost = { name: "CommandError", code: "conversation_not_found", message: /no longer has this conversation/ };
  for (const answer of [said, first, second]) await assert.rejects(answer.wait(), lost);
  assert.equal(client.conversations.size, 0);
  next.cut();
  clock.pass(5_000);
  assert.deepEqual(greet(network).sent.map(({ type }) => type), ["hello", "ping"]);
});

test("what is opened only if it is there is not made where it is not", () => {
  const gone = [];
  const { client, socket, clock, network } = opened({ handlers: { deleted: (id) => gone.push(id) } });
  client.open("d", { create: false });
  assert.equal(socket.last("open").after, 0);
  socket.deliver(refused(socket.last("open").id, "conversation_not_found"));
  client.open("e", { create: false });
  attach(socket, { head: 3, oldest: 2 });
  assert.deepEqual([gone, client.cursor("e")?.last], [["d"], 1]);
  socket.cut();
  clock.pass(1_000);
  const opens = greet(network).sent.filter(({ type }) => type === "open");
  assert.deepEqual(opens.map(({ conversation, epoch, after }) => [conversation, epoch, after]), [["c", "e", 0], ["e", "e", 1]]);
});

test("what is longer than the server takes is refused here and kept on the screen", async () => {
  const { client, socket, conversation } = opened({}, { ...WELCOME, limits: { frame_bytes: 1_024 } });
  const refusal = client.send("c", "漢".repeat(400));
  const { sendId: id } = refusal;
  await assert.rejects(refusal.accepted(), { code: "too_large" });
  assert.equal(socket.last("send"), undefined);
  assert.equal(conversation.sends.get(id).error.code, "too_large");
  client.send("c", "漢".repeat(200));
  assert.ok(socket.last("send"));
});

test("ids are random where there is no HTTPS too", () => {
  const { client, socket } = opened({ newId: undefined });
  const ids = Array.from({ length: 100 }, () => client.send("c", "hi").sendId);
  assert.equal(new Set(ids).size, 100);
  assert.ok(ids.every((id) => /^[0-9a-f]{32}$/.test(id)));
  assert.ok(socket.last("send"));
});
