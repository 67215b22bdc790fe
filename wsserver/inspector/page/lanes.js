// The lanes: a group for each conversation, in it a line for each connection that has
// it open; time goes to the right. Drawn on a canvas, for there are many frames; it is
// as large as what is seen, for there may be many conversations.

import { AXIS, GROUP, Ink } from "./ink.js";
import { TEXTS } from "./recording.js";
import { clock, duration, short } from "./words.js";
import { h } from "/page/dom.js";

const LINE = 34;
const MIN_SPAN = 20;
const NEAR_PX = 7;

export class Lanes {
  #canvas;
  #scroller;
  #labels;
  #lines = [];
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
    this.ink = new Ink();
    this.following = true;
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.#drag(event));
    canvas.addEventListener("pointermove", (event) => this.#point(event, tip));
    canvas.addEventListener("pointerleave", () => (tip.hidden = true));
  }

  /** Goes along with the time that passes. */
  follow(at) {
    if (this.following) this.ink.end = Math.max(this.ink.span, at + this.ink.span * 0.03);
  }

  zoom(factor, at = 1) {
    const begin = this.ink.end - this.ink.span;
    const fixed = begin + this.ink.span * at;
    this.ink.span = Math.max(MIN_SPAN, this.ink.span * factor);
    this.ink.end = fixed + this.ink.span * (1 - at);
    this.handlers.moved();
  }

  /** Shows the time from `begin` to `end`. */
  show(begin, end) {
    this.ink.span = Math.max(MIN_SPAN, (end - begin) * 1.04);
    this.ink.end = end + this.ink.span * 0.02;
    this.handlers.moved();
  }

  /** Makes a moment visible. */
  reveal(at) {
    if (at > this.ink.end - this.ink.span * 0.02) this.ink.end = at + this.ink.span * 0.1;
    if (at < this.ink.end - this.ink.span) this.ink.end = at + this.ink.span * 0.9;
  }

  draw(recording, { moment, selected, conversation }) {
    const whole = this.#layOut(recording);
    this.#canvas.parentElement.style.height = `${whole}px`;
    this.#showLabels(conversation);
    const { scrollTop, clientHeight } = this.#scroller;
    const ratio = devicePixelRatio;
    const width = this.#canvas.parentElement.clientWidth;
    const height = Math.min(whole, clientHeight);
    if (this.#canvas.width !== Math.round(width * ratio) || this.#canvas.height !== Math.round(height * ratio)) {
      this.#canvas.width = Math.round(width * ratio);
      this.#canvas.height = Math.round(height * ratio);
      this.#canvas.style.width = `${width}px`;
      this.#canvas.style.height = `${height}px`;
    }
    this.ink.width = width;
    const pen = this.#canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.translate(0, -scrollTop);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this.ink.axis(pen, whole);
    this.#marks = [];
    for (const line of this.#seen()) this.#line(pen, line, line.top, moment.at);
    this.ink.playhead(pen, moment, whole);
    if (selected) this.#circle(pen, selected);
  }

  /** Says which line stands where; returns the height of all. */
  #layOut(recording) {
    const lines = [];
    let top = AXIS;
    const put = (line) => {
      lines.push({ ...line, top });
      top += line.height;
    };
    const add = (id, label, lanes, turns) => {
      put({ kind: "group", id, height: GROUP, turns, label });
      for (const [name, entries] of lanes) put({ kind: "line", id, name, height: LINE, entries, label: labelOf(recording, name) });
    };
    for (const { id, lanes, turns } of recording.conversations.values()) add(id, short(id, 18), lanes, turns);
    if (recording.loose.size > 0) add(null, "connections", recording.loose, new Map());
    this.#lines = lines;
    return top;
  }

  /** The lines that are in sight. */
  #seen() {
    const { scrollTop, clientHeight } = this.#scroller;
    return this.#lines.filter(({ top, height }) => top < scrollTop + clientHeight && top + height > scrollTop);
  }

  #showLabels(chosen) {
    if (chosen !== this.#chosen) {
      this.#chosen = chosen;
      this.#reveal(chosen);
    }
    const lines = this.#seen();
    const signature = JSON.stringify([chosen, lines.map(({ kind, id, label, top }) => [kind, id, label, top])]);
    if (signature === this.#signature) return;
    this.#signature = signature;
    this.#labels.style.paddingTop = `${lines[0]?.top ?? AXIS}px`;
    this.#labels.replaceChildren(...lines.map((line) => this.#label(line, chosen)));
  }

  /** Scrolls to a conversation that is out of sight. */
  #reveal(id) {
    const line = this.#lines.find((each) => each.kind === "group" && each.id === id);
    if (!line) return;
    const { scrollTop, clientHeight } = this.#scroller;
    if (line.top < scrollTop) this.#scroller.scrollTop = line.top - AXIS;
    else if (line.top + GROUP > scrollTop + clientHeight) this.#scroller.scrollTop = line.top + GROUP + LINE - clientHeight;
  }

  #label({ kind, id, label, name }, chosen) {
    if (kind === "line") return h("div", { class: "label line", title: name }, label);
    if (id === null) return h("div", { class: "label group" }, h("span", {}, label));
    const props = { type: "button", class: "label group", title: id, "aria-pressed": String(id === chosen), onclick: () => this.handlers.choose(id) };
    return h("button", props, label);
  }

  #line(pen, line, top, now) {
    pen.fillStyle = this.ink.colours.get("sunken");
    if (line.kind === "group") {
      pen.fillRect(0, top, this.ink.width, line.height);
      this.ink.turns(pen, line, top);
      return;
    }
    const middle = top + line.height / 2 + 3;
    pen.fillStyle = this.ink.colours.get("line");
    pen.fillRect(0, Math.round(middle), this.ink.width, 1);
    const seen = visible(line.entries, this.ink.end - this.ink.span, this.ink.end);
    this.ink.gaps(pen, seen, middle, now);
    let last = -Infinity;
    for (const entry of seen) {
      const x = this.ink.x(entry.at);
      if (x < -4 || x > this.ink.width + 4) continue;
      // Pieces of text that fall on one another are drawn once.
      if (TEXTS.has(entry.type) && !entry.line.fault) {
        if (x - last < 0.5) continue;
        last = x;
      }
      pen.globalAlpha = entry.at > now ? 0.28 : 1;
      this.ink.mark(pen, entry, x, middle);
      this.#marks.push({ entry, x, y: middle });
    }
    pen.globalAlpha = 1;
  }

  #circle(pen, selected) {
    const mark = this.#marks.find(({ entry }) => entry === selected);
    if (!mark) return;
    pen.strokeStyle = this.ink.colours.get("ink");
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.arc(mark.x, mark.y, 11, 0, 7);
    pen.stroke();
  }

  #near(event) {
    const box = this.#canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top + this.#scroller.scrollTop];
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
    tip.style.left = `${Math.min(near.x + 12, this.ink.width - 220)}px`;
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
      this.ink.end += (event.deltaX / box.width) * this.ink.span;
      this.handlers.moved();
    }
  }

  #drag(event) {
    const near = this.#near(event);
    if (near) {
      this.handlers.pick(near.entry);
      return;
    }
    const [from, end] = [event.clientX, this.ink.end];
    this.#canvas.setPointerCapture(event.pointerId);
    const move = ({ clientX }) => {
      this.following = false;
      this.ink.end = end - ((clientX - from) / this.ink.width) * this.ink.span;
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
