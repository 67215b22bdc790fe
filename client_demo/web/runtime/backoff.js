// When to dial again: full-jitter back-off, and what a close code asks for.
// Holds numbers only; the caller tells how attempts went and does the waiting.

import { BACKOFF_SECONDS, ENDING_CLOSES, FATAL_CLOSES, PROMPT_CLOSES, STABLE_SECONDS } from "../machine/constants.js";

const isIn = ([first, last], code) => code >= first && code <= last;

/**
 * What to do after a close: `stop` (reconnecting would fail alike), `back_off`
 * or `reconnect_now` (the server asks for it). Unknown codes back off.
 * @param {number | null} code null where no close frame came
 */
export function advice(code) {
  if (code === null) return "back_off";
  if (FATAL_CLOSES.includes(code) || isIn(ENDING_CLOSES, code)) return "stop";
  if (isIn(PROMPT_CLOSES, code)) return "reconnect_now";
  return "back_off";
}

/** Spreads attempts evenly over a window that doubles until it is capped. */
export class Backoff {
  #random;
  #baseMs;
  #capMs;
  #windowMs;

  /**
   * @param {() => number} random evenly spread over [0, 1)
   * @param {[number, number]} windowsSeconds the first and the largest window, in seconds
   */
  constructor(random, [baseSeconds, capSeconds] = BACKOFF_SECONDS) {
    this.#random = random;
    this.#baseMs = baseSeconds * 1_000;
    this.#capMs = capSeconds * 1_000;
    this.#windowMs = this.#baseMs;
    /** Delays handed out since the last stable period. */
    this.attempts = 0;
  }

  /** Says how long the last connection held; long enough starts over. */
  held(upMs) {
    if (upMs < STABLE_SECONDS * 1_000) return;
    this.reset();
  }

  /** Starts over. */
  reset() {
    this.#windowMs = this.#baseMs;
    this.attempts = 0;
  }

  /** Draws the next wait in ms: jitter on top of a floor that the server asked for. */
  delayMs(atLeastMs = 0) {
    const windowMs = this.#windowMs;
    this.#windowMs = Math.min(this.#capMs, windowMs * 2);
    this.attempts += 1;
    return atLeastMs + this.#random() * windowMs;
  }
}
