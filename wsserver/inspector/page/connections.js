// The connections, and what may be done to those that are open.

import { h, setText } from "/page/dom.js";
import { short, size } from "./words.js";

const MOST_MS = 60_000;
/** More than a person looks through; all are in the lanes. */
const MOST_CARDS = 50;

export class Connections {
  #root;
  #cards = new Map();
  #heading = h("h2", {}, "Connections");
  #note = h("p", { class: "soft empty" });

  /** @param {(act: string, connection: string, members?: object) => void} order */
  constructor(root, order) {
    this.#root = root;
    this.order = order;
  }

  /** @param {boolean} live whether orders can be given */
  show(recording, live) {
    const all = [...recording.connections.values()];
    const list = [...all.filter(({ open }) => open), ...all.filter(({ open }) => !open).reverse()].slice(0, MOST_CARDS);
    const cards = list.map((connection) => this.#card(connection, live));
    const shown = new Set(list.map(({ name }) => name));
    for (const name of this.#cards.keys()) if (!shown.has(name)) this.#cards.delete(name);
    setText(this.#note, noteOn(all.length, list.length));
    const children = [this.#heading, ...cards, this.#note];
    const same = this.#root.children.length === children.length && children.every((child, i) => this.#root.children[i] === child);
    if (!same) this.#root.replaceChildren(...children);
  }

  #card(connection, live) {
    const { name } = connection;
    let card = this.#cards.get(name);
    if (!card) {
      card = this.#make(name);
      this.#cards.set(name, card);
    }
    card.dataset.open = String(connection.open);
    card.classList.toggle("slow", connection.inMs + connection.outMs > 0);
    setText(card.querySelector(".name"), connection.client ?? "no hello yet");
    setText(card.querySelector(".seen"), `${connection.frames.toLocaleString("en")} frames, ${size(connection.bytes)}`);
    const { ended } = connection;
    const end = ended ? `${ended.by === "inspector" ? "dropped here" : `closed by the ${ended.by}`}${ended.code === null ? "" : `, ${ended.code}`}` : "open";
    setText(card.querySelector(".end"), end);
    card.querySelector(".controls").hidden = !connection.open || !live;
    for (const [input, ms] of [["in", connection.inMs], ["out", connection.outMs]]) {
      const field = card.querySelector(`[name="${input}"]`);
      if (document.activeElement !== field) field.value = String(ms);
    }
    return card;
  }

  #make(name) {
    const order = (act, members) => () => this.order(act, name, members?.());
    const field = (way) => h("input", { type: "number", name: way, min: 0, max: MOST_MS, step: 50, value: 0, "aria-label": `Delay ${way}, milliseconds` });
    const [inbound, outbound] = [field("in"), field("out")];
    const delay = () => ({ in_ms: clamp(inbound.value), out_ms: clamp(outbound.value) });
    const submit = (event) => {
      event.preventDefault();
      this.order("delay", name, delay());
    };
    return h(
      "article",
      { class: "connection" },
      h("header", {}, h("span", { class: "dot" }), h("strong", { class: "name" }), h("code", { title: name }, short(name, 9))),
      h("p", { class: "soft" }, h("span", { class: "end" }), ", ", h("span", { class: "seen" })),
      h(
        "div",
        { class: "controls" },
        h(
          "div",
          { class: "buttons" },
          h("button", { type: "button", class: "danger", title: "Cuts the connection, without a close frame", onclick: order("drop") }, "Drop"),
          h("button", { type: "button", title: "Gives the server the client's next command twice; it must apply it once", onclick: order("duplicate") }, "Duplicate next command"),
        ),
        h("form", { class: "delay", onsubmit: submit }, h("label", {}, "Delay in ", inbound), h("label", {}, "out ", outbound), h("button", { title: "Holds each frame back for so many milliseconds" }, "Set")),
        h(
          "details",
          {},
          h("summary", {}, "Break the protocol"),
          h("p", { class: "soft" }, "A right client notices: it ignores what is repeated, and opens again after a hole."),
          h(
            "div",
            { class: "buttons" },
            h("button", { type: "button", class: "danger", onclick: order("repeat") }, "Repeat next event"),
            h("button", { type: "button", class: "danger", onclick: order("lose") }, "Lose next event"),
          ),
        ),
      ),
    );
  }
}

function noteOn(all, shown) {
  if (all === 0) return "None yet. Open a chat, or connect a client.";
  return all === shown ? "" : `and ${(all - shown).toLocaleString("en")} more`;
}

function clamp(value) {
  return Math.min(MOST_MS, Math.max(0, Math.round(Number(value)) || 0));
}
