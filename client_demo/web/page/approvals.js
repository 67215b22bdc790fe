// Tools that a person has to allow: each call waits here for a yes or a no.

export class Approvals {
  #waiting = new Map();
  #answered = new Set();
  #names = new Set();
  /** Something began to wait, or waits no more. */
  onChange = () => {};
  /** A call of a tool with that name began to wait. */
  onAsk = (name) => {};

  /** Makes a tool of one, that runs only when it was allowed. */
  guard(name, tool) {
    this.#names.add(name);
    const run = async (args, context) => {
      await this.#asked(context);
      return tool.run(args, context);
    };
    return { ...tool, timeoutS: null, run };
  }

  /** @returns {{allow(): void, deny(): void} | undefined} if a call waits */
  of(conversation, call) {
    return this.#waiting.get(`${conversation} ${call}`);
  }

  /** Whether a call that is not settled has to be allowed, and another page or program was asked. */
  isElsewhere(conversation, { call, name }) {
    const key = `${conversation} ${call}`;
    return this.#names.has(name) && !this.#waiting.has(key) && !this.#answered.has(key);
  }

  /** Whether something in a conversation waits for an answer. */
  isAsking(conversation) {
    return [...this.#waiting.keys()].some((key) => key.startsWith(`${conversation} `));
  }

  #asked({ conversation, call, name, signal }) {
    const key = `${conversation} ${call}`;
    const over = () => {
      this.#waiting.delete(key);
      this.onChange();
    };
    return new Promise((resolve, reject) => {
      const answered = (settle) => () => {
        this.#answered.add(key);
        settle();
      };
      const allow = answered(resolve);
      const deny = answered(() => reject(new Error("The user did not allow it.")));
      this.#waiting.set(key, { allow, deny });
      signal.addEventListener("abort", () => reject(signal.reason));
      this.onChange();
      this.onAsk(name);
    }).finally(over);
  }
}
