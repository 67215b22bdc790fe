// What the client's machine has to say, in order: frames for the wire and notices for the
// application, until the driver takes them. Sister of `protocol/client/output.py`.

import { Pace } from "./pace.js";

export class Output {
  #frames = [];
  #notices = [];
  /** The longest frame the server takes, in bytes; a longer one would end the connection, again and again. */
  frameBytes = Infinity;
  /** Told of every frame that is written. */
  pace = new Pace();

  /** Takes what is to be sent; also what a lost connection voids. */
  takeFrames() {
    return this.#frames.splice(0);
  }

  takeNotices() {
    return this.#notices.splice(0);
  }

  notice(kind, members) {
    this.#notices.push({ kind, ...members });
  }

  write(frame, cost = 1) {
    this.#frames.push(frame);
    this.pace.spend(cost);
  }

  /** Why the server would not take a frame, or null. */
  tooLarge(frame) {
    const text = JSON.stringify(frame);
    if (text.length * 3 <= this.frameBytes) return null;
    const { length } = new TextEncoder().encode(text);
    if (length <= this.frameBytes) return null;
    const message = `The frame has ${length} bytes, the limit is ${this.frameBytes}; send less.`;
    return { code: "too_large", message, retryable: false };
  }
}
