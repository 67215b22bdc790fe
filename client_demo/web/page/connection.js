// The connection on the screen: its state, the switch that cuts it, the token field.

import { byId, setText } from "./dom.js";
import { duration, stopped } from "./words.js";

const OFFLINE_MS = 1_500;
const RESTARTS = "The server restarts. This page reconnects by itself.";

export class ConnectionPanel {
  #client;
  #dot = byId("connection");
  #text = byId("connection-text");
  /** The same text: of a restart, and for a screen so narrow that the panel is in a drawer. */
  #bar = byId("bar");
  #drop = byId("drop");
  #retry = byId("retry");
  #token = byId("token-form");
  #ticker = null;
  #announce;
  #onAsk;
  #asks = false;
  #wasOnline = false;
  #restarts = false;

  /**
   * @param {import("../client.js").ChatClient} client
   * @param {{announce(text: string): void, onToken(token: string): void, onAsk(open: boolean): void}} on
   *   `onAsk` shows this panel where it is out of sight, and puts it away again
   */
  constructor(client, { announce, onToken, onAsk }) {
    this.#client = client;
    this.#onAsk = onAsk;
    this.#announce = announce;
    this.#drop.addEventListener("click", () => this.drop());
    this.#retry.addEventListener("click", () => this.#connectNow());
    this.#token.addEventListener("submit", (event) => {
      event.preventDefault();
      onToken(byId("token").value.trim());
      onAsk(false);
      client.stop();
      client.start();
    });
  }

  /** Cuts the socket as a bad network would. */
  drop() {
    this.#client.drop(OFFLINE_MS);
  }

  show() {
    const { status } = this.#client;
    this.#dot.dataset.state = status.state;
    this.#drop.hidden = status.state !== "online";
    const restarts = status.goaway !== null && status.state !== "stopped";
    this.#bar.hidden = status.state === "online" && !restarts;
    for (const each of [this.#bar, this.#dot]) each.classList.toggle("restarts", restarts);
    this.#retry.hidden = status.state !== "waiting" && status.state !== "stopped";
    this.#token.hidden = !(status.code === 4401 || byId("token").value !== "");
    this.#ask(status.state === "stopped" && status.code === 4401);
    this.#say();
    this.#tick(status.state === "waiting");
    this.#tell(status);
  }

  #ask(wanted) {
    if (wanted && !this.#asks) {
      this.#onAsk(true);
      byId("token").select();
    }
    this.#asks = wanted;
  }

  #say() {
    const words = this.#words();
    setText(this.#text, words);
    setText(this.#bar, words);
  }

  #words() {
    const { state, code, retryAt, error, goaway, rttMs } = this.#client.status;
    switch (state) {
      case "online":
        if (goaway) return RESTARTS;
        return rttMs === null ? "Connected" : `Connected · ${duration(rttMs)}`;
      case "connecting":
        return "Connecting…";
      case "waiting": {
        const ms = Math.max(0, retryAt - performance.now());
        const why = goaway ? "The server restarts" : navigator.onLine ? "Connection lost" : "Offline";
        return `${why} · again in ${(ms / 1_000).toFixed(1)} s`;
      }
      default:
        return stopped(code, error);
    }
  }

  #tick(wanted) {
    if (wanted === (this.#ticker !== null)) return;
    if (wanted) {
      this.#ticker = setInterval(() => this.#say(), 100);
    } else {
      clearInterval(this.#ticker);
      this.#ticker = null;
    }
  }

  #tell({ state, goaway }) {
    if (state === "online" && !this.#wasOnline) this.#announce("Connected.");
    if (goaway && !this.#restarts) this.#announce(RESTARTS);
    else if (state === "waiting" && this.#wasOnline) this.#announce("Connection lost. Reconnecting.");
    if (state === "stopped") this.#announce(this.#words());
    if (state !== "connecting") this.#wasOnline = state === "online";
    this.#restarts = goaway !== null;
  }

  #connectNow() {
    if (this.#client.status.state === "stopped") this.#client.start();
    else this.#client.wake();
  }
}
