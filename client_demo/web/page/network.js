// The switch for bad networks: what `chaotic` does to the page's socket, by a name.

import { byId } from "./dom.js";

const NETWORKS = {
  good: {},
  slow: { delayMs: 400 },
  shaky: { cutEveryMs: 4_000 },
  lossy: { lose: 0.03, double: 0.05, delayMs: 60 },
};
const NOTHING = { delayMs: 0, lose: 0, double: 0, cutEveryMs: undefined };

/** What is done to the socket now. */
export const switches = { ...NOTHING };

byId("network").addEventListener("change", ({ target }) => {
  Object.assign(switches, NOTHING, NETWORKS[target.value]);
});
