// What the list of conversations calls them, and when it asks the server for one.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Library, shortened } from "../../client_demo/web/page/library.js";
import * as store from "../../client_demo/web/page/store.js";

test("a title that is cut holds no half of a character", () => {
  const title = shortened("👋".repeat(60));
  assert.equal(title, `${"👋".repeat(47)}…`);
  assert.equal(shortened("👋".repeat(48)), "👋".repeat(48));
  assert.equal(shortened(" one\n  two "), "one two");
});

test("what could not be opened is asked for again when it is shown", () => {
  globalThis.location = { hash: "" };
  globalThis.history = { replaceState: () => {} };
  const conversations = new Map();
  const asked = [];
  const open = (id) => {
    asked.push(id);
    conversations.set(id, { error: null });
  };
  const library = new Library({ conversations, open }, () => {});
  library.show("c");
  library.show("c");
  assert.deepEqual(asked, ["c"]);
  conversations.get("c").error = { code: "too_many_conversations" };
  library.show("c");
  assert.deepEqual(asked, ["c", "c"]);
});

test("what the server does not delete is listed again", async () => {
  globalThis.location = { hash: "" };
  globalThis.history = { replaceState: () => {} };
  const conversations = new Map();
  const open = (id) => conversations.set(id, { error: null, fold: { items: [] }, sends: new Map() });
  const refused = new Error("later");
  const answers = { gone: Promise.resolve(), stays: Promise.reject(refused) };
  const library = new Library({ conversations, open, delete: (id) => answers[id] }, () => {});
  const entries = ["stays", "gone"].map((id, at) => ({ id, title: id, at, made: at, there: true }));
  store.changeListed(() => entries);
  assert.equal(await library.remove("gone"), null);
  assert.deepEqual(store.listed(), [entries[0]]);
  const removed = library.remove("stays");
  assert.deepEqual(store.listed(), []);
  assert.equal(await removed, refused);
  assert.deepEqual(store.listed(), [entries[0]]);
});
