// What a server sends and is no frame of the protocol: told as a fault, and without harm.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { readFrame } from "../../client_demo/web/machine/frames.js";
import { CONTROLS, EVENTS } from "../../client_demo/web/machine/shapes.js";
import { delta, message, opened, setUp, start } from "./online.mjs";

const FRAMES = readFileSync(new URL("../protocol/server_frames.jsonl", import.meta.url), "utf8").trim().split("\n");

/** What may be left out of a frame, and at which depth. */
function* required(shape, path = []) {
  for (const [key, of] of Object.entries(shape)) {
    if (key.endsWith("?")) continue;
    yield [...path, key];
    if (typeof of === "object") yield* required(of, [...path, key]);
  }
}

function without(frame, path) {
  const copy = structuredClone(frame);
  const inner = path.slice(0, -1).reduce((each, name) => each[name], copy);
  delete inner[path.at(-1)];
  return copy;
}

const isEvent = ({ type, conversation }) => type in EVENTS && !(type in CONTROLS && conversation === undefined);

test("every frame of the protocol is one", () => {
  for (const text of FRAMES) {
    const frame = JSON.parse(text);
    assert.deepEqual(readFrame(text), { frame, isEvent: isEvent(frame) }, text);
  }
});

test("a frame that lacks a member is none, and the fault names it", () => {
  let tried = 0;
  for (const frame of FRAMES.map((text) => JSON.parse(text))) {
    const shape = (isEvent(frame) ? EVENTS : CONTROLS)[frame.type];
    for (const path of required(shape)) {
      // Without it an `error` of a turn is one of the connection.
      if (frame.type === "error" && path[0] === "conversation") continue;
      const { fault } = readFrame(JSON.stringify(without(frame, path)));
      assert.deepEqual([fault.code, fault.param], ["bad_frame", ["$", ...path].join(".")]);
      assert.match(fault.message, new RegExp(`\`${frame.type}\`.* is missing; it must be: `));
      tried += 1;
    }
  }
  assert.ok(tried > 80, String(tried));
});

test("a member of another kind is named, and what it must be", () => {
  const { fault } = readFrame(JSON.stringify({ ...delta(3, ["x"]), first: null }));
  assert.equal(fault.message, "The server sent a frame `delta` whose `$.text` is a list; it must be: string.");
  assert.equal(readFrame('{"type":"delta","conversation":"c","seq":1.5,"turn":1,"text":""}').fault.param, "$.seq");
  assert.equal(readFrame('{"type":"message","conversation":"c","seq":1,"id":"s","role":"user","by":"","at":"","content":[1]}').fault.param, "$.content");
});

test("what is unknown is no fault, and an event where it has a number", () => {
  assert.equal(readFrame('{"type":"later"}'), null);
  assert.equal(readFrame('{"type":"constructor","conversation":"c","seq":"1"}'), null);
  assert.equal(readFrame('{"type":"later","conversation":"c","seq":1}').isEvent, true);
});

test("what is no frame is in the status, and the conversation goes on", () => {
  const { client, socket, conversation } = opened();
  socket.deliver(message(1), start(2, 1));
  const before = client.status;
  for (const text of ["null", "{", "", "[]", "7", '{"type":7}', "[object Blob]"]) {
    socket.say(text);
    assert.match(client.status.error.code, /^bad_(json|frame)$/, text);
    assert.deepEqual({ ...client.status, error: null }, before, text);
  }
  socket.deliver(delta(3, "word"));
  assert.equal(conversation.fold.turns.get(2).text, "word");
});

test("a frame that lacks a member harms nothing, whichever it is", () => {
  for (const frame of FRAMES.map((text) => JSON.parse(text))) {
    const shape = (isEvent(frame) ? EVENTS : CONTROLS)[frame.type];
    for (const path of required(shape)) {
      const { client, socket } = opened();
      socket.say(JSON.stringify(without({ ...frame, ...(frame.conversation && { conversation: "c" }) }, path)));
      assert.equal(client.status.state, "online");
    }
  }
});

test("a welcome that lacks its limits is none, and another attempt follows", () => {
  const { client, network, clock } = setUp();
  client.start();
  network.socket.accept();
  network.socket.say('{"type":"welcome","protocol":1,"connection":"x","heartbeat_ms":1,"server":{"name":"s","version":"1"},"models":[],"features":[]}');
  assert.equal(client.status.error.param, "$.limits");
  clock.pass(10_000);
  assert.equal(client.status.state, "waiting");
});

test("a second welcome begins nothing anew", () => {
  const { client, socket } = opened();
  client.send("c", "hi");
  const before = socket.sent.length;
  socket.deliver({ type: "welcome" });
  assert.equal(socket.sent.length, before);
});
