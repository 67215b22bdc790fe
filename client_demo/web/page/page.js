// The chat page: ties the client to what is on the screen. State that matters is in
// the client's conversations; here is only what the screen adds to it.

import { ChatClient } from "../client.js";
import { contentText } from "../fold.js";
import { Composer } from "./composer.js";
import { ConnectionPanel } from "./connection.js";
import { byId, h, setText } from "./dom.js";
import { Follower } from "./scroll.js";
import { Sidebar } from "./sidebar.js";
import * as store from "./store.js";
import { TOOLS } from "./tools.js";
import { emptyState, Transcript } from "./transcript.js";
import { ending } from "./words.js";

const WINDOW_BYTES = 262_144;
const OPEN_AT_START = 12;
const TITLE_LENGTH = 48;
const ANNOUNCED_LENGTH = 1_000;

/** Per turn, how many milliseconds a stop took to be answered. */
const stops = new Map();
const takenBack = new Set();
/** Conversations with an answer that was not looked at. */
const news = new Set();
/** Per conversation, the turn that was running last. */
const running = new Map();
/** Per conversation, the highest number that is on the screen. */
const painted = new Map();

let activeId = null;
let frame = 0;

const transcriptRoot = byId("transcript");
const models = byId("model");

const client = new ChatClient({
  url: Object.assign(new URL("v1/chat", location.href), {
    protocol: location.protocol === "https:" ? "wss:" : "ws:",
    search: "",
    hash: "",
  }).href,
  token: store.token,
  tools: TOOLS,
  windowBytes: WINDOW_BYTES,
  keep: store.keptSends,
  hidden: () => document.hidden,
  client: { name: "wsserver-page", version: "0.1.0" },
  handlers: { change: changed, status: statusChanged },
});

const panel = new ConnectionPanel(client, { announce, onToken: store.saveToken });
const follower = new Follower(byId("scroller"), (following) => {
  byId("to-end").hidden = following;
});
const transcript = new Transcript(transcriptRoot, {
  takeBack,
  turn: turnAction,
  again: (id) => client.sendAgain(activeId, id),
  discard: (id) => client.discard(activeId, id),
});
const composer = new Composer({
  send,
  stop,
  draft: (text) => store.saveDraft(activeId, text),
});
const sidebar = new Sidebar({ onPick: activate, onDelete: remove, onNew: begin });

// --- conversations

/** Demo models can call tools; of others nobody knows, and some refuse to be asked. */
function offerTools(conversation) {
  const { model, tools } = conversation.fold.config;
  const names = model ? [model] : (client.welcome?.models ?? []);
  if (tools || !names.length || !names.every((name) => name.startsWith("demo/"))) return;
  client.configure(conversation.id, { tools: client.toolDeclarations });
}

function begin() {
  const active = client.conversations.get(activeId);
  if (active && active.fold.items.length === 0 && active.sends.size === 0) {
    sidebar.toggle(false);
    composer.focus();
    return;
  }
  const id = crypto.randomUUID();
  store.changeListed((list) => [{ id, title: "", at: Date.now() }, ...list]);
  activate(id);
}

function activate(id) {
  activeId = id;
  store.saveActiveId(id);
  news.delete(id);
  const { model } = store.look();
  if (!client.conversations.has(id)) client.open(id, { config: model ? { model } : undefined });
  composer.text = store.draft(id);
  composer.focus();
  sidebar.toggle(false);
  follower.toEnd();
  schedule();
}

function remove(id) {
  const { title } = store.listed().find((entry) => entry.id === id) ?? {};
  if (!confirm(`Delete “${title || "New chat"}” for good?`)) return;
  if (!client.conversations.has(id)) client.open(id);
  client.delete(id);
  store.changeListed((list) => list.filter((entry) => entry.id !== id));
  store.saveDraft(id, "");
  if (id === activeId) activateNewest();
  else schedule();
}

function activateNewest() {
  const [newest] = store.listed();
  activeId = null;
  if (newest) activate(newest.id);
  else begin();
}

function send(text, policy) {
  const seenSeq = policy === "interrupt" ? painted.get(activeId) : undefined;
  offerTools(client.conversations.get(activeId));
  client.send(activeId, text, { policy, seenSeq });
  const title = shortened(text);
  store.changeListed((list) =>
    list.map((entry) => (entry.id === activeId ? { ...entry, title: entry.title || title, at: Date.now() } : entry)),
  );
  follower.toEnd();
}

async function stop() {
  const conversation = client.conversations.get(activeId);
  const turn = conversation?.fold.running;
  if (!turn) {
    for (const id of conversation?.sends.keys() ?? []) client.interrupt(activeId, { send: id });
    return;
  }
  const asked = performance.now();
  const reply = await client.interrupt(conversation.id, { turn: turn.seq, seenSeq: painted.get(conversation.id) });
  if (reply.outcome === "interrupted") stops.set(turn.seq, performance.now() - asked);
  schedule();
}

async function takeBack(message) {
  const conversation = activeId;
  const reply = await client.interrupt(conversation, { send: message.id });
  if (reply.outcome === "dequeued") takenBack.add(message.id);
  schedule();
}

function turnAction(name, turn) {
  if (name === "copy") copy(turn.text);
  const message = client.conversations.get(activeId).fold.messages.get(turn.message);
  if (name === "again" && message) client.send(activeId, message.content);
}

async function copy(text) {
  await navigator.clipboard.writeText(text);
  announce("Copied.");
}

// --- what the client says

function changed(conversation) {
  const turn = conversation.fold.running;
  const before = running.get(conversation.id);
  running.set(conversation.id, turn);
  if (before?.done && before !== turn) ended(conversation, before);
  schedule();
}

function ended(conversation, turn) {
  if (conversation.id !== activeId) news.add(conversation.id);
  else announce(`Answer ${ending(turn)}. ${turn.text.slice(0, ANNOUNCED_LENGTH)}`);
}

function statusChanged() {
  if (client.welcome) showModels();
  panel.show();
  schedule();
}

function announce(text) {
  byId("announcer").replaceChildren(text);
}

// --- the screen

function schedule() {
  frame ||= requestAnimationFrame(paint);
}

function paint() {
  frame = 0;
  const conversation = client.conversations.get(activeId);
  const list = store.listed();
  sidebar.show(list.map((entry) => ({ ...entry, title: titleOf(entry.id, entry.title) })), activeId, stateOf);
  if (!conversation) return;
  const online = client.status.state === "online";
  transcript.show(conversation, { online, stops, takenBack });
  showEmpty(conversation);
  composer.busy = conversation.busy;
  setText(byId("title"), titleOf(activeId, list.find((entry) => entry.id === activeId)?.title));
  showModel(conversation);
  showNotice(conversation);
  const cursor = client.cursor(activeId);
  setText(byId("position"), cursor?.epoch ? `seq ${cursor.last} · epoch ${cursor.epoch}` : "");
  follower.keepUp();
  painted.set(activeId, cursor?.last);
  client.painted(activeId);
}

function titleOf(id, given) {
  const first = client.conversations.get(id)?.fold.items.find((item) => item.kind === "message");
  return given || (first ? shortened(contentText(first.content)) : "New chat");
}

function shortened(text) {
  return text.trim().replaceAll(/\s+/g, " ").slice(0, TITLE_LENGTH);
}

function stateOf(id) {
  const conversation = client.conversations.get(id);
  if (conversation?.error) return "fault";
  if (conversation?.busy) return "busy";
  return news.has(id) ? "news" : null;
}

function showEmpty({ fold, sends, caughtUp }) {
  const empty = fold.items.length === 0 && sends.size === 0 && caughtUp;
  const there = byId("empty");
  if (there.hidden === !empty) return;
  there.hidden = !empty;
  there.replaceChildren(empty ? emptyState((text) => send(text)) : "");
}

function showNotice({ error }) {
  byId("notice").hidden = error === null;
  if (error) setText(byId("notice"), error.message);
}

function showModels() {
  const known = new Set([...models.options].map((option) => option.value));
  for (const name of client.welcome.models) if (!known.has(name)) addModel(name);
}

function addModel(name) {
  models.append(h("option", { value: name }, name));
}

function showModel({ fold }) {
  const model = fold.config.model ?? "";
  if (models.value === model || document.activeElement === models) return;
  if (![...models.options].some((option) => option.value === model)) addModel(model);
  models.value = model;
}

models.addEventListener("change", () => {
  const model = models.value || null;
  store.changeLook({ model });
  client.configure(activeId, { model, tools: null });
  composer.focus();
});

byId("to-end").addEventListener("click", () => follower.toEnd());

byId("numbers").addEventListener("change", ({ target }) => {
  store.changeLook({ numbers: target.checked });
  document.body.classList.toggle("numbers", target.checked);
});

byId("theme").addEventListener("change", ({ target }) => {
  store.changeLook({ theme: target.value });
  showTheme(target.value);
});

transcriptRoot.addEventListener("click", ({ target }) => {
  if (target.matches?.(".copy-code")) copy(target.closest("figure").querySelector("code").textContent);
});

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) client.wake();
});
addEventListener("online", () => client.wake());
addEventListener("pageshow", (event) => event.persisted && client.wake());
store.onListed(schedule);

function showTheme(theme) {
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme;
}

function main() {
  const { theme = "auto", numbers = false } = store.look();
  byId("theme").value = theme;
  showTheme(theme);
  byId("numbers").checked = numbers;
  document.body.classList.toggle("numbers", numbers);
  byId("token").value = store.token() ?? "";
  const list = store.listed();
  const wanted = list.find((entry) => entry.id === store.activeId());
  if (wanted) activate(wanted.id);
  else activateNewest();
  for (const { id } of list.slice(0, OPEN_AT_START)) client.open(id);
  client.start();
  panel.show();
}

main();
