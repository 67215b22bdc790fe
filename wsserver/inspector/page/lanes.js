// The lanes: a group for each conversation, in it a line for each connection that has
// it open; time goes to the right. Drawn on a canvas, for there are many frames.

import { clock, duration, family, short } from "./words.js";
import { TEXTS } from "./recording.js";
import { h } from "/page/dom.js";

const AXIS = 26;
const GROUP = 30;
const LINE = 34;
const MIN_SPAN = 20;
const GAP_FACTOR = 5;
const GAP_MS = 200;
const GAP_PX = 8;
const NEAR_PX = 7;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 1_800_000, 7_200_000];

export class Lanes {
  #canvas;
  #scroller;
  #labels;
  #colours = new Map();
  #lines = [];
  #width = 0;
  #marks = [];
  #signature = "";
  #chosen = null;

  /**
   * @param {{canvas: HTMLCanvasElement, labels: HTMLElement, tip: HTMLElement}} elements
   * @param {{pick(entry: object): void, choose(conversation: string): void,
   *   moved(): void}} handlers
   */
  constructor({ canvas, labels, tip }, handlers) {
    this.#canvas = canvas;
    this.#scroller = canvas.closest(".lanes-body");
    this.#scroller.addEventListener("scroll", () => handlers.moved());
    this.#labels = labels;
    this.handlers = handlers;
    /** How many milliseconds are seen, and the last of them. */
    this.span = 10_000;
    this.end = this.span;
    this.following = true;
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.#drag(event));
    canvas.addEventListener("pointermove", (event) => this.#point(event, tip));
    canvas.addEventListener("pointerleave", () => (tip.hidden = true));
  }

  /** Colours are the style sheet's; they are read again when the theme changes. */
  readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["command", "control", "turn", "delta", "reasoning", "tool", "bad", "fault", "act", "link", "line", "soft", "ink", "ground", "sunken", "accent", "good", "warn"]) {
      this.#colours.set(name, style.getPropertyValue(`--${name}`).trim());
    }
  }

  zoom(factor, at = 1) {
    const begin = this.end - this.span;
    const fixed = begin + this.span * at;
    this.span = Math.max(MIN_SPAN, this.span * factor);
    this.end = fixed + this.span * (1 - at);
    this.handlers.moved();
  }

  /** Shows the time from `begin` to `end`. */
  show(begin, end) {
    this.span = Math.max(MIN_SPAN, (end - begin) * 1.04);
    this.end = end + this.span * 0.02;
    this.handlers.moved();
  }

  /** Makes a moment visible. */
  reveal(at) {
    if (at > this.end - this.span * 0.02) this.end = at + this.span * 0.1;
    if (at < this.end - this.span) this.end = at + this.span * 0.9;
  }

  draw(recording, { moment, selected, conversation }) {
    this.#layOut(recording, conversation);
    const ratio = devicePixelRatio;
    const width = this.#canvas.parentElement.clientWidth;
    const height = this.#lines.reduce((sum, line) => sum + line.height, AXIS);
    if (this.#canvas.width !== Math.round(width * ratio) || this.#canvas.height !== Math.round(height * ratio)) {
      this.#canvas.width = Math.round(width * ratio);
      this.#canvas.height = Math.round(height * ratio);
      this.#canvas.style.width = `${width}px`;
      this.#canvas.style.height = `${height}px`;
    }
    this.#width = width;
    const pen = this.#canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this.#axis(pen, height);
    this.#marks = [];
    let top = AXIS;
    const { scrollTop, clientHeight } = this.#scroller;
    for (const line of this.#lines) {
      const seen = top < scrollTop + clientHeight && top + line.height > scrollTop;
      if (seen) this.#line(pen, line, top, moment.at);
      top += line.height;
    }
    this.#playhead(pen, moment, height);
    if (selected) this.#circle(pen, selected);
  }

  #layOut(recording, chosen) {
    const lines = [];
    const add = (id, label, lanes, turns) => {
      lines.push({ kind: "group", id, height: GROUP, turns, label });
      for (const [name, entries] of lanes) {
        lines.push({ kind: "line", id, name, height: LINE, entries, label: labelOf(recording, name) });
      }
    };
    for (const { id, lanes, turns } of recording.conversations.values()) add(id, short(id, 18), lanes, turns);
    if (recording.loose.size > 0) add(null, "connections", recording.loose, new Map());
    this.#lines = lines;
    const signature = JSON.stringify([chosen, lines.map(({ kind, id, label }) => [kind, id, label])]);
    if (signature === this.#signature) return;
    this.#signature = signature;
    this.#labels.replaceChildren(...lines.map((line) => this.#label(line, chosen)));
    if (chosen !== this.#chosen) this.#labels.querySelector('[aria-pressed="true"]')?.scrollIntoView({ block: "nearest" });
    this.#chosen = chosen;
  }

  #label({ kind, id, label, name }, chosen) {
    if (kind === "line") return h("div", { class: "label line", title: name }, label);
    if (id === null) return h("div", { class: "label group" }, h("span", {}, label));
    const props = { type: "button", class: "label group", title: id, "aria-pressed": String(id === chosen), onclick: () => this.handlers.choose(id) };
    return h("button", props, label);
  }

  #x(at) {
    return this.#width * (1 - (this.end - at) / this.span);
  }

  #axis(pen, height) {
    const step = STEPS.find((each) => (each / this.span) * this.#width > 80) ?? STEPS.at(-1);
    const begin = Math.max(0, this.end - this.span);
    pen.lineWidth = 1;
    for (let at = Math.ceil(begin / step) * step; at <= this.end; at += step) {
      const x = Math.round(this.#x(at)) + 0.5;
      pen.strokeStyle = this.#colours.get("line");
      pen.globalAlpha = 0.6;
      pen.beginPath();
      pen.moveTo(x, AXIS - 6);
      pen.lineTo(x, height);
      pen.stroke();
      pen.globalAlpha = 1;
      pen.fillStyle = this.#colours.get("soft");
      pen.textAlign = "left";
      pen.fillText(step < 1_000 ? clock(at) : clock(at).slice(0, -4), x + 4, AXIS / 2);
    }
  }

  #line(pen, line, top, now) {
    pen.fillStyle = this.#colours.get("sunken");
    if (line.kind === "group") {
      pen.fillRect(0, top, this.#width, line.height);
      this.#turns(pen, line, top);
      return;
    }
    const middle = top + line.height / 2 + 3;
    pen.fillStyle = this.#colours.get("line");
    pen.fillRect(0, Math.round(middle), this.#width, 1);
    const seen = visible(line.entries, this.end - this.span, this.end);
    this.#gaps(pen, seen, middle, now);
    let last = -Infinity;
    for (const entry of seen) {
      const x = this.#x(entry.at);
      if (x < -4 || x > this.#width + 4) continue;
      // Pieces of text that fall on one another are drawn once.
      if (TEXTS.has(entry.type) && !entry.line.fault) {
        if (x - last < 0.5) continue;
        last = x;
      }
      pen.globalAlpha = entry.at > now ? 0.28 : 1;
      this.#mark(pen, entry, x, middle);
      this.#marks.push({ entry, x, y: middle });
    }
    pen.globalAlpha = 1;
  }

  /** Turns as bars, from `start` to `done`, in the group's line. */
  #turns(pen, { turns }, top) {
    const shades = { completed: "good", interrupted: "warn", incomplete: "warn", failed: "bad" };
    for (const { begin, end, status, model } of turns.values()) {
      const from = Math.max(-10, this.#x(begin));
      const to = Math.min(this.#width + 10, this.#x(end ?? this.end));
      if (to < 0 || from > this.#width) continue;
      const colour = this.#colours.get(shades[status] ?? "accent");
      pen.fillStyle = colour;
      pen.globalAlpha = 0.2;
      pen.beginPath();
      pen.roundRect(from, top + 6, Math.max(3, to - from), GROUP - 12, 4);
      pen.fill();
      pen.globalAlpha = 1;
      if (to - from < 60) continue;
      pen.save();
      pen.beginPath();
      pen.rect(from, top, to - from - 6, GROUP);
      pen.clip();
      pen.fillStyle = this.#colours.get("ink");
      pen.textAlign = "left";
      const took = end === null ? "running" : `${status}, ${duration(end - begin)}`;
      pen.fillText(`${model} · ${took}`, Math.max(4, from + 8), top + GROUP / 2 + 0.5);
      pen.restore();
    }
  }

  /** Where a text stood still for longer than its usual rhythm. */
  #gaps(pen, seen, middle, now) {
    const texts = seen.filter((entry) => entry.kind === "out" && TEXTS.has(entry.type));
    const byTurn = Map.groupBy(texts, (entry) => entry.line.frame.turn);
    const least = Math.max(GAP_MS, (GAP_PX / this.#width) * this.span);
    for (const group of byTurn.values()) {
      if (!group.some((entry, i) => i > 0 && entry.at - group[i - 1].at >= least)) continue;
      const gaps = group.slice(1).map((entry, i) => entry.at - group[i].at);
      const usual = gaps.toSorted((a, b) => a - b)[gaps.length >> 1] ?? 0;
      gaps.forEach((gap, i) => {
        if (gap < Math.max(least, GAP_FACTOR * usual)) return;
        const [from, to] = [this.#x(group[i].at) + 2, this.#x(group[i + 1].at) - 2];
        if (to < 0 || from > this.#width) return;
        pen.globalAlpha = group[i + 1].at > now ? 0.1 : 0.25;
        pen.fillStyle = this.#colours.get("warn");
        pen.fillRect(from, middle - 3, to - from, 7);
        pen.globalAlpha = 1;
        const text = duration(gap);
        if (to - from < pen.measureText(text).width + 8) return;
        pen.fillStyle = this.#colours.get("warn");
        pen.textAlign = "center";
        pen.fillText(text, (from + to) / 2, middle - 11);
      });
    }
  }

  /** From the client: a triangle above the line. To it: a bar that grows with its size. */
  #mark(pen, entry, x, middle) {
    const kind = family(entry);
    pen.fillStyle = this.#colours.get(kind);
    if (kind === "act" || kind === "link") {
      pen.beginPath();
      pen.moveTo(x, middle - 6);
      pen.lineTo(x + 6, middle);
      pen.lineTo(x, middle + 6);
      pen.lineTo(x - 6, middle);
      pen.fill();
    } else if (entry.kind === "in") {
      pen.beginPath();
      pen.moveTo(x - 5, middle - 13);
      pen.lineTo(x + 5, middle - 13);
      pen.lineTo(x, middle - 3);
      pen.fill();
    } else if (TEXTS.has(entry.type)) {
      const tall = Math.min(11, 3 + Math.log2(1 + entry.line.bytes / 32) * 2);
      const wide = this.#width / this.span > 0.2 ? 2 : 1;
      pen.fillRect(x - wide / 2, middle - tall + 1, wide, 2 * tall);
    } else {
      pen.beginPath();
      pen.arc(x, middle + 0.5, kind === "turn" ? 4.5 : 3.5, 0, 7);
      pen.fill();
    }
  }

  #playhead(pen, { at, live }, height) {
    const x = Math.round(this.#x(at)) + 0.5;
    pen.strokeStyle = this.#colours.get(live ? "good" : "accent");
    pen.lineWidth = live ? 1 : 1.5;
    pen.beginPath();
    pen.moveTo(x, 4);
    pen.lineTo(x, height);
    pen.stroke();
    if (live) return;
    pen.fillStyle = this.#colours.get("accent");
    pen.beginPath();
    pen.arc(x, 6, 4, 0, 7);
    pen.fill();
  }

  #circle(pen, selected) {
    const mark = this.#marks.find(({ entry }) => entry === selected);
    if (!mark) return;
    pen.strokeStyle = this.#colours.get("ink");
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.arc(mark.x, mark.y, 11, 0, 7);
    pen.stroke();
  }

  #near(event) {
    const box = this.#canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    for (const mark of this.#marks) {
      if (Math.abs(mark.y - y) > LINE / 2) continue;
      const distance = Math.abs(mark.x - x);
      if (distance <= NEAR_PX && distance < (best?.distance ?? Infinity)) best = { ...mark, distance };
    }
    return best;
  }

  #point(event, tip) {
    const near = event.buttons === 0 ? this.#near(event) : null;
    this.#canvas.classList.toggle("over", near !== null);
    tip.hidden = near === null;
    if (!near) return;
    const { entry } = near;
    tip.textContent = `${clock(entry.at)}  ${entry.type}${entry.gap === null ? "" : `  +${duration(entry.gap)}`}`;
    tip.style.left = `${Math.min(near.x + 12, this.#width - 220)}px`;
    tip.style.top = `${near.y + 12}px`;
  }

  #wheel(event) {
    if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) < Math.abs(event.deltaY)) return;
    event.preventDefault();
    const box = this.#canvas.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) {
      this.zoom(Math.exp(event.deltaY / 200), (event.clientX - box.left) / box.width);
    } else {
      this.following = false;
      this.end += (event.deltaX / box.width) * this.span;
      this.handlers.moved();
    }
  }

  #drag(event) {
    const near = this.#near(event);
    if (near) {
      this.handlers.pick(near.entry);
      return;
    }
    const [from, end] = [event.clientX, this.end];
    this.#canvas.setPointerCapture(event.pointerId);
    const move = ({ clientX }) => {
      this.following = false;
      this.end = end - ((clientX - from) / this.#width) * this.span;
      this.handlers.moved();
    };
    const up = () => this.#canvas.removeEventListener("pointermove", move);
    this.#canvas.addEventListener("pointermove", move);
    this.#canvas.addEventListener("pointerup", up, { once: true });
  }
}

function labelOf(recording, name) {
  const { client } = recording.connections.get(name);
  return client ? `${client} · ${short(name, 9)}` : short(name);
}

/** Those of the entries that fall into a time, and one before and after. */
function visible(entries, begin, end) {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[middle].at < begin) low = middle + 1;
    else high = middle;
  }
  let last = low;
  while (last < entries.length && entries[last].at <= end) last += 1;
  return entries.slice(Math.max(0, low - 1), last + 1);
}
