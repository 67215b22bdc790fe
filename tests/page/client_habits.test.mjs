// What applications give a client: credentials that run out, tools that can be stopped,
// and a bad network to try all that on.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ChatClient, chaotic } from "../../client_demo/web/client.js";
import { opened, greet, settled, ok, refused, message, start, done, request } from "./client_talk.mjs";
import { Clock, counter, Network } from "./doubles.mjs";

test("credentials that run out are renewed in place, and used from then on", async () => {
  const expiring = [];
  const tokens = ["old", "new", "newest"];
  const { socket, clock, network } = opened({
    token: () => tokens.shift(), handlers: { expiring: (inMs) => expiring.push(inMs) },
  });
  assert.equal(socket.last("hello").token, "old");
  socket.deliver({ type: "auth_expiring", in_ms: 60_000 });
  await settled();
  assert.deepEqual(expiring, [60_000]);
  assert.equal(socket.last("refresh").token, "new");
  socket.deliver(ok(socket.last("refresh").id, "refreshed"));
  socket.cut();
  clock.pass(1_000);
  assert.equal(greet(network).last("hello").token, "newest");
});

test("credentials that take time are waited for before each dial, and asked for again where there are none", async () => {
  const asked = [];
  const network = new Network();
  const clock = new Clock();
  const token = () => new Promise((resolve, reject) => asked.push({ resolve, reject }));
  const client = new ChatClient({ url: "ws://x", WebSocket: network.WebSocket, newId: counter("id"), random: () => 0.5, clock, token });
  client.start();
  asked[0].reject(new Error("no such user"));
  await settled();
  assert.equal(network.sockets.length, 0);
  assert.equal(client.status.state, "waiting");
  assert.match(client.status.error.message, /no such user/);
  clock.pass(1_000);
  asked[1].resolve("T");
  await settled();
  assert.equal(greet(network).last("hello").token, "T");
  assert.equal(client.connected, true);
  network.socket.cut();
  clock.pass(2_000);
  client.stop();
  asked[2].resolve("late");
  await settled();
  assert.equal(network.sockets.length, 1);
});

test("credentials that stay the same are not given again", async () => {
  for (const token of ["T", () => "T"]) {
    const { socket } = opened({ token });
    assert.equal(socket.last("hello").token, "T");
    socket.deliver({ type: "auth_expiring", in_ms: 60_000 });
    await settled();
    assert.equal(socket.last("refresh"), undefined);
  }
});

test("the first attempt and the waits are as long as was asked for", () => {
  const { client, clock, network } = opened({ openTimeoutSeconds: 3, backoffSeconds: [8, 8], random: () => 0.5 });
  network.socket.cut();
  clock.pass(3_999);
  assert.equal(network.sockets.length, 1);
  clock.pass(1);
  assert.equal(network.sockets.length, 2);
  clock.pass(2_999);
  assert.equal(client.status.state, "connecting");
  clock.pass(1);
  assert.equal(client.status.state, "waiting");
});

test("a tool tells its progress and hears when nobody waits any more", async () => {
  const stopped = [];
  const tools = {
    f: {
      timeoutS: null,
      run: (_, { call, progress, signal, deadlineMs }) =>
        new Promise((resolve) => {
          assert.equal(deadlineMs, 1_000);
          progress();
          signal.addEventListener("abort", () => stopped.push([call, signal.reason.message]) && resolve("too late"));
        }),
    },
  };
  const { client, socket } = opened({ tools });
  assert.deepEqual(client.toolDeclarations, [{ name: "f", timeout_s: null }]);
  socket.deliver(message(1, "s"), start(2, 1), request("x"), request("y"));
  assert.deepEqual(socket.last("tool_progress"), { type: "tool_progress", conversation: "c", call: "y" });
  socket.deliver({ type: "tool_result", conversation: "c", seq: 3, turn: 2, call: "x", status: "timeout", output: "", by: "server" });
  assert.deepEqual(stopped, [["x", "The call is settled."]]);
  socket.deliver(done(4, ""));
  assert.deepEqual(stopped[1], ["y", "The turn has ended."]);
  await settled();
  assert.equal(socket.last("tool_result"), undefined);
});

test("an output that the server refuses becomes an error result, once", async () => {
  const { socket } = opened({ tools: { f: { run: () => "big" } } });
  socket.deliver(message(1, "s"), start(2, 1), request("x"));
  await settled();
  const first = socket.last("tool_result");
  socket.deliver(refused(first.id, "too_large"));
  await settled();
  const second = socket.last("tool_result");
  assert.notEqual(second.id, first.id);
  assert.deepEqual(second.error, { message: "The tool's output was refused: It is too_large." });
  socket.deliver(refused(second.id, "too_large"));
  await settled();
  assert.equal(socket.last("tool_result"), second);
});

test("what a tool throws and is too long becomes a short error, and the connection lives", async () => {
  const tools = { f: { run: () => { throw new Error("x".repeat(300_000)); } } };
  const { client, socket } = opened({ tools });
  socket.deliver(message(1, "s"), start(2, 1), request("x"));
  await settled();
  assert.equal(socket.sent.filter(({ type }) => type === "tool_result").length, 1);
  assert.match(socket.last("tool_result").error.message, /^The tool's error was refused: The frame has 300\d+ bytes, the limit is 262144/);
  assert.equal(client.connected, true);
});

test("a result that is refused after the call is over asks for no other", async () => {
  const { socket } = opened({ tools: { f: { run: () => "late" } } });
  socket.deliver(message(1, "s"), start(2, 1), request("x"));
  await settled();
  const first = socket.last("tool_result");
  socket.deliver(done(3, ""), refused(first.id, "too_large"));
  await settled();
  assert.equal(socket.last("tool_result"), first);
});

function bad(switches, random = () => 0) {
  const network = new Network();
  const clock = new Clock();
  const ticks = [];
  const platform = {
    random, now: clock.now, setTimeout: clock.setTimeout, setInterval: (run) => ticks.push(run), clearInterval() {},
  };
  const Socket = chaotic(network.WebSocket, switches, platform);
  const socket = new Socket("ws://x", ["wsserver.v1"]);
  const seen = [];
  socket.onmessage = ({ data }) => seen.push(JSON.parse(data).n);
  socket.onclose = ({ code }) => seen.push(code);
  network.socket.accept();
  return { socket, seen, clock, ticks, other: network.socket };
}

test("a bad network delays in order, and what is late when it breaks is lost", () => {
  const switches = { delayMs: 100 };
  const { seen, clock, other } = bad(switches);
  other.deliver({ n: 1 });
  switches.delayMs = 0;
  other.deliver({ n: 2 });
  assert.deepEqual(seen, []);
  clock.pass(100);
  assert.deepEqual(seen, [1, 2]);
  switches.delayMs = 100;
  other.deliver({ n: 3 });
  other.cut();
  clock.pass(1_000);
  assert.deepEqual(seen, [1, 2, 1006]);
});

test("a bad network loses, doubles and breaks", () => {
  const switches = { lose: 0.5 };
  const { seen, other, ticks, socket } = bad(switches);
  other.deliver({ n: 1 });
  Object.assign(switches, { lose: 0, double: 0.5 });
  other.deliver({ n: 2 });
  switches.double = 0;
  ticks[0]();
  assert.deepEqual(seen, [2, 2]);
  switches.cutEveryMs = 1_000;
  ticks[0]();
  assert.deepEqual(seen, [2, 2, 1006]);
  assert.equal(socket.readyState, 3);
});
