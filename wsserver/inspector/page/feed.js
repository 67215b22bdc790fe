// The socket to the server's inspector; comes back when the server does.

const AGAIN_MS = 1_000;

export class Feed {
  #url;
  #handlers;
  #socket = null;
  #timer = null;

  /**
   * @param {string} url
   * @param {{recording(first: object): void, lines(batch: object): void,
   *   refused(about: string): void, status(connected: boolean): void}} handlers
   */
  constructor(url, handlers) {
    this.#url = url;
    this.#handlers = handlers;
  }

  start() {
    this.#socket = new WebSocket(this.#url);
    this.#socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      this.#handlers[message.type](message.type === "refused" ? message.about : message);
    };
    this.#socket.onopen = () => this.#handlers.status(true);
    this.#socket.onclose = () => {
      this.#handlers.status(false);
      this.#timer = setTimeout(() => this.start(), AGAIN_MS);
    };
  }

  stop() {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    if (!socket) return;
    this.#socket = null;
    socket.onclose = null;
    socket.onmessage = null;
    // Browsers report a socket as failed that is closed before it is open.
    if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
    else socket.close();
  }

  order(act, connection, members = {}) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    this.#socket.send(JSON.stringify({ act, connection, ...members }));
  }
}
