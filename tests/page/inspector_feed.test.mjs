// The inspector's socket to the server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Feed } from "../../wsserver/inspector/page/feed.js";

class Socket {
  static CONNECTING = 0;
  static OPEN = 1;
  static made = [];
  readyState = Socket.CONNECTING;
  closed = false;

  constructor() {
    Socket.made.push(this);
  }

  open() {
    this.readyState = Socket.OPEN;
    this.onopen?.();
  }

  close() {
    assert.equal(this.readyState, Socket.OPEN, "a browser would report it as failed");
    this.closed = true;
  }
}

globalThis.WebSocket = Socket;

test("stopped before it is connected, it closes when it is, and says nothing", () => {
  const said = [];
  const feed = new Feed("ws://x", { status: (...each) => said.push(each), recording: () => {}, lines: () => {}, refused: () => {} });
  feed.start();
  feed.stop();
  const [socket] = Socket.made;
  assert.equal(socket.closed, false);
  socket.open();
  assert.equal(socket.closed, true);
  assert.deepEqual(said, []);
});

test("stopped when it is connected, it closes at once", () => {
  const said = [];
  const feed = new Feed("ws://x", { status: (...each) => said.push(each), recording: () => {}, lines: () => {}, refused: () => {} });
  feed.start();
  const socket = Socket.made.at(-1);
  socket.open();
  assert.deepEqual(said, [[true]]);
  feed.stop();
  assert.equal(socket.closed, true);
  assert.equal(socket.onclose, null, "it does not come back");
});
