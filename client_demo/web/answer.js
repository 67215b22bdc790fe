// What one send became, to be read as it comes: `for await (const text of answer)`.

/** Why there is no answer; `code` is that of the protocol where the server refused. */
export class AnswerError extends Error {
  constructor({ code = "stopped", message }) {
    super(message);
    this.name = "AnswerError";
    this.code = code;
  }
}

export class Answer {
  #conversation;
  #stop;
  #part = 0;
  #piece = 0;
  #failure = null;
  #wake = () => {};
  #settle;

  /**
   * @param {import("./conversation.js").Conversation} conversation
   * @param {string} id of the send
   * @param {(turn: object | undefined) => Promise<object>} stop
   */
  constructor(conversation, id, stop) {
    this.#conversation = conversation;
    this.#stop = stop;
    this.id = id;
    /** The turn when it has ended, however it did; fails where there is none. */
    this.done = new Promise((resolve, reject) => (this.#settle = { resolve, reject }));
    this.done.catch(() => {}); // who only iterates gets it there
  }

  /** The turn, or undefined before it begins. */
  get turn() {
    return this.#conversation.turnOf(this.id);
  }

  /** Stops the turn, or takes the send back; what has come by now stays. */
  stop() {
    return this.#stop(this.turn);
  }

  /** The conversation has changed. @returns {boolean} whether more may come */
  changed() {
    const { turn } = this;
    if (turn?.done) this.#settle.resolve(turn);
    this.#wake();
    return !turn?.done;
  }

  fail(error) {
    this.#failure = new AnswerError(error);
    this.#settle.reject(this.#failure);
    this.#wake();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      const news = new Promise((resolve) => (this.#wake = resolve));
      const { turn } = this;
      const text = turn ? this.#take(turn) : "";
      if (text !== "") yield text;
      else if (turn?.done) return;
      else if (this.#failure) throw this.#failure;
      else await news;
    }
  }

  #take({ parts }) {
    let text = "";
    for (; this.#part < parts.length; this.#part += 1, this.#piece = 0) {
      const { kind, pieces } = parts[this.#part];
      if (kind === "text") {
        text += pieces.slice(this.#piece).join("");
        this.#piece = pieces.length;
      }
      if (this.#part === parts.length - 1) break;
    }
    return text;
  }
}
