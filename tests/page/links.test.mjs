// How the client keeps its connection: closes, waits, silence.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ChatClient } from "../../client_demo/web/client.js";
import { WELCOME } from "./doubles.mjs";
import { setUp, greet, online, opened, message } from "./online.mjs";

test("closes are obeyed", () => {
  for (const code of [1000, 1003, 1007, 4400, 4401, 4403, 4406, 4408]) {
    const { socket, clock, network, client } = online();
    socket.cut(code);
    assert.equal(client.status.state, "stopped", `${code}`);
    assert.equal(client.status.code, code);
    clock.pass(3_600_000);
    assert.equal(network.sockets.length, 1, `${code}`);
  }
  for (const code of [1001, 1006, 1009, 1011, 1012, 1013, 4508, 4513, 4529]) {
    const { socket, clock, network } = online();
    socket.cut(code);
    clock.pass(999);
    assert.equal(network.sockets.length, 1, `${code}`);
    clock.pass(1);
    assert.equal(network.sockets.length, 2, `${code}`);
  }
  const { socket, clock, network } = online();
  socket.cut(4601);
  clock.pass(0);
  assert.equal(network.sockets.length, 2);
});

test("a goaway's wait is the least after the close, with jitter on top", () => {
  const { socket, clock, network } = online();
  socket.deliver({ type: "goaway", deadline_ms: 10_000, reconnect_after_ms: 5_000, reason: "restart" });
  clock.pass(10_000);
  socket.cut(1012);
  clock.pass(5_999);
  assert.equal(network.sockets.length, 1);
  clock.pass(1);
  assert.equal(network.sockets.length, 2);
});

test("a goaway is known until the next server welcomes", () => {
  const { client, socket, clock, network } = online();
  assert.equal(client.status.goaway, null);
  const goaway = { type: "goaway", deadline_ms: 10_000, reconnect_after_ms: 5_000, reason: "restart" };
  socket.deliver(goaway);
  assert.deepEqual([client.status.state, client.status.goaway], ["online", goaway]);
  socket.cut(1012);
  assert.deepEqual([client.status.state, client.status.goaway], ["waiting", goaway]);
  clock.pass(6_000);
  greet({ network });
  assert.deepEqual([client.status.state, client.status.goaway], ["online", null]);
});

test("waits double to a cap, and start over only after a stable time", () => {
  const { client, clock, network } = setUp();
  client.start();
  const waits = () => {
    network.socket.cut();
    const [wait] = clock.waits;
    clock.pass(wait);
    return wait;
  };
  assert.deepEqual(Array.from({ length: 7 }, waits), [1, 2, 4, 8, 15, 15, 15].map((s) => s * 1_000));
  greet({ network });
  clock.pass(29_000);
  assert.equal(waits(), 15_000);
  greet({ network });
  for (let i = 0; i < 31; i += 1) {
    clock.pass(1_000);
    network.socket.deliver({ type: "ping", t: i, heads: {} });
  }
  assert.equal(waits(), 1_000);
});

test("a server that does not welcome is given up", () => {
  const { client, clock, network } = setUp();
  client.start();
  network.socket.accept();
  clock.pass(10_000);
  assert.equal(network.socket.closedBy, "client");
  assert.equal(client.status.state, "waiting");
});

test("only a silent socket is dropped, 2.5 heartbeats after its last byte", () => {
  const { socket, clock, client } = online();
  const pong = () => socket.deliver({ type: "pong", t: socket.last("ping").t, server_time: "" });
  for (let i = 0; i < 20; i += 1) {
    clock.pass(20_000);
    pong();
  }
  assert.equal(socket.closedBy, null);
  assert.equal(client.status.rttMs, 0);
  clock.pass(49_999);
  assert.equal(socket.closedBy, null);
  clock.pass(1);
  assert.equal(socket.closedBy, "client");
});

test("who slept gives the server another heartbeat", () => {
  const { socket, clock } = online();
  clock.sleep(3_600_000);
  clock.pass(0);
  assert.equal(socket.closedBy, null);
  assert.ok(socket.last("ping"));
  socket.deliver({ type: "ping", t: 1, heads: {} });
  clock.pass(49_999);
  assert.equal(socket.closedBy, null);
  clock.pass(1);
  assert.equal(socket.closedBy, "client");
});

test("who slept beside a dead server finds out a heartbeat later", () => {
  const { socket, clock } = online();
  clock.sleep(3_600_000);
  clock.pass(19_999);
  assert.equal(socket.closedBy, null);
  clock.pass(1);
  assert.equal(socket.closedBy, "client");
});

test("a page that can't say whether it is hidden loses a silent server all the same", () => {
  const uncaught = [];
  globalThis.reportError = (fault) => uncaught.push(fault.message);
  const { clock, client } = online({ hidden: () => { throw new Error("mine"); } });
  clock.pass(100_000);
  assert.notEqual(client.status.state, "online");
  assert.equal(uncaught[0], "mine");
  delete globalThis.reportError;
});

test("a hidden page makes no verdict; a visible one asks once", () => {
  let hidden = true;
  const { socket, clock, client } = online({ hidden: () => hidden });
  clock.pass(5 * 60_000);
  assert.equal(socket.closedBy, null);
  hidden = false;
  const pings = socket.sent.length;
  client.wake();
  assert.equal(socket.sent.length, pings + 1);
  clock.pass(1);
  socket.deliver({ type: "pong", t: socket.last("ping").t, server_time: "" });
  clock.pass(5_000);
  assert.equal(socket.closedBy, null);
});

test("wake ends a wait", () => {
  const { socket, client, network } = online();
  socket.cut();
  client.wake();
  assert.equal(network.sockets.length, 2);
});

test("drop cuts the socket and comes back after the time it was told", () => {
  const { client, clock, network } = opened();
  client.drop(1_500);
  assert.equal(client.status.state, "waiting");
  clock.pass(2_499);
  assert.equal(network.sockets.length, 1);
  clock.pass(1);
  assert.equal(network.sockets.length, 2);
});

test("a wait that was asked for is not cut short by who wakes the client", () => {
  const { client, clock, network } = opened();
  client.drop(5_000);
  client.wake();
  assert.equal(network.sockets.length, 1);
  assert.equal(client.status.retryAt, clock.now() + 5_000, "of the wait only the jitter is gone");
  clock.pass(4_999);
  assert.equal(network.sockets.length, 1);
  clock.pass(1);
  assert.equal(network.sockets.length, 2);
});

test("a server that goes away is not dialled before its time by who wakes the client", () => {
  const { client, clock, network, socket } = opened();
  socket.deliver({ type: "goaway", reconnect_after_ms: 3_000 });
  clock.pass(1_000);
  socket.cut(4601);
  client.wake();
  assert.deepEqual([client.status.code, client.status.retryAt], [4601, clock.now() + 3_000]);
  clock.pass(2_999);
  assert.equal(network.sockets.length, 1);
  clock.pass(1);
  assert.equal(network.sockets.length, 2);
});

test("who wakes a client that waits for nothing but its turn dials at once", () => {
  const { client, network, socket } = opened();
  socket.cut();
  client.wake();
  assert.equal(network.sockets.length, 2);
});

test("a drop while the client waits makes the wait longer, never shorter", () => {
  const { client, clock, network, socket } = opened();
  socket.cut();
  client.drop(10_000);
  client.drop(10);
  clock.pass(9_999);
  assert.equal(network.sockets.length, 1);
  clock.pass(1);
  assert.equal(network.sockets.length, 2);
});

test("an attempt that fails does not end the time that a drop was to last", () => {
  const { client, clock, network } = opened();
  client.drop(500);
  clock.pass(1_500);
  network.socket.cut();
  client.wake();
  assert.equal(network.sockets.length, 3);
});

test("frames of a socket that was given up are void", () => {
  const { client, socket, conversation } = opened();
  client.drop();
  socket.deliver(message(1));
  socket.onclose({ code: 4401 });
  assert.equal(conversation.fold.items.length, 0);
  assert.equal(client.status.state, "waiting");
});

for (const when of ["connecting", "waiting", "online"]) {
  test(`a client that is stopped when it is told that it is ${when} stays so`, () => {
    const world = setUp({ handlers: { status: ({ state }) => state === when && world.client.stop() } });
    const { client, clock, network } = world;
    client.start();
    if (when !== "connecting") network.socket.accept();
    if (when === "waiting") network.socket.cut();
    if (when === "online") network.socket.deliver(WELCOME);
    assert.equal(client.status.state, "stopped");
    assert.deepEqual(clock.waits, [], "a timer would keep the program, or dial");
    assert.equal(network.sockets.length, when === "connecting" ? 0 : 1);
  });
}

test("a platform without WebSocket is told what to do", () => {
  const made = () => new ChatClient({ url: "ws://host/v1/chat", WebSocket: null });
  assert.throws(made, { name: "TypeError", message: /--experimental-websocket/ });
});
