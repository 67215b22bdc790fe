// The list of conversations, each with what goes on in it.

import { byId, h, setText } from "./dom.js";

const STATES = { asks: "waits for you", busy: "answering", news: "new answer", fault: "can't be opened" };

export class Sidebar {
  #list = byId("conversations");
  #rows = new Map();
  #activeId = null;
  #onPick;
  #onDelete;

  constructor({ onPick, onDelete, onNew }) {
    this.#onPick = onPick;
    this.#onDelete = onDelete;
    byId("new").addEventListener("click", onNew);
    byId("menu").addEventListener("click", () => {
      this.toggle();
      if (this.#isOpen) byId("new").focus();
    });
    byId("shade").addEventListener("click", () => this.toggle(false));
    // Whoever tabs on would be behind the drawer.
    const side = document.querySelector("aside");
    side.addEventListener("focusout", ({ relatedTarget }) => {
      if (relatedTarget && !side.contains(relatedTarget)) this.toggle(false);
    });
    // Ahead of the key that stops an answer.
    document.addEventListener("keydown", (event) => this.#leave(event), { capture: true });
  }

  get #isOpen() {
    return document.body.classList.contains("drawer");
  }

  #leave(event) {
    const isDrawer = this.#isOpen && byId("menu").checkVisibility();
    if (event.key !== "Escape" || !isDrawer || document.querySelector("dialog[open]")) return;
    event.stopPropagation();
    this.toggle(false);
    byId("menu").focus();
  }

  /** Opens or closes the drawer that the list is on a narrow screen. */
  toggle(open = !this.#isOpen) {
    document.body.classList.toggle("drawer", open);
    byId("menu").setAttribute("aria-expanded", String(open));
  }

  /**
   * @param {{id: string, title: string}[]} listed
   * @param {string} activeId
   * @param {(id: string) => "asks" | "busy" | "news" | "fault" | null} stateOf
   */
  show(listed, activeId, stateOf) {
    const rows = listed.map((entry) => {
      const row = this.#rows.get(entry.id) ?? this.#row(entry.id);
      this.#name(row, entry.title);
      const state = stateOf(entry.id);
      const pick = row.querySelector(".pick");
      if (entry.id === activeId) pick.setAttribute("aria-current", "true");
      else pick.removeAttribute("aria-current");
      if (row.dataset.state !== (state ?? "")) {
        row.dataset.state = state ?? "";
        setText(row.querySelector(".state"), STATES[state] ?? "");
      }
      return row;
    });
    const there = [...this.#list.children];
    if (rows.length !== there.length || rows.some((row, i) => row !== there[i])) {
      this.#list.replaceChildren(...rows);
    }
    if (activeId !== this.#activeId) this.#rows.get(activeId)?.scrollIntoView({ block: "nearest" });
    this.#activeId = activeId;
  }

  #name(row, title) {
    const shown = row.querySelector(".title");
    if (shown.textContent === title) return;
    setText(shown, title);
    row.querySelector(".pick").title = title;
    row.querySelector(".delete").setAttribute("aria-label", `Delete ${title}`);
  }

  #row(id) {
    const row = h(
      "li",
      { "data-state": "" },
      h(
        "button",
        { type: "button", class: "pick", onclick: () => this.#onPick(id) },
        h("span", { class: "title" }),
        h("span", { class: "state" }),
      ),
      h("button", { type: "button", class: "delete", title: "Delete", onclick: () => this.#onDelete(id) }, "×"),
    );
    this.#rows.set(id, row);
    return row;
  }
}
