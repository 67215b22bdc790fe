// A conversation on the screen. Called at most once per animation frame, it brings
// the views of items up to date; what has settled costs nothing.

import { h } from "./dom.js";
import { MessageView, SendView } from "./message_view.js";
import { TurnView } from "./turn_view.js";

export class Transcript {
  #root;
  #actions;
  #conversation = null;
  #fold = null;
  #views = new Map();
  #sends = new Map();
  #settled = new Set();
  #versionsKey = null;
  /** What the answer that runs waits for, in words; null for nothing worth a word. */
  waitsFor = null;

  /**
   * @param {HTMLElement} root
   * @param {object} actions `takeBack(message)`, `edit(message, text)`, `copy(text)`,
   *   `regenerate(turn)`, `againLabel(turn)`, `showVersion(id)`, `again(id)`, `discard(id)`,
   *   `approval(call)`, `isElsewhere(part)`
   */
  constructor(root, actions) {
    this.#root = root;
    this.#actions = actions;
  }

  /**
   * Shows a conversation as it is now.
   * @param {import("../client.js").Conversation} conversation
   * @param {object} facts `online`; `now`, in ms; `stops`: by turn, how many ms a stop took to be
   *   answered; `takenBack`: ids of sends; `canReplace(message)` and `versions(message)`,
   *   asked again for all messages only where `versionsKey` is another
   */
  show(conversation, facts) {
    if (conversation !== this.#conversation || conversation.fold !== this.#fold) {
      this.#startOver(conversation);
    }
    const { items } = conversation.fold;
    const hasNews = facts.versionsKey !== this.#versionsKey;
    this.#versionsKey = facts.versionsKey;
    this.waitsFor = null;
    items.forEach((item, index) => this.#showItem(item, index, facts, hasNews));
    this.#showSends(conversation, facts.online);
  }

  #startOver(conversation) {
    this.#conversation = conversation;
    this.#fold = conversation.fold;
    this.#views.clear();
    this.#sends.clear();
    this.#settled.clear();
    this.#root.replaceChildren();
  }

  /** Edits the newest message that can be edited; says whether there is one. */
  editLast() {
    const view = this.#fold.items
      .filter((item) => item.kind === "message")
      .map((message) => this.#views.get(message))
      .findLast((each) => each?.canEdit);
    view?.edit();
    return view !== undefined;
  }

  regenerateLast() {
    const turn = this.#lastTurn();
    if (turn?.done && this.#actions.againLabel(turn)) this.#actions.regenerate(turn);
  }

  copyLast() {
    const turn = this.#lastTurn();
    if (turn) this.#actions.copy(turn.text);
  }

  /** An answer as it is read; null where it is not shown. */
  spoken(turn) {
    return this.#views.get(turn)?.spoken ?? null;
  }

  #lastTurn() {
    return this.#fold.items.findLast((item) => item.kind === "turn");
  }

  #showItem(item, index, facts, hasNews) {
    const { stops, takenBack, canReplace, versions } = facts;
    let view = this.#views.get(item);
    const isNew = !view;
    if (isNew) {
      view =
        item.kind === "turn"
          ? new TurnView(item, this.#actions)
          : new MessageView(item, this.#actions);
      this.#views.set(item, view);
      this.#root.insertBefore(view.element, this.#root.children[index] ?? null);
    }
    if (item.kind === "turn") this.#showTurn(item, view, stops.get(item), facts);
    else view.update(this.#messageState(item, index, takenBack));
    if (item.kind === "message" && (isNew || hasNews)) view.showBar(canReplace(item), versions(item));
  }

  #showTurn(turn, view, stopMs, { online, now }) {
    const state = turn.done ? `${turn.revision} ${turn.keepThrough} ${stopMs}` : null;
    if (state !== null && this.#settled.has(`${turn.seq} ${state}`)) return;
    const { waiting, caughtUp: live } = this.#conversation;
    this.waitsFor = view.update({ waiting, online, live, now }, stopMs) ?? this.waitsFor;
    if (state !== null) this.#settled.add(`${turn.seq} ${state}`);
  }

  #messageState(message, index, takenBack) {
    if (takenBack.has(message.id)) return "taken back";
    if (message.turn !== null) return null;
    if (message.steers !== null) return "steering";
    return index > 0 && this.#fold.running ? "queued" : null;
  }

  #showSends(conversation, online) {
    for (const [id, view] of this.#sends) {
      if (conversation.sends.has(id)) continue;
      view.element.remove();
      this.#sends.delete(id);
    }
    for (const [id, send] of conversation.sends) {
      let view = this.#sends.get(id);
      if (!view) {
        view = new SendView(send, this.#actions);
        this.#sends.set(id, view);
        this.#root.append(view.element);
      }
      view.update(online);
    }
  }
}

/** What stands where a conversation has nothing yet. */
export function emptyState(onPick) {
  const tries = [
    "What can I try here?",
    "What time is it in Tokyo and in Paris?",
    "Change the theme of this page.",
    "Tell me something long, so that I can stop you.",
  ];
  return h(
    "div",
    { class: "empty" },
    h("h2", {}, "Say something"),
    h("p", {}, "The answer streams in. Stop it, cut the socket, reload: nothing is lost and nothing comes twice."),
    h("div", { class: "tries" }, ...tries.map((text) => h("button", { type: "button", onclick: () => onPick(text) }, text))),
  );
}
