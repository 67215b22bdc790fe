// A conversation at a moment: who looks at it and how far, and what it says.

import { contentText } from "/fold.js";
import { h } from "/page/dom.js";
import { short, turnState } from "./words.js";

const MARK = /^«(\d+)»$/;
const MOST_PIECES = 400;
const MOST_ITEMS = 30;
const WIDEST = 24;
const MOST_BYTES = 6_000;

/** The nodes that say how a conversation stands. @returns {Node[]} */
export function factNodes({ fold, last, viewers, epoch, running: turn }, recording) {
  return [
    h(
      "dl",
      { class: "facts" },
      h("div", {}, h("dt", {}, "head"), h("dd", {}, last === null ? "—" : String(last))),
      h("div", {}, h("dt", {}, "turn"), h("dd", { "data-state": turn ? "running" : "idle" }, turn ? `${turn.seq} running` : "none")),
      h("div", {}, h("dt", {}, "epoch"), h("dd", {}, epoch ? short(epoch, 10) : "—")),
      h("div", {}, h("dt", {}, "model"), h("dd", {}, fold.config.model ?? turn?.model ?? "—")),
    ),
    h("ul", { class: "viewers", "aria-label": "Viewers and their cursors" }, ...[...viewers].map(([name, cursor]) => viewer(recording, name, cursor, last))),
    viewers.size === 0 && h("p", { class: "soft" }, "Nobody has it open."),
  ];
}

/** The nodes of what it says. @returns {Node[]} */
export function timelineNodes({ fold, holes }, redacted) {
  const nodes = [];
  if (holes.length > 0) nodes.push(h("p", { class: "hole" }, `Not in the recording: ${holes.map(([from, to]) => `${from}…${to}`).join(", ")}`));
  const items = fold.items.slice(-MOST_ITEMS);
  if (items.length < fold.items.length) nodes.push(h("p", { class: "soft" }, `${fold.items.length - items.length} earlier messages and turns`));
  nodes.push(...items.map((item) => (item.kind === "message" ? message(item) : turnNode(item, redacted))));
  if (items.length === 0) nodes.push(h("p", { class: "soft" }, "No message yet."));
  return nodes;
}

function viewer(recording, name, cursor, last) {
  const client = recording.connections.get(name)?.client;
  const lag = Math.max(0, (last ?? 0) - cursor);
  return h(
    "li",
    { "data-lag": lag > 0 ? "" : null },
    h("span", {}, client ? `${client} · ${short(name, 9)}` : short(name)),
    h("strong", {}, String(cursor)),
    h("span", { class: "soft" }, lag > 0 ? `${lag} behind` : "at the head"),
  );
}

function message({ seq, content, by, steers }) {
  return h("div", { class: "message" }, h("p", { class: "soft" }, `${seq} · ${by}${steers === null ? "" : " · steers"}`), h("p", { class: "words" }, ...words([contentText(content)])));
}

function turnNode(turn, redacted) {
  const state = turnState(turn);
  return h(
    "div",
    { class: "turn", "data-state": turn.done?.status ?? "running" },
    h("p", { class: "soft" }, `${turn.seq} · ${turn.model || "beginning not recorded"} · `, h("span", { class: "turn-state" }, state), proof(turn, redacted)),
    ...turn.parts.map((part) => (part.kind === "tool" ? tool(part) : text(part, redacted))),
    turn.keepThrough !== null && h("p", { class: "cut" }, `cut after ${turn.keepThrough}`),
  );
}

/** Whether the text is what the server keeps; of a redacted one only its length is known. */
function proof(turn, redacted) {
  if (!turn.done || !turn.whole) return false;
  const fits = redacted ? turn.text.length === (turn.done.text?.bytes ?? 0) : turn.proven;
  if (turn.keepThrough !== null && redacted) return false;
  return h("span", { class: fits ? "fits" : "differs" }, fits ? ` · ${redacted ? "length" : "text"} proven` : " · not what the server keeps");
}

function text({ kind, pieces }, redacted) {
  const shown = pieces.slice(-MOST_PIECES);
  const more = pieces.length > shown.length && h("span", { class: "soft" }, `${pieces.length - shown.length} earlier pieces … `);
  const nodes = redacted ? shown.flatMap((piece) => blocks(piece.length)) : [shown.join("")];
  return h("p", { class: `words ${kind}` }, more, ...nodes);
}

function tool({ name, call, arguments: complete, partial, status }) {
  const state = status === "open" ? "running" : status;
  const args = status === "streaming" ? partial : complete;
  return h("p", { class: "tool", "data-state": state, title: call }, h("code", {}, name), " ", ...words([typeof args === "string" ? args : JSON.stringify(args)]), " ", h("span", { class: "soft" }, state));
}

/** Text, with a block where a recording has only a length. */
function words(texts) {
  return texts.flatMap((each) => {
    const mark = MARK.exec(each);
    return mark ? blocks(Number(mark[1])) : [document.createTextNode(each)];
  });
}

/** A block as long as the text was; a long one in pieces, so that it can be wrapped. */
function blocks(length) {
  const made = [];
  for (let left = Math.min(length, MOST_BYTES); left > 0; left -= WIDEST) {
    const element = h("span", { class: "block", title: `${length} bytes` });
    element.style.width = `${Math.min(WIDEST, left) * 0.5}em`;
    made.push(element);
  }
  return made;
}
