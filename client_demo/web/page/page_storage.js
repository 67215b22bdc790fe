// What stands in for a browser's storage where that is forbidden: cookies are blocked,
// or the page is in a frame without an origin.

export class PageStorage {
  #texts = new Map();

  get length() {
    return this.#texts.size;
  }

  key(index) {
    return [...this.#texts.keys()][index] ?? null;
  }

  getItem(name) {
    return this.#texts.get(name) ?? null;
  }

  setItem(name, text) {
    this.#texts.set(name, text);
  }

  removeItem(name) {
    this.#texts.delete(name);
  }
}
