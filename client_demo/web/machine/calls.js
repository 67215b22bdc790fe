// Which tool calls this client was asked to run, and what it answered: a request that
// comes again starts nothing again. Sister of `protocol/client/tools.py`.

const key = (conversation, call) => `${conversation} ${call}`;

export class Calls {
  /** By conversation and call: `{conversation, turn, id}`; `id` is that of the result. */
  #asked = new Map();

  /** Notes a request; says whether it is the first of this call. */
  ask({ conversation, call, turn }) {
    if (this.#asked.has(key(conversation, call))) return false;
    this.#asked.set(key(conversation, call), { conversation, turn, id: null });
    return true;
  }

  /** Whether the server still wants a result. */
  has(conversation, call) {
    return this.#asked.has(key(conversation, call));
  }

  /** The id of the command that answers a call, or null while it runs. */
  answered({ conversation, call }) {
    return this.#asked.get(key(conversation, call))?.id ?? null;
  }

  answer(conversation, call, id) {
    const asked = this.#asked.get(key(conversation, call));
    if (asked) asked.id = id;
  }

  /** Drops the calls of a turn that is done, or all of a conversation. */
  forget(conversation, turn) {
    for (const [name, asked] of this.#asked) {
      const isMeant = asked.conversation === conversation && (turn === undefined || asked.turn === turn);
      if (isMeant) this.#asked.delete(name);
    }
  }
}
