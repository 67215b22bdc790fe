// The chat page: ties the client to what is on the screen. State that matters is in
// the client's conversations; here is only what the screen adds to it.

import { ChatClient, chaotic } from "../client.js";
import { contentText } from "../fold.js";
import { onLinked } from "./address.js";
import { Announcer } from "./announcer.js";
import { Composer } from "./composer.js";
import { ConnectionPanel } from "./connection.js";
import { byId, setText } from "./dom.js";
import { keepingFocus } from "./focus.js";
import { Library } from "./library.js";
import { offerModels, showModel, startLook } from "./look.js";
import { switches } from "./network.js";
import { News } from "./news.js";
import { Follower } from "./scroll.js";
import { Shortcuts } from "./shortcuts.js";
import { Sidebar } from "./sidebar.js";
import * as store from "./store.js";
import { approvals, TOOLS } from "./tools.js";
import { emptyState, Transcript } from "./transcript.js";

const WINDOW_BYTES = 262_144;
const TICK_MS = 500;

/** Per turn, how many milliseconds a stop took to be answered. */
const stops = new Map();
const takenBack = new Set();
const news = new News();
const announcer = new Announcer(schedule);
/** Per conversation, the highest number that is on the screen. */
const painted = new Map();

let frame = 0;
let tick = 0;

const transcriptRoot = byId("transcript");

const client = new ChatClient({
  url: Object.assign(new URL("v1/chat", location.href), {
    protocol: location.protocol === "https:" ? "wss:" : "ws:",
    search: "",
    hash: "",
  }).href,
  WebSocket: chaotic(WebSocket, switches),
  token: store.token,
  tools: TOOLS,
  windowBytes: WINDOW_BYTES,
  keep: store.keptSends,
  hidden: () => document.hidden,
  client: { name: "wsserver-page", version: "0.1.0" },
  handlers: { change: changed, status: statusChanged, deleted: deletedElsewhere },
});

const library = new Library(client, shown);
const panel = new ConnectionPanel(client, {
  announce: (text) => announcer.say(text),
  onToken: store.saveToken,
  onAsk: (open) => sidebar.toggle(open),
});
const follower = new Follower(byId("scroller"), (following) => {
  byId("to-end").hidden = following;
});
const transcript = new Transcript(transcriptRoot, {
  takeBack,
  copy,
  edit: (message, text) => replace(message, text),
  regenerate: (turn) => replace(messageOf(turn)),
  againLabel,
  again: (id) => client.sendAgain(library.activeId, id),
  discard: (id) => client.discard(library.activeId, id),
  showVersion: (id) => library.showVersion(id),
  approval: (call) => approvals.of(library.activeId, call),
  isElsewhere: (part) => approvals.isElsewhere(library.activeId, part),
});
const composer = new Composer({
  send,
  stop,
  draft: (text) => store.saveDraft(library.activeId, text),
  editLast: () => transcript.editLast(),
});
const sidebar = new Sidebar({ onPick: (id) => library.pick(id), onDelete: remove, onNew: () => library.begin() });

// --- what people do

/** Demo models can call tools; of others nobody knows, and some refuse to be asked. */
function toolsFor(model) {
  const names = model ? [model] : (client.welcome?.models ?? []);
  const areDemos = names.length > 0 && names.every((name) => name.startsWith("demo/"));
  return areDemos ? client.toolDeclarations : null;
}

function offerTools({ id, fold }) {
  const tools = toolsFor(fold.config.model);
  if (tools && !fold.config.tools) configure(id, { tools });
}

function configure(id, config) {
  client.configure(id, config).catch((refused) => refusedIn(id, refused));
}

function shown() {
  const { activeId } = library;
  news.forget(activeId);
  composer.text = store.draft(activeId);
  if (library.isFresh) composer.focus();
  else composer.takeFocus();
  sidebar.toggle(false);
  follower.toEnd();
  schedule();
}

async function remove(root) {
  const title = library.titleOf(store.listed(), root);
  if (!confirm(`Delete “${title}” for good?`)) return;
  const removed = library.remove(root);
  schedule();
  const refused = await removed;
  if (refused) tell(`“${title}” could not be deleted. ${refused.message}`);
}

function send(text, policy) {
  const seenSeq = policy === "interrupt" ? painted.get(library.activeId) : undefined;
  offerTools(library.active);
  library.send(text, { policy, seenSeq });
  follower.toEnd();
}

async function stop() {
  const { active } = library;
  const turn = active?.fold.running;
  if (!turn) {
    for (const id of active?.sends.keys() ?? []) interrupt({ send: id });
    return;
  }
  const asked = performance.now();
  const outcome = await interrupt({ turn: turn.seq, seenSeq: painted.get(active.id) });
  if (outcome === "interrupted") stops.set(turn, performance.now() - asked);
  schedule();
}

async function takeBack(message) {
  if ((await interrupt({ send: message.id })) === "dequeued") {
    takenBack.add(message.id);
    if (composer.isEmpty) composer.add(contentText(message.content));
  }
  schedule();
}

/** Stops something of the shown conversation; tells what became of that. */
async function interrupt(options) {
  const { activeId } = library;
  try {
    return (await client.interrupt(activeId, options)).outcome;
  } catch (refused) {
    refusedIn(activeId, refused);
    return null;
  }
}

/** Of a conversation that is gone more was said than that nothing can be done in it. */
function refusedIn(id, { message }) {
  if (client.conversations.has(id)) announcer.complain(message);
}

function messageOf(turn) {
  return library.active.fold.messages.get(turn.message);
}

/** How an answer can be had anew: as a version, or at the end; null: its message is gone. */
function againLabel(turn) {
  const message = messageOf(turn);
  if (!message) return null;
  return library.canReplace(message) ? "Regenerate" : "Ask again";
}

/** Makes another version from a message on; the same one where no text is given. */
async function replace(message, text = message.content) {
  if (!library.canReplace(message)) {
    library.send(text);
    return;
  }
  if (client.status.state !== "online") announcer.say("This goes out when connected.");
  const error = await library.replace(message, text);
  if (!error) return;
  announcer.complain(error.message);
  if (text !== message.content) composer.add(text);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    announcer.say("Copied.");
  } catch {
    // There is none without HTTPS, and the user may have forbidden it.
    announcer.complain("The browser does not let this page copy.");
  }
}

// --- what the client says

function changed(conversation) {
  const ended = news.ended(conversation);
  if (ended) tellEnd(conversation, ended);
  if (news.meets(conversation)) library.met(conversation.id);
  schedule();
}

function tellEnd({ id }, turn) {
  const isShown = id === library.activeId;
  news.add(id, turn, { isShown, isSeen: isShown && !document.hidden });
  showTitle();
}

function deletedElsewhere(id, error, unsent) {
  news.forget(id);
  tell(library.leave(id, unsent));
}

/** Says what is to be said, if anything is. */
function tell(text) {
  if (text !== null) announcer.complain(text);
  schedule();
}

function statusChanged() {
  if (client.welcome) offerModels(client.welcome.models);
  panel.show();
  schedule();
}

// --- the screen

function schedule() {
  frame ||= requestAnimationFrame(() => keepingFocus(paint, () => composer.takeFocus()));
}

function paint() {
  frame = 0;
  const list = store.listed();
  const activeRoot = library.activeRoot(list);
  const families = library.families(list);
  sidebar.show(library.roots(list), activeRoot, (root) => stateOf(families.get(root)));
  for (const id of client.conversations.keys()) if (id !== library.activeId) client.painted(id);
  const { active, activeId } = library;
  if (!active) return;
  transcript.show(active, {
    online: client.connected,
    now: performance.now(),
    stops,
    takenBack,
    versionsKey: `${list.map(({ id }) => id)} ${active.fold.turns.size} ${active.fold.running?.seq}`,
    canReplace: (message) => library.canReplace(message),
    versions: (message) => library.versions(list, message),
  });
  showWaiting(active);
  announcer.ends(news.takeToTell(), (turn) => transcript.spoken(turn));
  showEmpty(active);
  composer.busy = active.busy;
  showTitle(list);
  showModel(active.fold.config.model ?? "");
  announcer.show(active.error);
  const cursor = client.cursor(activeId);
  setText(byId("position"), cursor?.epoch ? `seq ${cursor.last} · epoch ${cursor.epoch}` : "");
  follower.keepUp();
  painted.set(activeId, cursor?.last);
  client.painted(activeId);
}

/** Lets the seconds of a wait go on, and says what changes in it. */
function showWaiting({ fold }) {
  announcer.waits(transcript.waitsFor);
  clearTimeout(tick);
  const isSilent = transcriptRoot.querySelector(".waiting:not([hidden])") !== null;
  if (fold.running && isSilent && !document.hidden) tick = setTimeout(schedule, TICK_MS);
}

function showTitle(list = store.listed()) {
  const title = library.titleOf(list, library.activeId);
  setText(byId("title"), title);
  document.title = `${news.isAny ? "● " : ""}${title} · wsserver`;
}

function stateOf(family) {
  const conversations = family.map((id) => client.conversations.get(id)).filter(Boolean);
  if (family.some((id) => approvals.isAsking(id))) return "asks";
  if (conversations.some(({ error }) => error)) return "fault";
  if (conversations.some(({ busy }) => busy)) return "busy";
  return family.some((id) => news.has(id)) ? "news" : null;
}

function showEmpty({ fold, sends, caughtUp }) {
  const empty = fold.items.length === 0 && sends.size === 0 && caughtUp;
  const there = byId("empty");
  if (there.hidden === !empty) return;
  there.hidden = !empty;
  there.replaceChildren(empty ? emptyState((text) => send(text)) : "");
}

byId("to-end").addEventListener("click", () => follower.toEnd());

transcriptRoot.addEventListener("click", ({ target }) => {
  if (target.matches?.(".copy-code")) copy(target.closest("figure").querySelector("code").textContent);
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  news.forget(library.activeId);
  client.wake();
  schedule();
});
addEventListener("online", () => client.wake());
addEventListener("offline", () => client.connected && client.wake());
addEventListener("pageshow", (event) => event.persisted && client.wake());
store.onListed(() => tell(library.forgetDeleted()));
approvals.onChange = schedule;
approvals.onAsk = (name) => announcer.say(`The model wants to run ${name}: allow or deny it.`);
onLinked(() => library.follow());

startLook((model) => {
  configure(library.activeId, { model, tools: toolsFor(model) });
  composer.focus();
});

new Shortcuts([
  { code: "KeyO", key: "O", says: "new chat", run: () => library.begin() },
  { code: "ArrowUp", key: "↑", says: "the conversation above", run: () => library.step(-1) },
  { code: "ArrowDown", key: "↓", says: "the conversation below", run: () => library.step(1) },
  { code: "KeyM", key: "M", says: "choose a model", run: () => byId("model").focus() },
  { code: "KeyR", key: "R", says: "another answer", run: () => transcript.regenerateLast() },
  { code: "KeyC", key: "C", says: "copy the last answer", run: () => transcript.copyLast() },
  { code: "KeyD", key: "D", says: "drop this socket", run: () => panel.drop() },
]);

byId("token").value = store.token() ?? "";
library.start();
client.start();
panel.show();
