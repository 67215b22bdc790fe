// A user's message on the screen: one that is in the log, or one on its way there.

import { contentText } from "../fold.js";
import { fill, h, setText } from "./dom.js";
import { editor } from "./editor.js";

const button = (label, run, more) => h("button", { type: "button", class: "quiet", onclick: run, ...more }, label);

/** Whether the content is text alone, so that it can be edited as such. */
const isText = (content) => typeof content === "string";

/** A message of the log; waits visibly while a turn is ahead of it. */
export class MessageView {
  #message;
  #actions;
  #note = h("p", { class: "note", hidden: true });
  #body;
  #bubble;
  #bar = h("div", { class: "actions" });
  #shown = null;

  /**
   * @param {object} actions `takeBack(message)`, `edit(message, text)`, `copy(text)`,
   *   `showVersion(id)`
   */
  constructor(message, actions) {
    this.#message = message;
    this.#actions = actions;
    this.#note.append(h("span"), button("Take back", () => actions.takeBack(message)));
    this.#body = h("p", { class: "plain" }, contentText(message.content));
    this.#bubble = h("div", { class: "bubble" }, this.#body, this.#note, h("span", { class: "seq" }, `#${message.seq}`));
    this.element = h("article", { class: "message", "aria-label": "You" }, this.#bubble, this.#bar);
  }

  /** @param {"queued" | "steering" | "taken back" | null} state */
  update(state) {
    this.#note.hidden = state === null;
    if (state === null) return;
    setText(this.#note.firstChild, state);
    this.#note.lastChild.hidden = state !== "queued";
    this.element.classList.toggle("void", state === "taken back");
  }

  get canEdit() {
    return this.#bar.querySelector(".edit") !== null;
  }

  edit() {
    const text = contentText(this.#message.content);
    const before = document.activeElement;
    const edited = editor(text, {
      save: (changed) => changed !== text && this.#actions.edit(this.#message, changed),
      leave: () => {
        edited.element.replaceWith(this.#bubble);
        this.element.classList.remove("editing");
        before.focus();
      },
    });
    this.#bubble.replaceWith(edited.element);
    this.element.classList.add("editing");
    edited.focus();
  }

  /**
   * Shows what can be done with it.
   * @param {boolean} canReplace
   * @param {{ids: string[], shown: number}} versions
   */
  showBar(canReplace, { ids, shown }) {
    const wanted = `${canReplace} ${ids} ${shown}`;
    if (wanted === this.#shown) return;
    this.#shown = wanted;
    const { content } = this.#message;
    const step = (label, name, id) =>
      button(label, () => this.#actions.showVersion(id), { "aria-label": name, disabled: id === undefined });
    fill(
      this.#bar,
      ids.length > 1 &&
        h(
          "span",
          { class: "versions" },
          step("‹", "Earlier version", ids[shown - 1]),
          h("span", {}, `${shown + 1}/${ids.length}`),
          step("›", "Later version", ids[shown + 1]),
        ),
      button("Copy", () => this.#actions.copy(contentText(content)), { class: "quiet on-hover" }),
      canReplace && isText(content) && button("Edit", () => this.edit(), { class: "quiet on-hover edit" }),
    );
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
      h("div", { class: "bubble" }, h("p", { class: "plain" }, contentText(send.frame.content)), this.#note),
    );
  }

  update(online) {
    const { frame, error } = this.#send;
    const text = error ? error.message : online ? "sending…" : "goes out when connected";
    if (text === this.#shown) return;
    this.#shown = text;
    this.element.classList.toggle("refused", error !== null);
    fill(
      this.#note,
      h("span", {}, text),
      error && button("Send again", () => this.#actions.again(frame.id)),
      error && button("Discard", () => this.#actions.discard(frame.id)),
    );
  }
}
