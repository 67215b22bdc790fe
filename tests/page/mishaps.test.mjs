// What an application, a clock or a server does wrong harms nothing beside it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { crc32 } from "../../client_demo/web/fold.js";
import { SYSTEM_CLOCK } from "../../client_demo/web/runtime/link.js";
import { WELCOME } from "./doubles.mjs";
import { attach, delta, greet, message, online, opened, setUp, start } from "./online.mjs";

/** What is reported as uncaught while `run` runs. */
function reported(run) {
  const faults = [];
  globalThis.reportError = (fault) => faults.push(fault.message);
  try {
    run();
  } finally {
    delete globalThis.reportError;
  }
  return faults;
}

const failing = (name) => () => {
  throw new Error(name);
};

test("a handler that throws is reported, and the client goes on", async () => {
  const handlers = Object.fromEntries(["change", "status", "reply", "expiring"].map((name) => [name, failing(name)]));
  const { client, network, clock } = setUp({ handlers });
  const faults = reported(() => {
    client.start();
    greet({ network });
    client.open("c");
    attach(network.socket);
    client.send("c", "hi");
    network.socket.deliver({ type: "auth_expiring", in_ms: 1 });
  });
  assert.deepEqual(new Set(faults), new Set(["change", "status", "expiring"]));
  const asked = client.configure("c", { model: "m" });
  assert.deepEqual(
    reported(() => network.socket.deliver({ type: "reply", re: network.socket.last("configure").id, ok: true, outcome: "configured" })),
    ["reply"],
  );
  assert.equal((await asked).outcome, "configured");
  client.close("c");
  assert.deepEqual(reported(() => network.socket.cut()), ["reply", "status"]);
  reported(() => clock.pass(1_000));
  assert.equal(network.sockets.length, 2, "it dials again");
});

test("a keeper that throws loses no reply", async () => {
  const keep = { load: () => [], add: failing("add"), remove: failing("remove") };
  const { client, socket } = opened({ keep });
  let answer;
  assert.deepEqual(reported(() => (answer = client.send("c", "hi"))), ["add"]);
  const { id } = socket.last("send");
  assert.deepEqual(reported(() => socket.deliver({ type: "reply", re: id, ok: true, outcome: "started" })), ["remove"]);
  await answer.accepted();
});

test("who stops the client in a handler has stopped it", () => {
  const handlers = { reply: () => client.stop() };
  const { client, network, clock, socket } = opened({ handlers });
  client.close("c");
  socket.cut();
  assert.equal(client.status.state, "stopped");
  clock.pass(60_000);
  assert.equal(network.sockets.length, 1);
});

test("settings that JSON can't hold are refused where they are given", () => {
  const { client, network, clock } = setUp();
  client.open("c");
  assert.throws(() => client.open("d", { config: { params: { top_k: 1n } } }), TypeError);
  client.start();
  greet({ network });
  assert.deepEqual(network.socket.commands.map(({ type, conversation }) => [type, conversation]).slice(1), [["open", "c"]]);
  assert.deepEqual([...client.conversations.keys()], ["c"]);
  clock.pass(0);
});

test("settings that are changed after they were given change nothing", () => {
  const { client, network } = setUp();
  const config = { model: "m" };
  client.open("c", { config });
  config.model = "n";
  client.start();
  greet({ network });
  assert.equal(network.socket.last("open").config.model, "m");
});

test("an open that the server would not take is not sent", () => {
  const { client, network } = setUp();
  client.start();
  greet({ network }, { ...WELCOME, limits: { frame_bytes: 1_000 } });
  const { sends } = client.open("c", { config: { instructions: "é".repeat(500) } });
  assert.equal(sends.size, 0);
  assert.equal(network.socket.last("open"), undefined);
  assert.equal(client.conversations.get("c").error.code, "too_large");
});

test("a server that beats fast and falls silent is given up", () => {
  const { client, network, clock } = setUp();
  client.start();
  const socket = greet({ network }, { ...WELCOME, heartbeat_ms: 1_000 });
  clock.pass(2_499);
  assert.equal(socket.closedBy, null);
  clock.pass(1);
  assert.equal(socket.closedBy, "client");
});

test("who wakes the client often finds a dead socket all the same", () => {
  const { client, clock, socket } = online();
  clock.pass(1_000);
  for (let second = 0; second < 6; second += 1) {
    client.wake();
    clock.pass(1_000);
  }
  assert.equal(socket.closedBy, "client");
});

test("a page that was hidden when its time for an answer ended asks anew", () => {
  let hidden = false;
  const { client, clock, socket } = online({ hidden: () => hidden });
  clock.pass(1_000);
  client.wake();
  hidden = true;
  clock.pass(5_000);
  assert.equal(socket.closedBy, null);
  hidden = false;
  client.wake();
  clock.pass(5_000);
  assert.equal(socket.closedBy, "client");
});

test("a wait that is too long for a platform's timer is a long one", async () => {
  let ran = false;
  const timers = [2 ** 31, Infinity].map((ms) => SYSTEM_CLOCK.setTimeout(() => (ran = true), ms));
  await new Promise((resolve) => setTimeout(resolve, 20));
  for (const timer of timers) SYSTEM_CLOCK.clearTimeout(timer);
  assert.equal(ran, false);
});

test("several may read one answer, and each comes to its end", async () => {
  const { client, socket } = opened();
  const answer = client.send("c", "hi");
  const [one, other] = [answer.pieces(), answer.pieces()];
  const [first, second] = [one.next(), other.next()];
  socket.deliver(message(1, answer.sendId), start(2, 1), delta(3, "word"));
  const read = await Promise.race([first, second]);
  assert.deepEqual(read, { value: "word", done: false });
  const proof = { bytes: 4, crc32: crc32(new TextEncoder().encode("word")) };
  socket.deliver({ type: "done", conversation: "c", seq: 4, turn: 2, status: "completed", text: proof });
  await answer.wait();
  assert.deepEqual(await Promise.all([first, second]), [{ value: "word", done: false }, { value: undefined, done: true }]);
});

test("credentials may come by any promise", async () => {
  const { client, network } = setUp({ token: () => ({ then: (take) => take("t") }) });
  client.start();
  await new Promise(setImmediate);
  network.socket.accept();
  assert.equal(network.socket.last("hello").token, "t");
});

test("a drop counts while credentials are awaited", async () => {
  let give;
  const { client, network, clock } = setUp({ token: () => new Promise((resolve) => (give = resolve)) });
  client.start();
  client.drop(5_000);
  give("t");
  await new Promise(setImmediate);
  assert.equal(network.sockets.length, 0);
  assert.equal(client.status.state, "waiting");
  clock.pass(5_999);
  assert.equal(client.status.state, "waiting");
  clock.pass(1);
  assert.equal(client.status.state, "connecting");
});

test("a refusal without a reason is one", async () => {
  const { client, socket } = opened();
  const asked = client.configure("c", { model: "m" });
  socket.deliver({ type: "reply", re: socket.last("configure").id, ok: false });
  await assert.rejects(asked, { code: "internal" });
});

test("what a server has lost together with its log is not waited for", async () => {
  const { client, conversation, socket, clock, network } = opened();
  const answer = client.send("c", "hi");
  client.send("c", "still held");
  socket.deliver({ type: "reply", re: answer.sendId, ok: true, outcome: "started" });
  socket.cut();
  clock.pass(1_000);
  greet({ network });
  attach(network.socket, { outcome: "reset", reason: "epoch_changed", epoch: "f" });
  network.socket.deliver({ type: "caught_up", conversation: "c", seq: 0 });
  await assert.rejects(answer.wait(), { name: "ConversationResetError" });
  assert.deepEqual([...conversation.sends.values()].map(({ frame }) => frame.content), ["still held"]);
});

test("an event of an unknown type uses its number up, whatever it is called", () => {
  const { client, conversation, socket } = opened();
  ["constructor", "__proto__", "toString"].forEach((type, index) => {
    socket.onmessage({ data: `{"type":"${type}","conversation":"c","seq":${index + 1},"turn":1}` });
  });
  assert.equal(client.cursor("c").last, 3);
  assert.deepEqual(conversation.fold.items, []);
});
