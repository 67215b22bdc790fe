import assert from "node:assert/strict";
import { test } from "node:test";

import { setUp, greet, online, opened, attach, message, start, delta } from "./online.mjs";

test("hello comes first, with the token where there is one", () => {
  const { client, network } = setUp({ token: () => "T" });
  client.start();
  assert.deepEqual(network.socket.protocols, ["wsserver.v1"]);
  client.send("c", "early");
  network.socket.accept();
  assert.deepEqual(network.socket.sent.map((frame) => frame.type), ["hello"]);
  assert.equal(network.socket.sent[0].token, "T");
  assert.equal(network.socket.sent[0].protocol, 1);
});

test("what was given before the welcome goes out after it, opens first", () => {
  const world = setUp();
  world.client.start();
  world.client.open("c", { config: { model: "m" } });
  const { sendId: id } = world.client.send("c", "hi");
  const socket = greet(world);
  assert.deepEqual(socket.commands.slice(1).map((frame) => frame.type), ["open", "send"]);
  assert.deepEqual(socket.last("open").config, { model: "m" });
  assert.equal(socket.last("send").id, id);
});

test("a send is shown at once, and once, whatever comes first", () => {
  const { client, socket, conversation } = opened();
  const { sendId: id } = client.send("c", "hi");
  assert.deepEqual([...conversation.sends.keys()], [id]);
  assert.equal(conversation.busy, true);
  socket.deliver(message(1, id));
  assert.equal(conversation.sends.size, 0);
  assert.equal(conversation.fold.items.length, 1);
  socket.deliver({ type: "reply", re: id, ok: true, outcome: "started", seq: 1 });
  assert.equal(conversation.fold.items.length, 1);
});

test("after a cut it opens from its cursor and sends again under the same id", async () => {
  const { client, socket, network, clock, replies } = opened();
  const answer = client.send("c", "hi");
  const { sendId: id } = answer;
  socket.deliver(message(1, id), start(2, 1), delta(3, "a"));
  socket.cut();
  assert.equal(client.status.state, "waiting");
  clock.pass(1_000);
  assert.equal(network.sockets.length, 2);
  const second = greet({ network });
  const [, open, send] = second.commands;
  assert.equal(open.type, "open");
  assert.equal(open.epoch, "e");
  assert.equal(open.after, 3);
  assert.deepEqual(send, socket.last("send"));
  const reply = { type: "reply", re: id, ok: true, outcome: "started", duplicate: true };
  second.deliver(reply);
  second.cut();
  clock.pass(60_000);
  assert.deepEqual(greet({ network }).commands.map((frame) => frame.type), ["hello", "open"]);
  await answer.accepted();
  assert.equal(replies.length, 1);
});

test("numbers that were had are dropped, and a gap makes it open again", () => {
  const { socket, conversation } = opened();
  socket.deliver(message(1), start(2, 1), delta(3, "a"), delta(3, "a"), delta(2, "x"));
  assert.equal(conversation.fold.turns.get(2).text, "a");
  socket.deliver(delta(5, "lost its 4"));
  const open = socket.last("open");
  assert.equal(open.after, 3);
  socket.deliver(delta(6, "void until the verdict"));
  assert.equal(conversation.fold.turns.get(2).text, "a");
  attach(socket, { head: 6 });
  socket.deliver(delta(6, "bcd", { first: 4 }));
  assert.equal(conversation.fold.turns.get(2).text, "abcd");
});

test("a merged frame that overlaps does not fit", () => {
  const { socket, conversation } = opened();
  socket.deliver(message(1), start(2, 1), delta(3, "a"), delta(4, "ab", { first: 3 }));
  assert.equal(conversation.fold.turns.get(2).text, "a");
  assert.equal(socket.last("open").after, 3);
});

test("of a skip that is known in part the rest is taken", () => {
  const { client, socket } = opened();
  socket.deliver(message(1), start(2, 1), { type: "skip", conversation: "c", first: 2, seq: 5 });
  assert.equal(client.cursor("c").last, 5);
  assert.equal(socket.sent.filter((frame) => frame.type === "open").length, 1);
});

test("numbers of an event type that is not known are used up", () => {
  const { client, socket } = opened();
  socket.deliver({ type: "hologram", conversation: "c", seq: 1 }, { type: "hologram" }, message(2));
  assert.equal(client.cursor("c").last, 2);
});

test("a text that is not the server's is taken anew, once", () => {
  const { client, socket, conversation } = opened();
  const opens = () => socket.sent.filter((frame) => frame.type === "open");
  const answer = () => {
    socket.deliver(message(1), start(2, 1), delta(3, "lost the en"));
    socket.deliver({
      type: "done", conversation: "c", seq: 4, turn: 2, status: "completed",
      text: { bytes: 14, crc32: 1 },
    });
  };
  answer();
  assert.equal(opens().length, 2);
  assert.deepEqual([opens()[1].epoch, opens()[1].after], [undefined, 0], "it is not made anew");
  assert.equal(conversation.fold.items.length, 0);
  attach(socket);
  answer();
  assert.equal(opens().length, 2);
  assert.equal(conversation.fold.turns.get(2).proven, false);
  assert.equal(client.status.state, "online");
});

test("a gap that opening again does not close costs the connection, not for ever", () => {
  const { socket, clock, network, client } = opened();
  socket.deliver(message(1));
  for (let i = 0; i < 4; i += 1) {
    socket.deliver(delta(9, "x"));
    if (socket.closedBy === null) attach(socket);
  }
  assert.equal(socket.closedBy, "client");
  assert.equal(client.status.state, "waiting");
  clock.pass(2_000);
  assert.equal(network.sockets.length, 2);
});

test("a reset drops what was there before the first new event", () => {
  const { socket, clock, network, conversation } = opened();
  socket.deliver(message(1), start(2, 1), delta(3, "old"));
  socket.cut();
  clock.pass(1_000);
  const second = greet({ network });
  attach(second, { outcome: "reset", reason: "expired", oldest: 8, head: 8 });
  assert.equal(conversation.fold.items.length, 0);
  second.deliver(message(8));
  assert.deepEqual(conversation.fold.items.map((item) => item.seq), [8]);
});

test("heads in heartbeats show a loss the second time", () => {
  const { socket } = opened();
  const ping = { type: "ping", t: 1, heads: { c: 1, other: 7 } };
  const opens = () => socket.sent.filter((frame) => frame.type === "open").length;
  socket.deliver(ping);
  assert.equal(opens(), 1);
  socket.deliver(ping);
  assert.equal(opens(), 2);
});

test("an interrupt says what was seen", () => {
  const { client, socket } = opened();
  client.interrupt("c", { turn: 2, seenSeq: 7 });
  const { id, ...frame } = socket.last("interrupt");
  assert.ok(id);
  assert.deepEqual(frame, { type: "interrupt", conversation: "c", turn: 2, seen_seq: 7 });
});

test("a refused send keeps its text and its id", () => {
  const { client, socket, conversation } = opened();
  const { sendId: id } = client.send("c", "hi", { policy: "reject" });
  const error = { code: "busy", message: "A turn runs.", retryable: true };
  socket.deliver({ type: "reply", re: id, ok: false, error });
  assert.deepEqual(conversation.sends.get(id).error, error);
  assert.equal(conversation.busy, false);
  const first = socket.last("send");
  client.sendAgain("c", id);
  assert.notEqual(socket.last("send"), first);
  assert.deepEqual(socket.last("send"), first);
  assert.equal(conversation.sends.get(id).error, null);
  client.discard("c", id);
  assert.equal(conversation.sends.size, 0);
});

test("draining holds a send for the next connection, a rate limit for its time", () => {
  const { client, socket, clock, network } = opened();
  const { sendId: id } = client.send("c", "hi");
  const refuse = (target, code, more) =>
    target.deliver({ type: "reply", re: id, ok: false, error: { code, message: "", retryable: true, ...more } });
  refuse(socket, "rate_limited", { retry_after_ms: 700 });
  clock.pass(700);
  assert.equal(socket.sent.filter((frame) => frame.type === "send").length, 2);
  refuse(socket, "draining");
  socket.cut(1012);
  clock.pass(1_000);
  assert.equal(greet({ network }).last("send").id, id);
});

const request = (call, more) => ({
  type: "tool_request", conversation: "c", turn: 2, call, name: "f", arguments: { n: 2 },
  deadline_ms: 1_000, redelivered: false, ...more,
});

test("a tool runs once per call; its result is given until the server has it", async () => {
  let runs = 0;
  const tools = { f: { description: "d", parameters: {}, run: ({ n }) => ((runs += 1), n * 2) } };
  const { client, socket, clock, network } = opened({ tools });
  assert.deepEqual(socket.last("open").handles, ["f"]);
  assert.deepEqual(client.toolDeclarations, [{ name: "f", description: "d", parameters: {} }]);
  socket.deliver(request("x"), request("x", { redelivered: true }));
  await Promise.resolve();
  const result = socket.last("tool_result");
  assert.deepEqual(result, { type: "tool_result", id: result.id, conversation: "c", call: "x", output: 4 });
  socket.cut();
  clock.pass(1_000);
  const second = greet({ network });
  assert.deepEqual(second.last("tool_result"), result);
  attach(second);
  second.deliver(request("x", { redelivered: true }));
  await Promise.resolve();
  assert.equal(runs, 1);
});

test("what was asked before a conversation was closed and opened anew is not run", () => {
  const runs = [];
  const { client, socket } = opened({ tools: { f: { run: (_, { call }) => (runs.push(call), new Promise(() => {})) } } });
  client.close("c");
  client.open("c");
  socket.deliver(request("x"));
  assert.deepEqual(runs, []);
  attach(socket);
  socket.deliver(request("x", { redelivered: true }));
  assert.deepEqual(runs, ["x"]);
});

test("a tool is not run again where its conversation could not be deleted", async () => {
  let runs = 0;
  const { client, socket } = opened({ tools: { f: { run: () => ((runs += 1), new Promise(() => {})) } } });
  socket.deliver(request("x"));
  const refused = client.delete("c");
  const { id } = socket.last("delete");
  const error = { code: "store_unavailable", message: "The disk is full.", retryable: true };
  socket.deliver({ type: "reply", re: id, ok: false, error });
  await assert.rejects(refused, { code: "store_unavailable" });
  client.open("c");
  attach(socket);
  socket.deliver(request("x", { redelivered: true }));
  assert.equal(runs, 1);
  const deleted = client.delete("c");
  socket.deliver({ type: "reply", re: socket.last("delete").id, ok: true, outcome: "deleted" });
  await deleted;
  client.open("c");
  attach(socket, { epoch: "f" });
  socket.deliver(request("x"));
  assert.equal(runs, 2);
});

test("what a tool throws is an error result; nothing at all is null", async () => {
  const tools = {
    f: { run: () => { throw new Error("no such place"); } },
    g: { run: async () => undefined },
  };
  const { socket } = opened({ tools });
  socket.deliver(request("x"), request("y", { name: "g" }), request("z", { name: "unknown" }));
  await new Promise(setImmediate);
  const results = socket.sent.filter((frame) => frame.type === "tool_result");
  assert.deepEqual(Object.fromEntries(results.map(({ call, output, error }) => [call, output ?? error ?? null])).x, { message: "no such place" });
  assert.equal(results.find(({ call }) => call === "y").output, null);
  assert.ok(results.find(({ call }) => call === "z").error.message);
});

test("a tool's output that JSON can't hold is an error result, and hinders nothing", async () => {
  const circle = {};
  circle.circle = circle;
  const outputs = { x: 5n, y: circle, z: () => {} };
  const { client, socket, clock, network } = opened({ tools: { f: { run: (_, { call }) => outputs[call] } } });
  socket.deliver(request("x"), request("y"), request("z"));
  await new Promise(setImmediate);
  const results = socket.sent.filter(({ type }) => type === "tool_result");
  assert.deepEqual(results.map(({ call }) => call), ["x", "y", "z"]);
  for (const { error } of results) assert.match(error.message, /BigInt|circular|a function/);
  socket.cut();
  clock.pass(1_000);
  const second = greet({ network });
  client.send("c", "hi");
  assert.equal(second.last("send").content, "hi");
});

test("a send that JSON can't hold throws; what changes after a send is not in it", () => {
  const { client, network } = setUp();
  const metadata = {};
  metadata.self = metadata;
  assert.throws(() => client.send("c", "bad", { metadata }), TypeError);
  const content = [{ type: "text", text: "as given" }];
  client.send("c", content);
  content[0].text = "changed";
  client.start();
  const socket = greet({ network });
  assert.deepEqual(socket.commands.map(({ type }) => type), ["hello", "open", "send"]);
  assert.equal(socket.last("send").content[0].text, "as given");
});

for (const token of ["now", async () => "later"]) {
  test(`an address that no socket takes stops the client (${typeof token} for a token)`, async () => {
    class Unwilling {
      constructor() {
        throw new SyntaxError("no address");
      }
    }
    const { client, clock } = setUp({ WebSocket: Unwilling, token });
    const answer = client.send("c", "hi");
    client.start();
    await assert.rejects(answer.accepted(), { name: "StoppedError", message: /can't be reached: no address/ });
    assert.equal(client.status.state, "stopped");
    assert.deepEqual(clock.waits, []);
  });
}

test("the window opens when what arrived is painted", () => {
  const { client, socket } = opened({ windowBytes: 1_000 });
  assert.equal(socket.last("open").window_bytes, 1_000);
  socket.deliver(message(1));
  client.painted("c");
  assert.equal(socket.last("ack"), undefined);
  socket.deliver(start(2, 1), delta(3, "x".repeat(300)));
  client.painted("c");
  assert.equal(socket.last("ack").seq, 3);
  client.painted("c");
  assert.equal(socket.sent.filter((frame) => frame.type === "ack").length, 1);
});

test("text is gathered for who asks, at each connection anew", () => {
  assert.equal("max_delay_ms" in opened().socket.last("open"), false);
  const { network, clock, socket } = opened({ maxDelayMs: 0 });
  assert.equal(socket.last("open").max_delay_ms, 0);
  socket.cut(1006);
  clock.pass(1_000);
  assert.equal(greet({ network }).last("open").max_delay_ms, 0);
});

test("a fault without a command is in the status until the next welcome", () => {
  const { socket, client, clock, network } = online();
  socket.deliver({ type: "error", code: "unauthorized", message: "No.", retryable: false });
  assert.equal(client.status.error.code, "unauthorized");
  socket.cut(1011);
  clock.pass(1_000);
  greet({ network });
  assert.equal(client.status.error, null);
});
