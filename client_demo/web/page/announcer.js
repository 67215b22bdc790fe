// What the page says of itself: to a screen reader, and on the screen for a while what
// went wrong with something the user asked for.

import { byId, setText } from "./dom.js";
import { ending } from "./words.js";

const ANNOUNCED_LENGTH = 1_000;
const COMPLAINT_MS = 10_000;

export class Announcer {
  /** What is waited for, as it was told. */
  #wait = null;
  /** What went wrong last, or null. */
  #complaint = null;
  #onChange;

  /** @param {() => void} onChange what is to be on the screen is another */
  constructor(onChange) {
    this.#onChange = onChange;
  }

  say(text) {
    byId("announcer").replaceChildren(text);
  }

  /** Says for a while what went wrong. */
  complain(text) {
    const mine = { text };
    this.#complaint = mine;
    setTimeout(() => {
      if (this.#complaint === mine) this.#complaint = null;
      this.#onChange();
    }, COMPLAINT_MS);
    this.#onChange();
  }

  /** Tells what is waited for, once; null for nothing worth a word. */
  waits(what) {
    if (what !== this.#wait && what !== null) this.say(`${what[0].toUpperCase()}${what.slice(1)}.`);
    this.#wait = what;
  }

  /** Tells of answers that have ended; `spoken` gives their text, or null where it is not shown. */
  ends(turns, spoken) {
    const told = turns.map((turn) => [turn, spoken(turn)]).filter(([, text]) => text !== null);
    if (told.length === 0) return;
    this.say(told.map(([turn, text]) => `Answer ${ending(turn)}. ${beginning(text)}`).join(" "));
  }

  /** Shows what is wrong with a conversation, or what went wrong last. */
  show(error) {
    const text = error?.message ?? this.#complaint?.text;
    byId("notice").hidden = text === undefined;
    if (text !== undefined) setText(byId("notice"), text);
  }
}

/** Not in the middle of a character. */
function beginning(text) {
  return Array.from(text.slice(0, 2 * ANNOUNCED_LENGTH)).slice(0, ANNOUNCED_LENGTH).join("");
}
