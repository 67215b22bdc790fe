// What the list of conversations calls them, and when it asks the server for one.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Library, shortened } from "../../client_demo/web/page/library.js";

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
