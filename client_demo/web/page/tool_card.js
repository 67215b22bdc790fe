// A call of a tool as a card: what was asked, whether it runs, what it gave.

import { fill, h, setText } from "./dom.js";

const STATES = {
  asks: "wants your OK",
  running: "running",
  elsewhere: "asked in another tab",
  ok: "done",
  error: "failed",
  timeout: "out of time",
  cancelled: "cancelled",
  invalid: "invalid call",
};

/** JSON for a person, strings as they are. */
function shown(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function oneLine(value) {
  const text = JSON.stringify(value);
  return text === "{}" ? "" : text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

export class ToolCard {
  #part;
  #state;
  #output;
  #ask = h("div", { class: "ask", hidden: true });

  constructor(part) {
    this.#part = part;
    this.#state = h("span", { class: "state" });
    this.#output = h("pre", { hidden: true });
    this.element = h(
      "details",
      { class: "tool", "data-status": "running" },
      h(
        "summary",
        {},
        h("span", { class: "name" }, part.name),
        h("code", { class: "arguments" }, oneLine(part.arguments)),
        this.#state,
      ),
      this.#ask,
      h("pre", {}, shown(part.arguments)),
      this.#output,
    );
  }

  /**
   * Shows what the part says now; a turn that ended leaves no call running.
   * @param {object} actions
   * @param {(call: string) => {allow(): void, deny(): void} | undefined} actions.approval
   * @param {(part: {call: string, name: string}) => boolean} actions.isElsewhere
   */
  update(turn, { approval, isElsewhere }) {
    const { result, call } = this.#part;
    const asked = result ? undefined : approval(call);
    this.#showAsk(asked);
    const waits = asked ? "asks" : isElsewhere(this.#part) ? "elsewhere" : "running";
    const status = result?.status ?? (turn.done ? "cancelled" : waits);
    if (this.element.dataset.status !== status) this.element.dataset.status = status;
    setText(this.#state, STATES[status] ?? status);
    if (result && this.#output.hidden) {
      this.#output.textContent = shown(result.output);
      this.#output.hidden = false;
    }
  }

  #showAsk(asked) {
    if (this.#ask.hidden === !asked) return;
    this.#ask.hidden = !asked;
    const button = (label, kind, run) => h("button", { type: "button", class: kind, onclick: run }, label);
    fill(
      this.#ask,
      asked && h("span", {}, "The model wants to run this."),
      asked && button("Deny", "", asked.deny),
      asked && button("Allow", "primary", asked.allow),
    );
    if (asked) this.element.open = true;
  }
}
