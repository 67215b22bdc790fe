// A browser's storage: what it does not take lasts as long as the page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { PageStorage } from "../../client_demo/web/page/page_storage.js";

/** A browser's storage with room for so many characters in each text. */
class Small extends PageStorage {
  most = 5;

  setItem(name, text) {
    if (text.length > this.most) throw new DOMException("full", "QuotaExceededError");
    super.setItem(name, text);
  }
}

const names = (storage) => Array.from({ length: storage.length }, (_, index) => storage.key(index)).toSorted();

test("what a full storage does not take is there all the same, for this page", () => {
  const browser = new Small();
  const storage = new PageStorage(browser);
  storage.setItem("a", "short");
  storage.setItem("a", "too long");
  storage.setItem("b", "too long");
  assert.deepEqual([storage.getItem("a"), storage.getItem("b"), storage.getItem("c")], ["too long", "too long", null]);
  assert.deepEqual(names(storage), ["a", "b"]);
  assert.equal(storage.key(2), null);
  assert.deepEqual([browser.getItem("a"), browser.getItem("b")], ["short", null]);
});

test("what is taken again is the browser's, for other pages too", () => {
  const browser = new Small();
  const storage = new PageStorage(browser);
  storage.setItem("a", "too long");
  browser.most = 100;
  storage.setItem("a", "long enough");
  browser.setItem("a", "another page's");
  assert.equal(storage.getItem("a"), "another page's");
  storage.removeItem("a");
  assert.deepEqual([storage.getItem("a"), browser.getItem("a"), storage.length], [null, null, 0]);
});
