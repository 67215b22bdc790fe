// The list of frames: only the rows that are seen are in the document.

import { clock, duration, family, numbers, short, size, summary } from "./words.js";
import { h } from "/page/dom.js";

const ROW = 24;
const MORE = 6;
const SLOW_MS = 1_000;

export class Frames {
  #entries = [];
  #table;
  #rows;
  #spacer;
  #shown = "";

  /**
   * @param {{table: HTMLElement, rows: HTMLElement, spacer: HTMLElement}} elements
   * @param {{pick(entry: object): void}} handlers
   */
  constructor({ table, rows, spacer }, handlers) {
    this.#table = table;
    this.#rows = rows;
    this.#spacer = spacer;
    this.handlers = handlers;
    this.selected = null;
    this.now = Infinity;
    table.addEventListener("scroll", () => this.#paint());
    table.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#paint()).observe(table);
  }

  /** Shows the entries; those after number `now` as what is to come. */
  show(entries, { selected, now, following }) {
    this.#entries = entries;
    this.selected = selected;
    this.now = now;
    if (selected) this.#table.setAttribute("aria-activedescendant", `frame-${selected.n}`);
    else this.#table.removeAttribute("aria-activedescendant");
    this.#spacer.style.height = `${entries.length * ROW}px`;
    if (following) this.#table.scrollTop = this.#table.scrollHeight;
    this.#paint();
  }

  /** Scrolls to an entry, if it is in the list and out of sight. */
  reveal(entry) {
    const index = this.#entries.indexOf(entry);
    if (index < 0) return;
    const { scrollTop, clientHeight } = this.#table;
    const top = index * ROW;
    if (top < scrollTop || top > scrollTop + clientHeight - ROW) this.#table.scrollTop = top - clientHeight / 2;
    this.#paint();
  }

  #paint() {
    const { scrollTop, clientHeight } = this.#table;
    const begin = Math.max(0, Math.floor(scrollTop / ROW) - MORE);
    const end = Math.min(this.#entries.length, Math.ceil((scrollTop + clientHeight) / ROW) + MORE);
    const seen = this.#entries.slice(begin, end);
    const shown = `${begin} ${this.selected?.n} ${seen.filter(({ n }) => n <= this.now).length} ${seen[0]?.n} ${seen.at(-1)?.n} ${seen.length}`;
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#rows.style.translate = `0 ${begin * ROW}px`;
    this.#rows.replaceChildren(...seen.map((entry) => this.#row(entry)));
  }

  #row(entry) {
    const { kind, connection, conversation, type, gap, line } = entry;
    const arrow = { in: "→", out: "←" }[kind] ?? "◆";
    const slow = gap !== null && gap >= SLOW_MS ? "slow" : "";
    const props = {
      class: "row",
      role: "option",
      id: `frame-${entry.n}`,
      "aria-selected": String(entry === this.selected),
      "data-family": family(entry),
      "data-later": entry.n > this.now ? "" : null,
      onclick: () => this.handlers.pick(entry),
    };
    return h(
      "div",
      props,
      h("span", {}, clock(entry.at)),
      h("span", { class: `gap ${slow}` }, gap === null ? "" : `+${duration(gap)}`),
      h("span", { title: connection }, short(connection ?? "", 10)),
      h("span", { class: "arrow", title: { in: "to the server", out: "to the client" }[kind] ?? "" }, arrow),
      h("span", { class: "type" }, type),
      h("span", {}, numbers(entry)),
      h("span", { title: conversation }, conversation === null ? "" : short(conversation, 12)),
      h("span", {}, line.bytes === undefined ? "" : size(line.bytes)),
      h("span", { class: "summary" }, summary(entry)),
    );
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (step === undefined || this.#entries.length === 0) return;
    event.preventDefault();
    const at = this.selected ? this.#entries.indexOf(this.selected) : this.#entries.length - 1;
    const index = Math.min(this.#entries.length - 1, Math.max(0, at + step));
    this.handlers.pick(this.#entries[index]);
  }
}
