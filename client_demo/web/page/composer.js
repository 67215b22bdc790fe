// Where a person writes. Enter sends, Shift+Enter breaks the line; an Enter that
// belongs to an input method does neither.

import { byId } from "./dom.js";

/** Whether a key sends; Safari reports an Enter that ends a composition with code 229. */
export function isSendKey(event) {
  const isEnter = event.key === "Enter" && !event.isComposing && event.keyCode !== 229;
  return isEnter && !event.shiftKey && !event.altKey;
}

export class Composer {
  #form = byId("composer");
  #input = byId("input");
  #stop = byId("stop");
  #policy = byId("policy");
  #choice = this.#policy.closest("label");
  #on;

  /**
   * @param {{send(text: string, policy: string | undefined): void, stop(): void,
   *   draft(text: string): void, editLast(): boolean}} on
   */
  constructor(on) {
    this.#on = on;
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#input.addEventListener("keydown", (event) => this.#key(event));
    this.#input.addEventListener("input", () => {
      this.#fit();
      this.#on.draft(this.#input.value);
    });
    this.#stop.addEventListener("click", () => this.#on.stop());
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.#stop.hidden || event.isComposing) return;
      if (!document.querySelector("dialog[open]")) this.#on.stop();
    });
  }

  set text(text) {
    this.#input.value = text;
    this.#fit();
  }

  get isEmpty() {
    return this.#input.value === "";
  }

  /** Puts words below those that are there. */
  add(text) {
    this.text = [this.#input.value, text].filter((each) => each !== "").join("\n\n");
    this.#on.draft(this.#input.value);
  }

  focus() {
    this.#input.focus();
  }

  /** Takes the focus that is left over; on a touch screen it would bring up the keyboard. */
  takeFocus() {
    if (!matchMedia("(pointer: coarse)").matches) this.focus();
  }

  /** While an answer is under way: Stop is there, and what a message would do. */
  set busy(busy) {
    if (this.#stop.hidden === !busy) return;
    this.#stop.hidden = !busy;
    this.#choice.hidden = !busy;
  }

  #key(event) {
    if (event.key === "ArrowUp" && this.isEmpty && !event.altKey) {
      if (this.#on.editLast()) event.preventDefault();
      return;
    }
    if (!isSendKey(event)) return;
    event.preventDefault();
    this.#submit();
  }

  #submit() {
    const text = this.#input.value;
    if (text.trim() === "") return;
    this.text = "";
    this.#on.draft("");
    this.#on.send(text, this.#stop.hidden ? undefined : this.#policy.value);
  }

  #fit() {
    this.#input.style.height = "auto";
    this.#input.style.height = `${this.#input.scrollHeight}px`;
  }
}
