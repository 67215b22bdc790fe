// What the list of conversations calls them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { shortened } from "../../client_demo/web/page/library.js";

test("a title that is cut holds no half of a character", () => {
  const title = shortened("👋".repeat(60));
  assert.equal(title, `${"👋".repeat(47)}…`);
  assert.equal(shortened("👋".repeat(48)), "👋".repeat(48));
  assert.equal(shortened(" one\n  two "), "one two");
});
