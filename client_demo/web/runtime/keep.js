// Where a client keeps its sends until they are replied to, so that they outlive a
// reload of the page: under the same ids, so nothing is said twice.

/** What a text says, if it is one of ours: `{number, frame}`; null for another. */
function keptFrame(text) {
  try {
    const kept = JSON.parse(text);
    return typeof kept?.frame?.id === "string" ? kept : null;
  } catch {
    return null;
  }
}

/**
 * Each send has an entry of its own: however many wait, one more costs the same.
 * @param {Storage} storage `sessionStorage`: a tab's own. In `localStorage` all tabs
 *   would send them, which does no harm but is of no use
 * @param {string} [key] begins the keys of the entries
 */
export function keptIn(storage, key = "wsserver.sends") {
  const nameOf = (id) => `${key}.${id}`;
  /** By id, in the order they were given. */
  const numbers = new Map();
  let count = 0;

  function entries() {
    const names = Array.from({ length: storage.length }, (_, index) => storage.key(index));
    const own = names.filter((name) => name.startsWith(nameOf("")));
    return own.map((name) => keptFrame(storage.getItem(name))).filter((kept) => kept !== null);
  }

  return {
    load() {
      try {
        const kept = entries().toSorted((a, b) => a.number - b.number);
        for (const { number, frame } of kept) numbers.set(frame.id, number);
        count = Math.max(count, kept.at(-1)?.number ?? 0);
        return kept.map(({ frame }) => frame);
      } catch {
        return []; // forbidden
      }
    },
    add(frame) {
      const number = numbers.get(frame.id) ?? (count += 1);
      numbers.set(frame.id, number);
      try {
        storage.setItem(nameOf(frame.id), JSON.stringify({ number, frame }));
      } catch {
        // Full or forbidden: the client works all the same, it only forgets.
      }
    },
    remove(id) {
      numbers.delete(id);
      try {
        storage.removeItem(nameOf(id));
      } catch {
        // Forbidden: nothing was kept.
      }
    },
  };
}
