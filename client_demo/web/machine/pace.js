// How fast a client may send: the rate that the server announced, kept on this side, so
// that nothing is refused that need not be. Sister of `protocol/client/pace.py`.

import { KEPT_BACK, ROUNDING } from "./constants.js";

/** Frames that may go now; times are milliseconds on one clock. */
export class Pace {
  #perMs = null;
  #burst = 0;
  #keptBack = 0;
  #frames = 0;
  #at = 0;

  /** A connection begins; its `hello` is on its way already. */
  announced({ frames_per_second: perSecond, frames_burst: burst }, now) {
    this.#perMs = perSecond ? perSecond / 1_000 : null;
    this.#burst = burst || perSecond || 0;
    this.#keptBack = Math.floor(this.#burst * KEPT_BACK);
    this.#frames = this.#burst - 1;
    this.#at = now;
  }

  /** Time has passed; what is not told comes late, never early. */
  advance(now) {
    if (this.#perMs === null || now <= this.#at) return;
    this.#frames = Math.min(this.#burst, this.#frames + (now - this.#at) * this.#perMs);
    this.#at = now;
  }

  /** A frame goes out. */
  spend(cost) {
    this.#frames -= cost;
  }

  /** Whether a frame that can wait may go, as far as time was told. */
  get hasRoom() {
    return this.#perMs === null || this.#missing <= ROUNDING;
  }

  /** When there is room for one frame; a time that is past where there is. */
  get roomAt() {
    return this.#perMs === null ? this.#at : this.#at + Math.max(0, this.#missing) / this.#perMs;
  }

  get #missing() {
    return this.#keptBack + 1 - this.#frames;
  }
}
