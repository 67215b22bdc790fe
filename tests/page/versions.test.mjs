// Versions of a conversation: what belongs together, and which one is shown.

import assert from "node:assert/strict";
import { test } from "node:test";

import { families, familyOf, placeOf, rootOf, slotOf, versionsAt } from "../../client_demo/web/page/versions.js";

const a = { id: "a", made: 1 };
const b = { id: "b", made: 2, parent: "a", slot: 10 }; // a's message 10, said otherwise
const c = { id: "c", made: 3, parent: "a", slot: 10 }; // and once more
const d = { id: "d", made: 4, parent: "b", slot: 20 }; // of b, a later message
const e = { id: "e", made: 5, parent: "a", slot: 1 }; // of a, an earlier one
const other = { id: "other", made: 6 };
const list = [other, e, d, c, b, a];

test("a conversation is a family with one root", () => {
  assert.deepEqual(list.map(({ id }) => rootOf(list, id)), ["other", "a", "a", "a", "a", "a"]);
  assert.deepEqual(familyOf(list, "d").toSorted(), ["a", "b", "c", "d", "e"]);
  assert.deepEqual(familyOf(list, "other"), ["other"]);
});

test("a message is counted among those that replaced it, whichever is shown", () => {
  const at10 = ["a", "b", "c"];
  assert.deepEqual(versionsAt(list, "a", 10), { ids: at10, shown: 0 });
  assert.deepEqual(versionsAt(list, "b", 10), { ids: at10, shown: 1 });
  assert.deepEqual(versionsAt(list, "c", 10), { ids: at10, shown: 2 });
  assert.deepEqual(versionsAt(list, "d", 10), { ids: at10, shown: 1 });
  assert.deepEqual(versionsAt(list, "d", 20), { ids: ["b", "d"], shown: 1 });
  assert.deepEqual(versionsAt(list, "b", 20), { ids: ["b", "d"], shown: 0 });
});

test("a message before the fork is the parent's", () => {
  assert.deepEqual(versionsAt(list, "d", 1), { ids: ["a", "e"], shown: 0 });
  assert.deepEqual(versionsAt(list, "e", 1), { ids: ["a", "e"], shown: 1 });
  assert.deepEqual(versionsAt(list, "c", 30), { ids: ["c"], shown: 0 });
});

test("a version of a version stands beside it, a later one below it", () => {
  assert.equal(placeOf(list, "b", 10), "a");
  assert.equal(placeOf(list, "b", 20), "b");
  assert.equal(placeOf(list, "d", 1), "a");
});

test("the first message of its own goes by the number of the one it replaced", () => {
  assert.equal(slotOf(list, "b", [1, 12, 20], 12), 10);
  assert.equal(slotOf(list, "b", [1, 12, 20], 1), 1);
  assert.equal(slotOf(list, "b", [1, 12, 20], 20), 20);
  assert.equal(slotOf(list, "a", [1, 12], 12), 12);
});

test("what another tab has deleted is no parent", () => {
  const left = [d, c];
  assert.equal(rootOf(left, "d"), "d");
  assert.deepEqual(versionsAt(left, "d", 20), { ids: ["d"], shown: 0 });
  assert.deepEqual(versionsAt(left, "gone", 3), { ids: ["gone"], shown: 0 });
});

test("families are found in linear time, and are those of each root", () => {
  const many = Array.from({ length: 5_000 }, (_, n) => ({ id: `${n}`, parent: n % 3 ? `${n - (n % 3)}` : undefined, slot: 1 }));
  const chain = Array.from({ length: 5_000 }, (_, n) => ({ id: `v${n}`, parent: n ? `v${n - 1}` : undefined, slot: n }));
  const began = performance.now();
  const found = families([...many.toReversed(), ...chain.toReversed()]);
  assert.ok(performance.now() - began < 500);
  assert.deepEqual(found.get("3"), ["5", "4", "3"]);
  assert.equal(found.get("v0").length, 5_000);
  assert.equal(found.size, 1_668);
  const lost = { id: "x", parent: "gone", slot: 1 };
  assert.deepEqual([...families([...list, lost])].map(([root, ids]) => [root, ids.length]), [["other", 1], ["a", 5], ["x", 1]]);
});
