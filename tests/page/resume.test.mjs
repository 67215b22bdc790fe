// Random networks: whatever is cut, late, doubled or lost, the client ends with the
// server's text, and each message is in the log once.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ChatClient } from "../../client_demo/web/client.js";
import { crc32 } from "../../client_demo/web/fold.js";
import { Clock, counter, Network, seeded, WELCOME } from "./doubles.mjs";

const SESSIONS = 1_000;

/** A server as simple as can be: logs, and for each socket its positions. */
class Server {
  constructor(random) {
    this.random = random;
    this.logs = new Map();
    this.replies = new Map();
    this.links = new Set();
  }

  accept(socket) {
    const link = { socket, cursors: new Map(), wire: [] };
    this.links.add(link);
    socket.onsent = (frame) => this.#take(link, frame);
    socket.onclosed = () => this.links.delete(link);
    socket.accept();
  }

  #append(conversation, event) {
    const log = this.logs.get(conversation);
    log.events.push({ conversation, ...event, seq: log.events.length + 1 });
    return log.events.length;
  }

  #take(link, frame) {
    const say = (reply) => link.wire.push({ type: "reply", re: frame.id, ok: true, ...reply });
    if (frame.type === "hello") link.wire.push(WELCOME);
    if (frame.type === "open") {
      const { conversation, after = 0 } = frame;
      if (!this.logs.has(conversation)) this.logs.set(conversation, { events: [], turn: null, waiting: [] });
      const head = this.logs.get(conversation).events.length;
      link.cursors.set(conversation, after);
      say({ outcome: "replay", conversation, epoch: "e", head, oldest: 1 });
    }
    if (frame.type === "send") {
      if (!this.replies.has(frame.id)) {
        const { conversation, id, content } = frame;
        const seq = this.#append(conversation, { type: "message", id, role: "user", content, by: "", at: "" });
        this.logs.get(conversation).waiting.push(seq);
        this.replies.set(id, { outcome: "started", seq });
      }
      say(this.replies.get(frame.id));
    }
  }

  /** Lets models speak a little. */
  work() {
    for (const [conversation, log] of this.logs) {
      if (log.turn === null && log.waiting.length > 0) {
        log.turn = log.events.length + 1;
        log.text = "";
        const answers = log.waiting.shift();
        this.#append(conversation, { type: "start", turn: log.turn, message: answers, model: "m", request_id: "r", at: "" });
      } else if (log.turn !== null && this.random() < 0.05) {
        const bytes = new TextEncoder().encode(log.text);
        const text = { bytes: bytes.length, crc32: crc32(bytes) };
        this.#append(conversation, { type: "done", turn: log.turn, status: "completed", text });
        log.turn = null;
      } else if (log.turn !== null) {
        const text = ["a", "é", "漢", "👋 ", "\n"][Math.floor(this.random() * 5)];
        log.text += text;
        this.#append(conversation, { type: "delta", turn: log.turn, text });
      }
    }
  }

  /** Moves cursors: some events go onto the wire, deltas now and then merged. */
  feed(link) {
    for (const [conversation, after] of link.cursors) {
      const fresh = this.logs.get(conversation).events.slice(after);
      const [event, ...rest] = fresh;
      if (!event) continue;
      const same = event.type === "delta" ? rest.findIndex((next) => next.type !== "delta") : 0;
      const most = (same < 0 ? rest.length : same) + 1;
      const run = this.random() < 0.7 ? 0 : Math.floor(this.random() * most);
      const last = fresh[run];
      const text = fresh.slice(0, run + 1).map((each) => each.text).join("");
      link.wire.push(run > 0 ? { ...last, first: event.seq, text } : event);
      link.cursors.set(conversation, last.seq);
    }
  }
}

function play(seed) {
  const random = seeded(seed);
  const network = new Network();
  const clock = new Clock();
  const server = new Server(random);
  const client = new ChatClient({ url: "ws://x", WebSocket: network.WebSocket, clock, random, newId: counter("id") });
  client.start();
  const names = Array.from({ length: 1 + Math.floor(random() * 5) }, (_, i) => `c${i}`);
  names.forEach((name) => client.open(name));
  const given = new Map();

  const step = (calm) => {
    const { socket } = network;
    if (socket.readyState === 0) server.accept(socket);
    server.work();
    for (const link of server.links) {
      server.feed(link);
      const count = calm ? link.wire.length : Math.floor(random() * 6);
      for (const frame of link.wire.splice(0, count)) {
        const luck = calm ? 1 : random();
        if (luck < 0.02) continue; // lost
        link.socket.deliver(frame);
        if (luck < 0.04 && link.socket.readyState === 1) link.socket.deliver(frame); // doubled
        if (link.socket.readyState !== 1) break;
      }
    }
    clock.pass(calm ? 2_000 : random() * 200);
  };

  for (let i = 0; i < 200; i += 1) {
    if (random() < 0.05) {
      const name = names[Math.floor(random() * names.length)];
      given.set(client.send(name, `${i}`).sendId, name);
    }
    if (random() < 0.04 && network.socket.readyState === 1) {
      for (const link of server.links) server.links.delete(link);
      network.socket.cut([1006, 1012, 4508, 4601][Math.floor(random() * 4)]);
    }
    step(false);
  }
  client.wake();
  for (let i = 0; i < 400; i += 1) {
    // A frame that was lost last is only known from the heads of heartbeats.
    const heads = Object.fromEntries([...server.logs].map(([name, { events }]) => [name, events.length]));
    if (i % 20 === 0 && network.socket.readyState === 1) network.socket.deliver({ type: "ping", t: i, heads });
    step(true);
  }

  for (const name of names) {
    const { events } = server.logs.get(name);
    const { fold, sends } = client.conversations.get(name);
    const text = events.map((event) => (event.type === "delta" ? event.text : "")).join("");
    const turns = [...fold.turns.values()];
    assert.equal(turns.map((turn) => turn.text).join(""), text, `seed ${seed}`);
    assert.ok(turns.every((turn) => turn.done && turn.proven), `seed ${seed}`);
    assert.equal(client.cursor(name).last, events.length, `seed ${seed}`);
    assert.equal(sends.size, 0, `seed ${seed}`);
  }
  const logged = [...server.logs.values()].flatMap(({ events }) => events.filter((event) => event.type === "message").map((event) => event.id));
  assert.deepEqual(logged.toSorted(), [...given.keys()].toSorted(), `seed ${seed}`);
  return network.sockets.length;
}

test(`${SESSIONS} sessions end with the server's text, each message said once`, () => {
  let sockets = 0;
  for (let seed = 1; seed <= SESSIONS; seed += 1) sockets += play(seed);
  assert.ok(sockets > 3 * SESSIONS, `only ${sockets} connections: too calm a network`);
});
