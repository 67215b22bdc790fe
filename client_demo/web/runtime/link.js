// One WebSocket after another to one address: when to dial, when to give a socket
// up, how long to wait. Knows nothing of conversations; `client.js` does.

import { advice, Backoff } from "./backoff.js";
import { answerOf } from "./boundary.js";
import { LATE_SECONDS, SILENT_HEARTBEATS, SUBPROTOCOL } from "../machine/constants.js";

const ANSWER_TIMEOUT_MS = 5_000;
// Platforms take a longer wait for none at all.
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The clock of the platform. */
export const SYSTEM_CLOCK = {
  now: () => performance.now(),
  setTimeout: (run, ms) => setTimeout(run, Math.min(ms, LONGEST_TIMER_MS)),
  clearTimeout: (timer) => clearTimeout(timer),
};

/** Named timers, of which each runs at most once at a time. */
export class Timers {
  #clock;
  #running = new Map();

  constructor(clock) {
    this.#clock = clock;
  }

  set(name, ms, run) {
    this.#clock.clearTimeout(this.#running.get(name));
    this.#running.set(name, this.#clock.setTimeout(run, ms));
  }

  clear() {
    for (const timer of this.#running.values()) this.#clock.clearTimeout(timer);
    this.#running.clear();
  }
}

export class Link {
  #url;
  #WebSocket;
  #clock;
  #hidden;
  #on;
  #backoff;
  #timers;
  #socket = null;
  #attempt = null;
  #heard = 0;
  /** When an answer was asked for that must come in time; null where none is awaited. */
  #asked = null;
  #heartbeatMs = 0;
  #onlineSince = null;
  /** The least wait after the close. */
  #floorMs = 0;
  /** No attempt is made before: what the least wait became once the socket was gone. */
  #notBefore = 0;
  #retryAt = 0;
  /** Of the last close. */
  #code = null;
  #openTimeoutMs;

  /**
   * @param {object} options
   * @param {() => boolean} options.hidden timers can't be trusted while it is true
   * @param {object} options.on `dialling()`, which may be waited for, `opened()`, `frame(text)`, `gone()`, `ping(now)`,
   *   `status(change)`
   */
  constructor({ url, WebSocket, random, clock, hidden, openTimeoutSeconds, backoffSeconds, on }) {
    if (typeof WebSocket !== "function") {
      throw new TypeError(
        "There is no WebSocket here: use Node 22, or Node 20 with --experimental-websocket, or give one as the option WebSocket.",
      );
    }
    this.#url = url;
    this.#WebSocket = WebSocket;
    this.#clock = clock;
    this.#hidden = () => answerOf(hidden, false);
    this.#on = on;
    this.#openTimeoutMs = openTimeoutSeconds * 1_000;
    this.#backoff = new Backoff(random, backoffSeconds);
    this.#timers = new Timers(clock);
    /** @type {"stopped" | "connecting" | "online" | "waiting"} */
    this.state = "stopped";
  }

  start() {
    if (this.state === "stopped") this.#dial();
  }

  stop() {
    this.#leave();
    this.#become("stopped", { code: null, retryAt: null });
  }

  send(frames) {
    if (this.#socket?.readyState !== 1) return;
    for (const frame of frames) this.#socket.send(JSON.stringify(frame));
  }

  /** The server said welcome. */
  welcomed(heartbeatMs) {
    if (!this.#socket) return;
    this.#heartbeatMs = Math.max(heartbeatMs, 100);
    this.#onlineSince = this.#clock.now();
    this.#timers.clear();
    this.#watch(this.#silentAt);
    this.#beat();
    this.#become("online", { code: null, retryAt: null });
  }

  /** The server asks for this wait after the close. */
  goingAway(reconnectAfterMs) {
    this.#floorMs = reconnectAfterMs;
  }

  /** Gives the socket up as a bad network would, to come back no sooner than told. */
  drop(offlineMs = 0) {
    if (this.state === "waiting") {
      this.#notBefore = Math.max(this.#notBefore, this.#clock.now() + offlineMs);
      if (this.#retryAt < this.#notBefore) this.#wait(this.#notBefore, this.#code);
    } else if (this.state !== "stopped") {
      this.#floorMs = Math.max(this.#floorMs, offlineMs);
      this.#lost(null);
    }
  }

  /** The page is visible again, or the network is back: of a wait only the least is kept. */
  wake() {
    if (this.state === "online") this.#demandAnswer();
    else if (this.state !== "waiting") return;
    else if (this.#clock.now() < this.#notBefore) this.#wait(this.#notBefore, this.#code);
    else this.#dial();
  }

  /** Who is told may stop the client, or start it: what follows has to look again. */
  #become(state, change) {
    this.state = state;
    this.#on.status({ state, ...change });
  }

  #dial() {
    this.#timers.clear();
    this.#floorMs = 0;
    this.#timers.set("welcome", this.#openTimeoutMs, () => this.#lost(null));
    const attempt = {};
    this.#attempt = attempt;
    const ifOurs = (run) => () => this.#attempt === attempt && run();
    this.#become("connecting", { retryAt: null });
    // Whoever was told may have stopped the client.
    const ready = ifOurs(() => this.#on.dialling())();
    if (!(ready instanceof Promise)) {
      ifOurs(() => this.#connect())();
      return;
    }
    ready.then(ifOurs(() => this.#connect()), ifOurs(() => this.#lost(null)));
  }

  #connect() {
    let socket;
    try {
      socket = new this.#WebSocket(this.#url, [SUBPROTOCOL]);
    } catch (fault) {
      this.#impossible(fault);
      return;
    }
    this.#socket = socket;
    const ours = (run) => (event) => {
      if (this.#socket === socket) run(event);
    };
    socket.onopen = ours(() => this.#on.opened());
    socket.onmessage = ours((event) => {
      this.#heard = this.#clock.now();
      this.#on.frame(event.data);
    });
    // 1005 and 1006 are never on the wire: no close frame, or one without a code.
    socket.onclose = ours(({ code }) => this.#lost(code === 1005 || code === 1006 ? null : code));
    socket.onerror = () => {}; // `close` follows
  }

  /** The address is none, or the page may not go there: trying again is no use. */
  #impossible(fault) {
    this.#leave();
    const error = { type: "error", code: "internal", message: `${this.#url} can't be reached: ${fault.message}`, retryable: false };
    this.#become("stopped", { code: null, retryAt: null, error });
  }

  #leave() {
    this.#timers.clear();
    this.#attempt = null;
    this.#asked = null;
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    this.#on.gone();
  }

  #lost(code) {
    this.#leave();
    // Whoever was told of what ended with the connection may have stopped the client.
    if (this.state === "stopped") return;
    const now = this.#clock.now();
    if (this.#onlineSince !== null) this.#backoff.held(now - this.#onlineSince);
    this.#onlineSince = null;
    const verdict = advice(code);
    if (verdict === "stop") {
      this.#become("stopped", { code, retryAt: null });
      return;
    }
    this.#notBefore = now + this.#floorMs;
    let delayMs = this.#backoff.delayMs(this.#floorMs);
    if (verdict === "reconnect_now" && !this.#floorMs && this.#backoff.attempts === 1) delayMs = 0;
    this.#wait(now + delayMs, code);
  }

  #wait(until, code) {
    this.#retryAt = until;
    this.#code = code;
    this.#timers.set("retry", until - this.#clock.now(), () => this.#dial());
    this.#become("waiting", { code, retryAt: until });
  }

  /** When the server will have been silent for too long. */
  get #silentAt() {
    return this.#heard + this.#heartbeatMs * SILENT_HEARTBEATS;
  }

  /** Looks for silence at a time; in a hidden page, or where this side slept, it says nothing of the server. */
  #watch(at) {
    this.#timers.set("silent", at - this.#clock.now(), () => {
      const now = this.#clock.now();
      const sleptMs = now - at;
      if (now < this.#silentAt) this.#watch(this.#silentAt);
      else if (this.#hidden() || sleptMs > LATE_SECONDS * 1_000) this.#watch(now + this.#heartbeatMs);
      else this.#lost(null);
    });
  }

  /** Asks whether the server is there, sooner than silence would tell. */
  #demandAnswer() {
    const asked = this.#clock.now();
    this.#on.ping(asked);
    // Who asks again waits no longer.
    if (this.#asked !== null) return;
    this.#asked = asked;
    this.#timers.set("answer", ANSWER_TIMEOUT_MS, () => {
      this.#asked = null;
      if (this.#heard < asked && !this.#hidden()) this.#lost(null);
    });
  }

  /** Pings as often as the server does: some proxies want bytes in both directions. */
  #beat() {
    this.#on.ping(this.#clock.now());
    this.#timers.set("beat", this.#heartbeatMs, () => this.#beat());
  }
}
