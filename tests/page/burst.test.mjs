// Many commands at once: bounded under way, in order, at the rate that was announced.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MOST_UNDER_WAY } from "../../client_demo/web/machine/constants.js";
import { WELCOME } from "./doubles.mjs";
import { attach, delta, greet, message, online, opened, setUp, start } from "./online.mjs";

const MANY = 6_000;

const sends = (socket) => socket.sent.filter(({ type }) => type === "send").map(({ id }) => id);
const started = (socket, id) => socket.deliver({ type: "reply", re: id, ok: true, outcome: "started" });

/** The rate limit of a server: how many ms a frame comes too early. */
class Bucket {
  constructor(clock, { perSecond, burst }) {
    Object.assign(this, { clock, perSecond, burst, frames: burst, at: clock.now() });
  }

  take() {
    const now = this.clock.now();
    this.frames = Math.min(this.burst, this.frames + ((now - this.at) * this.perSecond) / 1_000);
    this.at = now;
    if (this.frames < 1) return ((1 - this.frames) * 1_000) / this.perSecond;
    this.frames -= 1;
    return 0;
  }
}

/** Replies to all that comes, and refuses what comes too fast. */
function serve({ clock, network }, limits, networkMs) {
  const { socket } = network;
  const bucket = new Bucket(clock, limits);
  const seen = { taken: [], refused: 0, underWay: 0, most: 0, overAt: 0 };
  socket.onsent = ({ type, id }) => {
    if (type === "ping") bucket.take();
    if (type !== "send") return;
    seen.underWay += 1;
    seen.most = Math.max(seen.most, seen.underWay);
    clock.setTimeout(() => {
      seen.underWay -= 1;
      const early = bucket.take();
      if (early === 0) {
        seen.taken.push(id);
        seen.overAt = clock.now();
        started(socket, id);
        return;
      }
      seen.refused += 1;
      const error = { code: "rate_limited", message: "", retryable: true, retry_after_ms: Math.ceil(early) };
      socket.deliver({ type: "reply", re: id, ok: false, error });
    }, networkMs);
  };
  return seen;
}

for (const networkMs of [1, 200]) {
  test(`a burst drains at the rate of the server without a refusal, over ${networkMs} ms`, () => {
    const world = setUp();
    world.client.start();
    greet(world, { ...WELCOME, limits: { frames_per_second: 100, frames_burst: 500 } });
    world.client.open("c");
    attach(world.network.socket);
    const began = world.clock.now();
    const seen = serve(world, { perSecond: 100, burst: 497 }, networkMs);
    const given = Array.from({ length: MANY }, () => world.client.send("c", "hi").sendId);
    for (let second = 0; second < 65; second += 1) {
      world.network.socket.deliver({ type: "ping", t: 1, heads: {} }); // it lives
      world.clock.pass(1_000);
    }
    assert.deepEqual(seen.taken, given);
    assert.equal(seen.refused, 0);
    assert.ok(seen.most <= MOST_UNDER_WAY);
    assert.ok(seen.overAt - began < ((MANY - 400) / 100 + 1) * 1_000, `${seen.overAt - began} ms`);
  });
}

test("only so many are under way, and replies let others go", () => {
  const world = opened();
  const { client, socket } = world;
  const given = Array.from({ length: MOST_UNDER_WAY + 10 }, () => client.send("c", "hi").sendId);
  assert.deepEqual(sends(socket), given.slice(0, MOST_UNDER_WAY));
  started(socket, given[5]);
  started(socket, given[6]);
  assert.deepEqual(sends(socket), given.slice(0, MOST_UNDER_WAY + 2));
  socket.cut();
  world.clock.pass(1_000);
  const unanswered = [...given.slice(0, 5), ...given.slice(7)];
  assert.deepEqual(sends(greet(world)), unanswered.slice(0, MOST_UNDER_WAY));
});

test("a stop, credentials, an ack and a ping overtake a burst, and a send follows its interrupt", () => {
  const { client, socket, clock } = opened({ windowBytes: 40 });
  for (let n = 0; n < MOST_UNDER_WAY + 10; n += 1) client.send("c", "hi");
  const { sendId: id } = client.send("c", "take me back");
  socket.sent.length = 0;
  client.interrupt("c", { turn: 2 });
  client.interrupt("c", { send: id });
  client.refresh("new");
  client.toolProgress("c", "call");
  socket.deliver(message(1));
  client.painted("c");
  client.open("d");
  clock.pass(20_000);
  const kinds = socket.sent.map(({ type }) => type);
  assert.deepEqual(kinds, ["interrupt", "interrupt", "send", "refresh", "tool_progress", "ack", "open", "ping"]);
  assert.equal(socket.last("send").id, id);
});

test("a close that waited does not close what was opened again", async () => {
  const { client, socket } = opened();
  const [first] = Array.from({ length: MOST_UNDER_WAY }, () => client.send("d", "hi").sendId);
  const closed = client.close("c");
  client.open("c");
  started(socket, first);
  assert.equal(socket.last("close"), undefined);
  assert.equal((await closed).outcome, "closed");
});

test("a burst in one conversation costs the same per send, reply and event", () => {
  const { client, socket } = opened();
  const answers = Array.from({ length: 3_000 }, () => client.send("c", "hi"));
  const began = performance.now();
  for (const { sendId: id } of answers) started(socket, id);
  answers.forEach(({ sendId: id }, n) => socket.deliver(message(n + 1, id)));
  socket.deliver(start(3_001, 1), { ...delta(3_002, "yes"), turn: 3_001 });
  assert.equal(answers[0].text, "yes");
  assert.equal(answers[2_999].turn, undefined);
  const ms = performance.now() - began;
  assert.ok(ms < 3_000, `${ms} ms`); // as the square of their number: 20 s
});

test("credentials that come late are not given in the place of newer ones", async () => {
  const asked = [];
  const token = () => new Promise((resolve) => asked.push(resolve));
  const world = setUp({ token });
  const { client, network, clock } = world;
  const rest = () => new Promise(setImmediate);
  client.start();
  clock.pass(10_000); // the first attempt is given up
  clock.pass(1_000);
  asked[1]("newer");
  await rest();
  asked[0]("older");
  await rest();
  const socket = greet(world);
  assert.equal(socket.sent[0].token, "newer");

  socket.deliver({ type: "auth_expiring", in_ms: 1_000 });
  socket.cut();
  clock.pass(2_000);
  asked[3]("newest");
  await rest();
  const next = greet(world);
  assert.equal(next.sent[0].token, "newest");
  asked[2]("in between");
  await rest();
  assert.equal(next.last("refresh"), undefined);
  assert.ok(network);
});

test("credentials are renewed where nothing newer came meanwhile", async () => {
  const tokens = ["first", "second"];
  const { socket } = online({ token: () => tokens.shift() });
  socket.deliver({ type: "auth_expiring", in_ms: 1_000 });
  await new Promise(setImmediate);
  assert.equal(socket.last("refresh").token, "second");
});
