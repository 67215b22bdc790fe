// What a client keeps over a reload of its page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { keptIn } from "../../client_demo/web/client.js";
import { Memory } from "./doubles.mjs";
import { greet, opened, setUp } from "./online.mjs";

const send = (id, content = "hi") => ({ type: "send", conversation: "c", content, id });

test("sends outlive the page until they are replied to", () => {
  const storage = new Memory();
  const before = opened({ keep: keptIn(storage) });
  const { sendId: id } = before.client.send("c", "hi");
  const after = setUp({ keep: keptIn(storage) });
  assert.deepEqual([...after.client.conversations.get("c").sends.keys()], [id]);
  after.client.start();
  const socket = greet(after);
  assert.deepEqual(socket.commands.map((frame) => frame.type), ["hello", "open", "send"]);
  assert.equal(socket.last("send").id, id);
  socket.deliver({ type: "reply", re: id, ok: true, outcome: "started" });
  assert.deepEqual(keptIn(storage).load(), []);
  assert.equal(storage.length, 0);
});

test("what is kept comes back in the order it was given, over any number of reloads", () => {
  const storage = new Memory();
  const ids = Array.from({ length: 12 }, (_, n) => `id${n}`);
  const first = keptIn(storage);
  for (const id of ids.slice(0, 11).toReversed()) first.add(send(id));
  const second = keptIn(storage);
  const loaded = second.load().map(({ id }) => id);
  assert.deepEqual(loaded, ids.slice(0, 11).toReversed());
  for (const id of loaded.toReversed()) second.add(send(id)); // given again, in any order
  second.add(send(ids[11]));
  second.remove("id4");
  const wanted = [...loaded.filter((id) => id !== "id4"), "id11"];
  assert.deepEqual(keptIn(storage).load().map(({ id }) => id), wanted);
});

test("two clients of one storage do not overwrite each other", () => {
  const storage = new Memory();
  const [one, other] = [keptIn(storage), keptIn(storage)];
  one.add(send("a"));
  other.add(send("b"));
  assert.deepEqual(keptIn(storage).load().map(({ id }) => id).sort(), ["a", "b"]);
});

test("a storage may be full, forbidden, or hold what is not ours", () => {
  const storage = new Memory();
  const keep = keptIn(storage);
  for (const [name, text] of [["wsserver.sends", "[]"], ["wsserver.sends.x", "{"], ["wsserver.sends.y", "null"], ["other.z", "{}"]]) {
    storage.setItem(name, text);
  }
  assert.deepEqual(keep.load(), []);
  storage.setItem = () => { throw new Error("full"); };
  storage.removeItem = () => { throw new Error("forbidden"); };
  keep.add(send("a"));
  keep.remove("a");
  Object.defineProperty(storage, "length", { get() { throw new Error("forbidden"); } });
  assert.deepEqual(keep.load(), []);
});

test("however many sends wait, one more writes no more", () => {
  const storage = new Memory();
  const { client, clock } = setUp({ keep: keptIn(storage) });
  for (let n = 0; n < 1_000; n += 1) client.send("c", "hello");
  const each = storage.written / 1_000;
  assert.ok(each < 200, `${each} characters each`);
  assert.equal(storage.length, 1_000);
  assert.ok(clock);
});
