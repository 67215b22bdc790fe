// What the tests put in the place of a network, a clock and a server.

import { readFileSync } from "node:fs";

import { PageStorage } from "../../client_demo/web/page/page_storage.js";

const { templates: TEMPLATES } = JSON.parse(readFileSync(new URL("../conformance/frames.json", import.meta.url), "utf8"));

/** A frame with what a test need not say of it. */
function whole(frame) {
  const template = Object.hasOwn(TEMPLATES, frame.type) ? TEMPLATES[frame.type] : {};
  const filled = { ...template, ...frame };
  return frame.limits ? { ...filled, limits: { ...template.limits, ...frame.limits } } : filled;
}

/** Time that passes when a test says so. */
export class Clock {
  #now = 1_000;
  #timers = new Map();
  #next = 1;

  now = () => this.#now;

  setTimeout = (run, ms) => {
    const timer = this.#next++;
    this.#timers.set(timer, { at: this.#now + ms, run });
    return timer;
  };

  clearTimeout = (timer) => this.#timers.delete(timer);

  get waits() {
    return [...this.#timers.values()].map(({ at }) => at - this.#now);
  }

  /** Lets `ms` pass with no timer run, as on a machine that sleeps. */
  sleep(ms) {
    this.#now += ms;
  }

  /** Lets `ms` pass and runs what comes due, in order. */
  pass(ms) {
    const end = this.#now + ms;
    for (;;) {
      const due = [...this.#timers].filter(([, { at }]) => at <= end);
      if (due.length === 0) break;
      const [timer, { at, run }] = due.reduce((a, b) => (b[1].at < a[1].at ? b : a));
      this.#timers.delete(timer);
      this.#now = Math.max(this.#now, at);
      run();
    }
    this.#now = end;
  }
}

/** A network of which a test holds the other end of each socket. */
export class Network {
  constructor() {
    this.sockets = [];
    const { sockets } = this;
    this.WebSocket = class FakeSocket {
      constructor(url, protocols) {
        Object.assign(this, { url, protocols, readyState: 0, sent: [], closedBy: null });
        sockets.push(this);
      }

      send(text) {
        this.sent.push(JSON.parse(text));
        this.onsent?.(this.sent.at(-1));
      }

      close() {
        this.readyState = 3;
        this.closedBy ??= "client";
        this.onclosed?.();
      }

      // From here on: the other end.

      accept() {
        this.readyState = 1;
        this.onopen({});
      }

      deliver(...frames) {
        for (const frame of frames) this.say(JSON.stringify(whole(frame)));
      }

      /** Says what may be no frame at all. */
      say(text) {
        this.onmessage({ data: text });
      }

      cut(code = 1006) {
        if (this.readyState === 3) return;
        this.readyState = 3;
        this.closedBy = "server";
        this.onclose({ code });
      }

      /** The commands that came, without the pings. */
      get commands() {
        return this.sent.filter((frame) => frame.type !== "ping");
      }

      last(type) {
        return this.sent.findLast((frame) => frame.type === type);
      }
    };
  }

  get socket() {
    return this.sockets.at(-1);
  }
}

export const WELCOME = {
  type: "welcome",
  protocol: 1,
  connection: "c1",
  heartbeat_ms: 20_000,
  server: { name: "double", version: "0" },
  models: ["demo/markdown"],
  limits: { frame_bytes: 262_144 },
  features: ["gathered_text"],
};

/** A storage which counts what is written. */
export class Memory extends PageStorage {
  written = 0;

  setItem(name, text) {
    this.written += text.length;
    super.setItem(name, text);
  }
}

/** Ids that tell where they came from. */
export function counter(prefix) {
  let count = 0;
  return () => `${prefix}${(count += 1)}`;
}

/** A small generator of random numbers that a seed repeats (mulberry32). */
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
