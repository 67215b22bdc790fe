// A browser's storage that never fails: what the browser does not take lasts as long as the
// page. It takes nothing where storage is forbidden (cookies are blocked, or the page is in
// a frame without an origin), and nothing more where it is full.

/** @param {"localStorage" | "sessionStorage"} name */
export function browserStorage(name) {
  try {
    return new PageStorage(globalThis[name]);
  } catch {
    return new PageStorage();
  }
}

export class PageStorage {
  #browser;
  /** What the browser did not take. */
  #texts = new Map();

  /** @param {Storage | null} browser null: there is none */
  constructor(browser = null) {
    this.#browser = browser;
  }

  get length() {
    return this.#names.length;
  }

  key(index) {
    return this.#names[index] ?? null;
  }

  getItem(name) {
    return this.#texts.get(name) ?? this.#browser?.getItem(name) ?? null;
  }

  setItem(name, text) {
    this.#texts.set(name, text);
    if (this.#browser === null) return;
    try {
      this.#browser.setItem(name, text);
      this.#texts.delete(name);
    } catch {
      // Full.
    }
  }

  removeItem(name) {
    this.#texts.delete(name);
    this.#browser?.removeItem(name);
  }

  get #names() {
    const { length } = this.#browser ?? { length: 0 };
    const kept = Array.from({ length }, (_, index) => this.#browser.key(index));
    return [...new Set([...kept, ...this.#texts.keys()])];
  }
}
