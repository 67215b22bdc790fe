// Keys of the whole page, and the list of them.

import { byId, fill, h } from "./dom.js";

const OTHERS = [
  ["Enter", "send"],
  ["Shift Enter", "new line"],
  ["Escape", "stop the answer; leave an edit"],
  ["↑", "in an empty field: edit your last message"],
];

/** One key together with Alt and Shift: browsers keep Ctrl for themselves. */
const combined = (event) => event.altKey && event.shiftKey && !event.ctrlKey && !event.metaKey;

export class Shortcuts {
  #dialog = byId("shortcuts");
  #actions;

  /** @param {{code: string, key: string, says: string, run(): void}[]} actions */
  constructor(actions) {
    this.#actions = [...actions, { code: "Slash", key: "/", says: "this list", run: () => this.toggle() }];
    document.addEventListener("keydown", (event) => this.#press(event));
    byId("keys").addEventListener("click", () => this.toggle());
    byId("close-shortcuts").addEventListener("click", () => this.#dialog.close());
    this.#dialog.addEventListener("click", ({ target }) => target === this.#dialog && this.#dialog.close());
    const rows = [...OTHERS, ...this.#actions.map(({ key, says }) => [`Alt Shift ${key}`, says])];
    fill(
      byId("shortcut-list"),
      ...rows.flatMap(([keys, says]) => [
        h("dt", {}, ...keys.split(" ").map((key) => h("kbd", {}, key))),
        h("dd", {}, says),
      ]),
    );
  }

  toggle() {
    if (this.#dialog.open) this.#dialog.close();
    else this.#dialog.showModal();
  }

  #press(event) {
    const action = combined(event) && this.#actions.find(({ code }) => code === event.code);
    if (!action) return;
    event.preventDefault();
    action.run();
  }
}
