// One turn of the assistant on the screen: its parts as they grow, how it ended, and
// the facts. Takes only what is new; starts over when something shown was changed.

import { fill, h, setText } from "./dom.js";
import { MarkdownWriter } from "./markdown.js";
import { ToolCard } from "./tool_card.js";
import { WaitingLine } from "./waiting.js";
import { ending, facts } from "./words.js";

/** A part of text: Markdown, or plain for thoughts and refusals. */
class TextView {
  #part;
  #writer = null;
  #body;
  #summary = null;
  #taken = 0;
  #ended = false;

  constructor(part) {
    this.#part = part;
    if (part.kind === "reasoning") {
      this.#summary = h("summary", {}, "Thinking…");
      this.#body = h("div", { class: "plain" });
      this.element = h("details", { class: "reasoning" }, this.#summary, this.#body);
    } else if (part.kind === "refusal") {
      this.#body = h("p", { class: "plain" });
      this.element = h("div", { class: "refusal" }, this.#body);
    } else {
      this.element = h("div", { class: "markdown" });
      this.#writer = new MarkdownWriter(this.element);
    }
  }

  update(turn) {
    const { pieces } = this.#part;
    if (this.#taken < pieces.length) {
      const text = pieces.slice(this.#taken).join("");
      this.#taken = pieces.length;
      if (this.#writer) this.#writer.write(text);
      else this.#body.append(text);
    }
    const over = turn.done !== null || turn.parts.at(-1) !== this.#part;
    if (over && !this.#ended) {
      this.#ended = true;
      this.#writer?.end();
      if (this.#summary) setText(this.#summary, "Thoughts");
    }
  }
}

export class TurnView {
  #turn;
  #revision;
  #views = new Map();
  #body = h("div", { class: "parts" });
  #waiting = new WaitingLine();
  #failure = h("div", { class: "failure", hidden: true });
  #facts = h("footer", { class: "facts" });
  #model = h("span", { class: "model" });
  #label = h("span", { class: "seq" });
  #actions;
  #ending = null;

  /**
   * @param {object} actions `copy(text)`, `regenerate(turn)`,
   *   `againLabel(turn)`, `approval(call)`, `isElsewhere(part)`
   */
  constructor(turn, actions) {
    this.#turn = turn;
    this.#revision = turn.revision;
    this.#actions = actions;
    const head = h("header", {}, this.#model, this.#label);
    this.element = h(
      "article",
      { class: "turn", "aria-label": `Answer of ${turn.model}` },
      head,
      this.#body,
      this.#waiting.element,
      this.#failure,
      this.#facts,
    );
  }

  /**
   * @param {object} facts those of `WaitingLine`
   * @param {number | undefined} stopMs how long a stop took to be answered
   * @returns {string | null} what is waited for, if anything is
   */
  update(facts, stopMs) {
    const turn = this.#turn;
    if (this.#revision !== turn.revision) this.#startOver();
    setText(this.#model, turn.model);
    for (const part of turn.parts) this.#viewOf(part).update(turn, this.#actions);
    const waitsFor = this.#waiting.update(turn, facts);
    setText(this.#label, this.#numbers());
    // A cut may come after the end, and the reply to a stop too.
    const ended = turn.done && `${turn.revision} ${turn.keepThrough} ${stopMs}`;
    if (ended && ended !== this.#ending) {
      this.#ending = ended;
      this.#showEnd(stopMs);
    }
    return waitsFor;
  }

  /** Its text as it is read: without marks. */
  get spoken() {
    return [...this.#body.querySelectorAll(".markdown")].map((each) => each.innerText).join("\n");
  }

  #startOver() {
    this.#revision = this.#turn.revision;
    this.#views.clear();
    this.#body.replaceChildren();
  }

  #viewOf(part) {
    let view = this.#views.get(part);
    if (!view) {
      view = part.kind === "tool" ? new ToolCard(part) : new TextView(part);
      this.#views.set(part, view);
      this.#body.append(view.element);
    }
    return view;
  }

  #numbers() {
    const { seq, parts, done } = this.#turn;
    const last = done?.seq ?? parts.at(-1)?.last ?? seq;
    return last === seq ? `#${seq}` : `#${seq}–${last}`;
  }

  #showEnd(stopMs) {
    const turn = this.#turn;
    const { done, error } = turn;
    const again = this.#actions.againLabel(turn);
    const action = (label, run) => h("button", { type: "button", class: "quiet", onclick: run }, label);
    this.element.dataset.status = done.status;
    if (turn.keepThrough !== null) {
      this.#body.dataset.cut = `cut after #${turn.keepThrough}`;
    }
    this.#failure.hidden = error === null;
    if (error) {
      fill(
        this.#failure,
        h("p", {}, error.message, " ", h("code", {}, error.code)),
        error.retryable &&
          again &&
          h("button", { type: "button", onclick: () => this.#actions.regenerate(turn) }, "Ask again"),
      );
    }
    fill(
      this.#facts,
      h("span", { class: "ending" }, ending(turn, stopMs)),
      ...facts(turn).map((fact) => h("span", {}, fact)),
      turn.proven === false && h("span", { class: "wrong" }, "text differs from the server's"),
      h(
        "span",
        { class: "acts" },
        turn.text !== "" && action("Copy", () => this.#actions.copy(turn.text)),
        again && !error?.retryable && action(again, () => this.#actions.regenerate(turn)),
      ),
    );
  }
}
