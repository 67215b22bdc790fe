// What stands where an answer will, until its first piece is there: what is waited for,
// and for how long. The seconds are for the eye; a screen reader is told of each
// change by the page, once.

import { h, setText } from "./dom.js";
import { phase } from "./words.js";

/** Most answers begin sooner, and words that only flash are noise. */
const WORDS_AFTER_MS = 1_000;

const seconds = (ms) => {
  const whole = Math.floor(ms / 1_000);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
};

export class WaitingLine {
  #what = h("span");
  #elapsed = h("span", { class: "elapsed", "aria-hidden": "true" });
  #frame = null;
  /** On the clock of the page; null: it began before it was looked at. */
  #since = null;
  #shown = false;

  element = h("p", { class: "waiting", hidden: true }, h("span", { class: "dots", "aria-hidden": "true" }), this.#what, this.#elapsed);

  /**
   * Shows how it stands.
   * @param {object} turn
   * @param {object} facts `waiting`: the newest `waiting` frame, or null; `online`;
   *   `live`: what is seen happens now; `now`: milliseconds
   * @returns {string | null} what of the model is waited for, once that is worth a word
   */
  update(turn, { waiting, online, live, now }) {
    const last = turn.parts.at(-1);
    const silent = !turn.done && (!last || (last.kind === "tool" && last.result !== null));
    const shown = silent || (!turn.done && !online);
    if (shown && !this.#shown) this.#since = live ? now : null;
    this.#shown = shown;
    this.element.hidden = !shown;
    if (!shown) return null;
    if (waiting && waiting !== this.#frame) this.#since = now - waiting.elapsed_ms;
    this.#frame = waiting;
    const elapsedMs = this.#since === null ? null : now - this.#since;
    const what = this.#words(turn, online);
    const isNews = online && elapsedMs !== null && elapsedMs < WORDS_AFTER_MS;
    setText(this.#what, isNews ? "" : what);
    setText(this.#elapsed, isNews || elapsedMs === null || !online ? "" : seconds(elapsedMs));
    return isNews || !online ? null : what;
  }

  #words(turn, online) {
    if (!online) return "not connected; the server, while it runs, goes on with the answer";
    return this.#frame ? phase(this.#frame.phase) : `waiting for ${turn.model}`;
  }
}
