// Which frames are listed: by connection, conversation, type and what stands in them.

import { h } from "/page/dom.js";
import { short } from "./words.js";

export class Filter {
  #inputs;
  #passed = { generation: -1, key: "", taken: 0, entries: [] };

  /** @param {Record<"connection" | "conversation" | "type" | "text", HTMLElement>} inputs */
  constructor(inputs, changed) {
    this.#inputs = inputs;
    for (const input of Object.values(inputs)) input.addEventListener("input", changed);
  }

  /** Offers what the recording has. */
  offer(recording) {
    const { connection, conversation, type } = this.#inputs;
    const types = [...recording.types].toSorted();
    fill(connection, [...recording.connections.values()].map(({ name, client }) => [name, client ? `${client} · ${short(name, 9)}` : short(name)]));
    fill(conversation, [...recording.conversations.keys()].map((id) => [id, short(id, 18)]));
    fill(type, [["-text", "all but text"], ...types.map((each) => [each, each])]);
  }

  /** The entries that pass; what passed before is not looked at again. */
  apply(recording) {
    const [connection, conversation, type, text] = ["connection", "conversation", "type", "text"].map((name) => this.#inputs[name].value);
    const key = JSON.stringify([connection, conversation, type, text]);
    if (key !== this.#passed.key || recording.generation !== this.#passed.generation) {
      this.#passed = { generation: recording.generation, key, taken: 0, entries: [] };
    }
    const words = text.toLowerCase();
    for (const entry of recording.entries.slice(this.#passed.taken)) {
      if (connection && entry.connection !== connection) continue;
      if (conversation && entry.conversation !== conversation) continue;
      if (type === "-text" ? entry.line.frame?.text !== undefined && entry.type !== "done" && entry.type !== "cut" : type && entry.type !== type) continue;
      if (words && !JSON.stringify(entry.line).toLowerCase().includes(words)) continue;
      this.#passed.entries.push(entry);
    }
    this.#passed.taken = recording.entries.length;
    return this.#passed.entries;
  }
}

/** Gives a select its options after the first, and lets it keep its choice. */
function fill(select, options) {
  const wanted = JSON.stringify(options);
  if (select.dataset.options === wanted) return;
  select.dataset.options = wanted;
  const { value } = select;
  const all = select.options[0];
  select.replaceChildren(all, ...options.map(([each, label]) => h("option", { value: each }, label)));
  select.value = options.some(([each]) => each === value) ? value : "";
}
