// Where a client keeps its sends until they are replied to, so that they outlive a
// reload of the page: under the same ids, so nothing is said twice.

/**
 * @param {Storage} storage `sessionStorage`: a tab's own. In `localStorage` all tabs
 *   would send them, which does no harm but is of no use
 * @param {string} [key]
 */
export function keptIn(storage, key = "wsserver.sends") {
  return {
    load() {
      try {
        return JSON.parse(storage.getItem(key)) ?? [];
      } catch {
        return [];
      }
    },
    save(frames) {
      try {
        storage.setItem(key, JSON.stringify(frames));
      } catch {
        // Full or forbidden: the client works all the same, it only forgets.
      }
    },
  };
}
