// The inspector's page: what the server's feed or a file says, and a moment of it.

import { Fold } from "/fold.js";
import { byId, fill, h, setText } from "/page/dom.js";
import { browserStorage } from "/page/page_storage.js";
import { Connections } from "./connections.js";
import { Feed } from "./feed.js";
import { Filter } from "./filter.js";
import { Frames } from "./frames.js";
import { jsonNodes } from "./json.js";
import { Lanes } from "./lanes.js";
import { Moment } from "./moment.js";
import { format, parse, Recording } from "./recording.js";
import { factNodes, timelineNodes } from "./state.js";
import { clock, duration, short } from "./words.js";

const STEP_MS = 60;
const LOOK_BACK = 5_000;
const THEME = "wsserver.inspect.theme";

const storage = browserStorage("localStorage");
const recording = new Recording();
/** Number of the line the page is at; null follows what comes. */
let at = null;
let selected = null;
/** The conversation whose state is shown; null for the newest that did anything. */
let chosen = null;
/** The name of the file that is shown; null for the server. */
let file = null;
let connected = false;
let moment = null;
let frame = 0;
let later = 0;
/** When the last line came, so that the lanes can go on between lines. */
let arrived = 0;

const feed = new Feed(Object.assign(new URL("/inspect/feed", location.href), { protocol: location.protocol === "https:" ? "wss:" : "ws:" }).href, {
  status(now) {
    connected = now;
    schedule();
  },
  recording({ header, connections }) {
    if (recording.header?.started_at !== header.started_at) start(header);
    for (const each of recording.connections.values()) {
      if (!connections.some(({ connection }) => connection === each.name)) each.open = false;
    }
    schedule();
  },
  lines({ lines, missed }) {
    // What comes again after a reconnect is known; only what is new can be missing.
    if (missed > 0 && lines[0]?.n > recording.last + 1) recording.missed += lines[0].n - recording.last - 1;
    for (const line of lines) recording.add(line);
    arrived = performance.now();
    schedule();
  },
  refused(about) {
    refused(`Refused: ${about}`);
  },
});

const connections = new Connections(byId("connections"), (...order) => feed.order(...order));
const lanes = new Lanes(
  { canvas: byId("canvas"), labels: byId("labels"), tip: byId("tip") },
  { pick, choose, moved: schedule },
);
const frames = new Frames({ table: byId("table"), rows: byId("rows"), spacer: byId("spacer") }, { pick });
const filter = new Filter(
  { connection: byId("by-connection"), conversation: byId("by-conversation"), type: byId("by-type"), text: byId("by-text") },
  schedule,
);

function start(header) {
  recording.clear(header);
  at = null;
  selected = null;
  chosen = null;
  moment = null;
}

// --- what a person does

function pick(entry) {
  selected = entry;
  travel(entry.n);
  if (entry.conversation !== null) chosen = entry.conversation;
  frames.reveal(entry);
}

function choose(conversation) {
  chosen = conversation;
  schedule();
}

/** Goes to a line; null goes along with what comes. */
function travel(n) {
  at = n;
  lanes.following = n === null;
  if (n !== null) lanes.reveal(recording.entries[recording.indexOf(n)]?.at ?? 0);
  schedule();
}

function step(by) {
  const index = at === null ? recording.entries.length - 1 : recording.indexOf(at);
  const entry = recording.entries[Math.min(recording.entries.length - 1, Math.max(0, index + by))];
  if (entry) pick(entry);
}

function whole() {
  const { entries } = recording;
  if (entries.length === 0) return;
  lanes.following = false;
  lanes.show(entries[0].at, entries.at(-1).at);
}

function save() {
  const blob = new Blob([format(recording)], { type: "application/jsonl" });
  const link = h("a", { href: URL.createObjectURL(blob), download: `recording-${recording.header.started_at.replaceAll(/[:.]/g, "-")}.jsonl` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}

async function copy() {
  try {
    await navigator.clipboard.writeText(JSON.stringify(selected.line));
    refused(null);
  } catch {
    // There is none without HTTPS, and the user may have forbidden it.
    refused("The browser does not let this page copy.");
  }
}

/** Says why something could not be done; null: it was. */
function refused(why) {
  byId("refused").hidden = why === null;
  setText(byId("refused"), why ?? "");
}

async function load(chosenFile) {
  refused(null);
  try {
    const { header, lines } = parse(await chosenFile.text());
    feed.stop();
    file = chosenFile.name;
    start(header);
    for (const line of lines) recording.add(line);
    at = recording.last;
    whole();
  } catch (error) {
    refused(`Can't read ${chosenFile.name}: ${error.message}`);
  }
  schedule();
}

function backToServer() {
  file = null;
  start(null);
  feed.start();
  schedule();
}

// --- the screen

function schedule() {
  frame ||= requestAnimationFrame(paint);
}

function paint() {
  frame = 0;
  const { entries } = recording;
  const live = at === null;
  const index = live ? entries.length - 1 : recording.indexOf(at);
  const now = entries[index];
  const time = live && file === null ? (entries.at(-1)?.at ?? 0) + sinceLast() : (now?.at ?? 0);
  showHead();
  connections.show(recording, file === null && connected);
  filter.offer(recording);
  lanes.follow(time);
  const conversation = shownConversation(index);
  lanes.draw(recording, { moment: { at: time, live }, selected, conversation });
  const passed = filter.apply(recording);
  setText(byId("count"), passed.length === entries.length ? entries.length.toLocaleString("en") : `${passed.length.toLocaleString("en")} of ${entries.length.toLocaleString("en")}`);
  frames.show(passed, { selected, now: live ? Infinity : at, following: live });
  showTravel(index, time, live);
  showState(conversation, live ? Infinity : at, time);
  showFrame();
  if (live && file === null && connected && sinceLast() < lanes.ink.span) later ||= setTimeout(goOn, STEP_MS);
}

function goOn() {
  later = 0;
  schedule();
}

function sinceLast() {
  return arrived === 0 || !connected ? 0 : performance.now() - arrived;
}

function shownConversation(index) {
  if (chosen !== null && recording.conversations.has(chosen)) return chosen;
  // That of the newest turn: of several at once the state must not flicker.
  let newest = null;
  for (let i = index; i >= Math.max(0, index - LOOK_BACK); i -= 1) {
    const { conversation, type } = recording.entries[i];
    if (conversation === null) continue;
    if (type === "start") return conversation;
    newest ??= conversation;
  }
  return newest;
}

function showHead() {
  const { header, missed } = recording;
  const open = [...recording.connections.values()].filter((each) => each.open).length;
  const text = file ?? (connected ? `Live: ${open} ${open === 1 ? "connection" : "connections"}` : "The server does not answer; trying again…");
  byId("status").dataset.state = file ? "file" : connected ? "live" : "gone";
  setText(byId("status-text"), text);
  setText(byId("load"), file ? "Back to the server" : "Open recording");
  byId("content").hidden = header === null;
  byId("content").classList.toggle("warn", !recording.redacted);
  setText(byId("content"), recording.redacted ? "texts redacted" : "texts recorded");
  byId("content").title = recording.redacted ? "Start the server with --inspect-content to have texts" : "Recordings hold what people and models said";
  byId("missed").hidden = missed === 0;
  setText(byId("missed"), `${missed.toLocaleString("en")} older frames dropped`);
  byId("save").disabled = header === null;
}

function showTravel(index, time, live) {
  const slider = byId("slider");
  slider.max = String(Math.max(0, recording.entries.length - 1));
  slider.value = String(Math.max(0, index));
  slider.setAttribute("aria-valuetext", clock(time));
  setText(byId("moment"), clock(time));
  byId("live").setAttribute("aria-pressed", String(live));
}

function showState(id, n, time) {
  const of = byId("state-of");
  const ids = [...recording.conversations.keys()];
  if (of.dataset.ids !== ids.join(" ")) {
    of.dataset.ids = ids.join(" ");
    of.replaceChildren(...ids.map((each) => h("option", { value: each }, short(each, 13))));
  }
  of.hidden = ids.length === 0;
  setText(byId("state-at"), id === null ? "" : `at ${clock(time)}`);
  if (id === null) {
    fill(byId("facts"));
    fill(byId("state"), h("p", { class: "soft" }, "No conversation yet."));
    return;
  }
  of.value = id;
  const conversation = recording.conversations.get(id);
  if (moment?.conversation !== conversation || moment.generation !== recording.generation) {
    moment = Object.assign(new Moment(conversation, { Fold, redacted: recording.redacted }), { generation: recording.generation, shown: -1 });
  }
  moment.goTo(n);
  if (moment.shown === moment.taken) return;
  moment.shown = moment.taken;
  const root = byId("state");
  const atEnd = root.scrollTop + root.clientHeight > root.scrollHeight - 40;
  fill(byId("facts"), ...factNodes(moment, recording));
  fill(root, ...timelineNodes(moment, recording.redacted));
  if (atEnd) root.scrollTop = root.scrollHeight;
}

let shownFrame = null;

function showFrame() {
  if (shownFrame === selected) return;
  shownFrame = selected;
  byId("copy").hidden = selected === null;
  setText(byId("frame-at"), selected ? `${clock(selected.at)}${selected.gap === null ? "" : ` · ${duration(selected.gap)} after the one before`}` : "");
  if (selected) byId("json").replaceChildren(...jsonNodes(selected.line));
  else byId("json").replaceChildren("Choose a frame to see all of it.");
}

function showTheme(theme) {
  byId("theme").value = theme;
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme;
  lanes.ink.readColours();
  schedule();
}

byId("slider").addEventListener("input", ({ target }) => {
  const entry = recording.entries[Number(target.value)];
  if (entry) travel(entry.n);
});
byId("back").addEventListener("click", () => step(-1));
byId("forth").addEventListener("click", () => step(1));
byId("live").addEventListener("click", () => travel(at === null ? recording.last : null));
byId("closer").addEventListener("click", () => lanes.zoom(1 / 2, lanes.following ? 1 : 0.5));
byId("wider").addEventListener("click", () => lanes.zoom(2, lanes.following ? 1 : 0.5));
byId("whole").addEventListener("click", whole);
byId("save").addEventListener("click", save);
byId("load").addEventListener("click", () => (file ? backToServer() : byId("file").click()));
byId("file").addEventListener("change", ({ target }) => {
  if (target.files[0]) load(target.files[0]);
  target.value = "";
});
byId("copy").addEventListener("click", copy);
byId("state-of").addEventListener("change", ({ target }) => choose(target.value));
byId("theme").addEventListener("change", ({ target }) => {
  storage.setItem(THEME, target.value);
  showTheme(target.value);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => showTheme(byId("theme").value));
new ResizeObserver(schedule).observe(byId("lanes"));

showTheme(storage.getItem(THEME) ?? "auto");
feed.start();
