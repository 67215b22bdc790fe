// Versions of a conversation: editing a message or asking for another answer makes a
// fork, and on the screen the two are versions of one. Pure: works on the list that
// `store.js` keeps, where a fork has its `parent` and the `slot` it replaces: the number
// of the parent's message from which on it differs.

/** @typedef {import("./store.js").Listed} Listed */

const entryOf = (list, id) => list.find((entry) => entry.id === id);
const parentOf = (list, entry) => entry && entry.parent && entryOf(list, entry.parent);

/** The id of the conversation that all its versions come from. */
export function rootOf(list, id) {
  let entry = entryOf(list, id);
  for (let parent = parentOf(list, entry); parent; parent = parentOf(list, entry)) entry = parent;
  return entry?.id ?? id;
}

/** The ids of all versions. */
export function familyOf(list, id) {
  return families(list).get(rootOf(list, id)) ?? [];
}

/** By the id of each root the ids of its versions, its own among them; in linear time. */
export function families(list) {
  const entries = new Map(list.map((entry) => [entry.id, entry]));
  const roots = new Map();
  for (const entry of list) {
    const line = [];
    let each = entry;
    for (; each && !roots.has(each.id); each = entries.get(each.parent)) line.push(each.id);
    const root = each ? roots.get(each.id) : line.at(-1);
    for (const id of line) roots.set(id, root);
  }
  const found = new Map();
  for (const { id } of list) {
    const root = roots.get(id);
    if (!found.has(root)) found.set(root, []);
    found.get(root).push(id);
  }
  return found;
}

/**
 * By which number a message goes among its versions: that of the message it replaced.
 * @param {number[]} seqs of the conversation's messages, rising
 */
export function slotOf(list, id, seqs, seq) {
  const slot = entryOf(list, id)?.slot;
  if (slot === undefined) return seq;
  return seqs.find((each) => each >= slot) === seq ? slot : seq;
}

/** Where a new version of the message at a slot belongs. */
export function placeOf(list, id, slot) {
  let entry = entryOf(list, id);
  for (let parent = parentOf(list, entry); parent && slot <= entry.slot; parent = parentOf(list, entry)) entry = parent;
  return entry?.id ?? id;
}

/** The versions of the message at a slot, oldest first; the shown one is `shown`. */
export function versionsAt(list, id, slot) {
  const parent = placeOf(list, id, slot);
  const children = list
    .filter((entry) => entry.parent === parent && entry.slot === slot)
    .toSorted((a, b) => a.made - b.made)
    .map((entry) => entry.id);
  const ids = [parent, ...children];
  return { ids, shown: Math.max(0, ids.findLastIndex((each) => isWithin(list, id, each, slot))) };
}

/** Whether a conversation is that version, or came from it later on. */
function isWithin(list, id, version, slot) {
  for (let entry = entryOf(list, id); entry; entry = parentOf(list, entry)) {
    if (entry.id === version) return true;
    if (entry.slot <= slot) return false;
  }
  return false;
}
