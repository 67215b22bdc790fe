// Runs a client's tools when the server asks, and stops those that nobody waits for.

import { CommandError } from "./errors.js";

/** What JSON makes of a tool's output; throws where it can't hold it. */
function asJson(output) {
  const text = JSON.stringify(output ?? null);
  if (text === undefined) throw new TypeError(`The tool's output is a ${typeof output}, which JSON can't hold.`);
  return JSON.parse(text);
}

export class ToolRunner {
  #tools;
  #running = new Map();
  #answer;
  #progress;

  /**
   * @param {Record<string, import("../client").Tool>} tools
   * @param {{answer(conversation: string, call: string, result: object): Promise<object | null>,
   *   progress(conversation: string, call: string): void}} to `answer` gives the server's reply, or null
   *   where the result is wanted no more
   */
  constructor(tools, { answer, progress }) {
    this.#tools = tools;
    this.#answer = answer;
    this.#progress = progress;
  }

  /** Starts a call; what the tool throws becomes an error result. */
  async run({ arguments: args, deadline_ms: deadlineMs, ...request }) {
    const { conversation, call, name } = request;
    const stop = new AbortController();
    const running = { ...request, stop };
    this.#running.set(running, stop);
    const context = {
      ...request,
      deadlineMs,
      signal: stop.signal,
      progress: () => this.#progress(conversation, call),
    };
    let result;
    try {
      if (!Object.hasOwn(this.#tools, name)) throw new Error(`This client has no tool ${name}.`);
      result = { output: asJson(await this.#tools[name].run(args, context)) };
    } catch (fault) {
      result = { error: { message: String(fault?.message ?? fault) } };
    }
    this.#running.delete(running);
    if (!stop.signal.aborted) await this.#give(conversation, call, result);
  }

  /** The call stays open until it has a result that the server takes: why it took none is one. */
  async #give(conversation, call, result) {
    try {
      await this.#answer(conversation, call, result);
    } catch (refused) {
      if (!(refused instanceof CommandError)) return;
      const what = result.error ? "error" : "output";
      const message = `The tool's ${what} was refused: ${refused.message}`;
      await this.#answer(conversation, call, { error: { message } }).catch(() => {});
    }
  }

  /** Stops the calls of a conversation, of one turn of it, or one call. */
  stop(why, { conversation, turn, call }) {
    for (const [running, stop] of this.#running) {
      if (running.conversation !== conversation) continue;
      if (turn !== undefined && running.turn !== turn) continue;
      if (call !== undefined && running.call !== call) continue;
      this.#running.delete(running);
      stop.abort(new Error(why));
    }
  }
}
