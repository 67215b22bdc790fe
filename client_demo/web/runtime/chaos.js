// A bad network, to try what a client does on one: a WebSocket whose frames are late,
// lost or doubled, and which breaks now and then. Frames never overtake each other, as
// they can't on a real one.

/**
 * @typedef {object} Switches may be changed at any time
 * @property {number} [delayMs] each frame arrives so much later
 * @property {number} [lose] share of the frames that never arrive, 0 to 1
 * @property {number} [double] share of the frames that arrive twice, 0 to 1
 * @property {number} [cutEveryMs] the socket breaks at random, so often on average
 */

/**
 * Makes a class to give to `ChatClient` as `WebSocket`.
 * @param {typeof WebSocket} WebSocket
 * @param {Switches} switches
 * @param {{random?: () => number, now?: () => number, setTimeout?: typeof setTimeout,
 *   setInterval?: typeof setInterval, clearInterval?: typeof clearInterval}} [platform]
 */
export function chaotic(WebSocket, switches, platform = {}) {
  const {
    random = Math.random,
    now = () => performance.now(),
    setTimeout = (run, ms) => globalThis.setTimeout(run, ms),
    setInterval = (run, ms) => globalThis.setInterval(run, ms),
    clearInterval = (timer) => globalThis.clearInterval(timer),
  } = platform;
  return class ChaoticSocket {
    #socket;
    #late = 0;
    #dueAt = 0;
    #timer;
    #closed = false;
    onopen = () => {};
    onmessage = () => {};
    onclose = () => {};
    onerror = () => {};

    constructor(url, protocols) {
      this.#socket = new WebSocket(url, protocols);
      this.#socket.onopen = (event) => this.onopen(event);
      this.#socket.onerror = (event) => this.onerror(event);
      this.#socket.onclose = (event) => this.#end(event);
      this.#socket.onmessage = (event) => this.#arrive(event);
      this.#timer = setInterval(() => this.#maybeCut(), CHECK_MS);
    }

    get readyState() {
      return this.#socket.readyState;
    }

    send(text) {
      this.#socket.send(text);
    }

    close(...reason) {
      this.#closed = true;
      clearInterval(this.#timer);
      this.#socket.close(...reason);
    }

    #arrive(event) {
      if (chance(switches.lose)) return;
      const times = chance(switches.double) ? 2 : 1;
      const { delayMs = 0 } = switches;
      if (delayMs === 0 && this.#late === 0) {
        this.#deliver(event, times);
        return;
      }
      this.#late += 1;
      this.#dueAt = Math.max(this.#dueAt, now() + delayMs);
      setTimeout(() => {
        this.#late -= 1;
        this.#deliver(event, times);
      }, this.#dueAt - now());
    }

    #deliver(event, times) {
      for (let time = 0; time < times && !this.#closed; time += 1) this.onmessage(event);
    }

    #maybeCut() {
      if (!chance(CHECK_MS / (switches.cutEveryMs ?? Infinity))) return;
      this.#socket.close();
      this.#end({ code: 1006 });
    }

    #end(event) {
      if (this.#closed) return;
      this.#closed = true;
      clearInterval(this.#timer);
      this.onclose(event);
    }
  };

  function chance(share = 0) {
    return share > 0 && random() < share;
  }
}

const CHECK_MS = 100;
