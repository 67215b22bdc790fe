// A user's message on the screen: one that is in the log, or one on its way there.

import { contentText } from "../fold.js";
import { fill, h, setText } from "./dom.js";

/** A message of the log; waits visibly while a turn is ahead of it. */
export class MessageView {
  #message;
  #note = h("p", { class: "note", hidden: true });

  /** @param {(message: object) => void} onTakeBack */
  constructor(message, onTakeBack) {
    this.#message = message;
    const takeBack = h("button", { type: "button", class: "quiet", onclick: () => onTakeBack(message) }, "Take back");
    this.#note.append(h("span"), takeBack);
    this.element = h(
      "article",
      { class: "message", "aria-label": "You" },
      h("p", { class: "plain" }, contentText(message.content)),
      this.#note,
      h("span", { class: "seq" }, `#${message.seq}`),
    );
  }

  /** @param {"queued" | "steering" | "taken back" | null} state */
  update(state) {
    this.#note.hidden = state === null;
    if (state === null) return;
    setText(this.#note.firstChild, state);
    this.#note.lastChild.hidden = state !== "queued";
    this.element.classList.toggle("void", state === "taken back");
  }
}

/** A send that is not in the log. */
export class SendView {
  #send;
  #note = h("p", { class: "note" });
  #shown = null;
  #actions;

  /** @param {{again(id: string): void, discard(id: string): void}} actions */
  constructor(send, actions) {
    this.#send = send;
    this.#actions = actions;
    this.element = h(
      "article",
      { class: "message unsent", "aria-label": "You, on the way" },
      h("p", { class: "plain" }, contentText(send.frame.content)),
      this.#note,
    );
  }

  update(online) {
    const { frame, error } = this.#send;
    const text = error ? error.message : online ? "sending…" : "goes out when connected";
    if (text === this.#shown) return;
    this.#shown = text;
    this.element.classList.toggle("refused", error !== null);
    const button = (label, run) => h("button", { type: "button", class: "quiet", onclick: run }, label);
    fill(
      this.#note,
      h("span", {}, text),
      error && button("Send again", () => this.#actions.again(frame.id)),
      error && button("Discard", () => this.#actions.discard(frame.id)),
    );
  }
}
