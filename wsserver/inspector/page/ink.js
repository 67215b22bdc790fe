// How frames look in the lanes: what is drawn on the canvas, and where.

import { TEXTS } from "./recording.js";
import { clock, duration, family } from "./words.js";

export const AXIS = 26;
export const GROUP = 30;

const GAP_FACTOR = 5;
const GAP_MS = 200;
const GAP_PX = 8;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 1_800_000, 7_200_000];
const COLOURS = ["command", "control", "turn", "delta", "reasoning", "tool", "bad", "fault", "act", "link", "line", "soft", "ink", "sunken", "accent", "good", "warn"];

/** Draws for the time that is seen: `span` milliseconds up to `end`. */
export class Ink {
  constructor() {
    this.colours = new Map();
    this.span = 10_000;
    this.end = this.span;
    this.width = 0;
  }

  /** Colours are the style sheet's; they are read again when the theme changes. */
  readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of COLOURS) this.colours.set(name, style.getPropertyValue(`--${name}`).trim());
  }

  /** Where on the canvas a moment is. */
  x(at) {
    return this.width * (1 - (this.end - at) / this.span);
  }

  axis(pen, height) {
    const step = STEPS.find((each) => (each / this.span) * this.width > 80) ?? STEPS.at(-1);
    const begin = Math.max(0, this.end - this.span);
    pen.lineWidth = 1;
    for (let at = Math.ceil(begin / step) * step; at <= this.end; at += step) {
      const x = Math.round(this.x(at)) + 0.5;
      pen.strokeStyle = this.colours.get("line");
      pen.globalAlpha = 0.6;
      pen.beginPath();
      pen.moveTo(x, AXIS - 6);
      pen.lineTo(x, height);
      pen.stroke();
      pen.globalAlpha = 1;
      pen.fillStyle = this.colours.get("soft");
      pen.textAlign = "left";
      pen.fillText(step < 1_000 ? clock(at) : clock(at).slice(0, -4), x + 4, AXIS / 2);
    }
  }

  /** Turns as bars, from `start` to `done`, in the group's line. */
  turns(pen, { turns }, top) {
    const shades = { completed: "good", interrupted: "warn", incomplete: "warn", failed: "bad" };
    for (const { begin, end, status, model } of turns.values()) {
      const from = Math.max(-10, this.x(begin));
      const to = Math.min(this.width + 10, this.x(end ?? this.end));
      if (to < 0 || from > this.width) continue;
      const colour = this.colours.get(shades[status] ?? "accent");
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
      pen.fillStyle = this.colours.get("ink");
      pen.textAlign = "left";
      const took = end === null ? "running" : `${status}, ${duration(end - begin)}`;
      pen.fillText(`${model} · ${took}`, Math.max(4, from + 8), top + GROUP / 2 + 0.5);
      pen.restore();
    }
  }

  /** Where a text stood still for longer than its usual rhythm. */
  gaps(pen, seen, middle, now) {
    const texts = seen.filter((entry) => entry.kind === "out" && TEXTS.has(entry.type));
    const byTurn = Map.groupBy(texts, (entry) => entry.line.frame.turn);
    const least = Math.max(GAP_MS, (GAP_PX / this.width) * this.span);
    for (const group of byTurn.values()) {
      if (!group.some((entry, i) => i > 0 && entry.at - group[i - 1].at >= least)) continue;
      const gaps = group.slice(1).map((entry, i) => entry.at - group[i].at);
      const usual = gaps.toSorted((a, b) => a - b)[gaps.length >> 1] ?? 0;
      gaps.forEach((gap, i) => {
        if (gap < Math.max(least, GAP_FACTOR * usual)) return;
        const [from, to] = [this.x(group[i].at) + 2, this.x(group[i + 1].at) - 2];
        if (to < 0 || from > this.width) return;
        pen.globalAlpha = group[i + 1].at > now ? 0.1 : 0.25;
        pen.fillStyle = this.colours.get("warn");
        pen.fillRect(from, middle - 3, to - from, 7);
        pen.globalAlpha = 1;
        const text = duration(gap);
        if (to - from < pen.measureText(text).width + 8) return;
        pen.fillStyle = this.colours.get("warn");
        pen.textAlign = "center";
        pen.fillText(text, (from + to) / 2, middle - 11);
      });
    }
  }

  /** From the client: a triangle above the line. To it: a bar that grows with its size. */
  mark(pen, entry, x, middle) {
    const kind = family(entry);
    pen.fillStyle = this.colours.get(kind);
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
      const wide = this.width / this.span > 0.2 ? 2 : 1;
      pen.fillRect(x - wide / 2, middle - tall + 1, wide, 2 * tall);
    } else {
      pen.beginPath();
      pen.arc(x, middle + 0.5, kind === "turn" ? 4.5 : 3.5, 0, 7);
      pen.fill();
    }
  }

  playhead(pen, { at, live }, height) {
    const x = Math.round(this.x(at)) + 0.5;
    pen.strokeStyle = this.colours.get(live ? "good" : "accent");
    pen.lineWidth = live ? 1 : 1.5;
    pen.beginPath();
    pen.moveTo(x, 4);
    pen.lineTo(x, height);
    pen.stroke();
    if (live) return;
    pen.fillStyle = this.colours.get("accent");
    pen.beginPath();
    pen.arc(x, 6, 4, 0, 7);
    pen.fill();
  }
}
