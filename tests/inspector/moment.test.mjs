// What the inspector's page makes of a recording, without a browser.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Fold } from "../../client_demo/web/fold.js";
import { Moment } from "../../wsserver/inspector/page/moment.js";
import { format, parse, Recording } from "../../wsserver/inspector/page/recording.js";

const HEADER = { recording: 1, server: { name: "s", version: "0" }, started_at: "2026-01-01T00:00:00.000Z", content: "whole" };
const AT = "2026-01-01T00:00:00.000Z";

class Script {
  constructor(content = "whole") {
    this.recording = new Recording();
    this.recording.clear({ ...HEADER, content });
    this.n = 0;
  }

  line(kind, members) {
    this.n += 1;
    this.recording.add({ kind, n: this.n, at_ms: this.n * 10, ...members });
    return this.n;
  }

  in(connection, frame) {
    return this.line("in", { connection, bytes: 10, frame });
  }

  out(connection, frame, fault) {
    return this.line("out", { connection, bytes: 10, frame, ...(fault && { fault }) });
  }

  open(connection, { after, epoch = "e", outcome = "replay", oldest = 1 } = {}) {
    const id = `o${this.n}`;
    this.in(connection, { type: "open", id, conversation: "c", ...(after && { after }) });
    return this.out(connection, { type: "reply", re: id, ok: true, outcome, conversation: "c", epoch, head: 9, oldest });
  }

  event(connection, type, seq, members = {}, fault) {
    return this.out(connection, { type, conversation: "c", seq, ...members }, fault);
  }

  turn(connection) {
    this.event(connection, "message", 1, { id: "s", role: "user", content: "Hi", by: "me", at: AT });
    this.event(connection, "start", 2, { turn: 2, message: 1, model: "m", request_id: "r", at: AT });
  }

  text(connection, seq, text, first, fault) {
    return this.event(connection, "delta", seq, { turn: 2, text, ...(first && { first }) }, fault);
  }

  moment() {
    const { recording } = this;
    return new Moment(recording.conversations.get("c"), { Fold, redacted: recording.redacted });
  }
}

const answer = (moment) => moment.fold.turns.get(2)?.text;

test("a moment has what was there, and goes back", () => {
  const script = new Script();
  script.open("a", { outcome: "created" });
  script.turn("a");
  const first = script.text("a", 3, "Good ");
  const second = script.text("a", 4, "day");
  const moment = script.moment();
  assert.equal(answer(moment.goTo(second)), "Good day");
  assert.equal(moment.running.seq, 2);
  assert.equal(answer(moment.goTo(first)), "Good ");
  assert.equal(moment.last, 3);
  assert.equal(answer(moment.goTo(first - 1)), "");
  assert.equal(moment.goTo(0).last, null);
  assert.equal(answer(moment.goTo(Infinity)), "Good day");
});

test("each viewer has its cursor, and loses it with its connection", () => {
  const script = new Script();
  script.open("a");
  script.open("b", { after: 1 });
  script.turn("a");
  const moment = script.moment().goTo(Infinity);
  assert.deepEqual([...moment.viewers], [["a", 2], ["b", 1]]);
  script.line("closed", { connection: "a", by: "client" });
  assert.deepEqual([...moment.goTo(Infinity).viewers], [["b", 1]]);
  script.in("b", { type: "close", id: "x", conversation: "c" });
  assert.equal(moment.goTo(Infinity).viewers.size, 0);
});

test("frames of several viewers are one text, however merged", () => {
  const script = new Script();
  script.open("a");
  script.open("b");
  script.turn("a");
  script.turn("b");
  script.text("a", 3, "ab");
  script.text("a", 4, "cd");
  script.text("b", 6, "abcdefgh", 3);
  script.text("a", 5, "ef");
  script.text("a", 6, "gh");
  script.text("a", 7, "ij");
  const moment = script.moment().goTo(Infinity);
  assert.equal(answer(moment), "abcdefghij");
  assert.equal(moment.last, 7);
  assert.deepEqual(moment.holes, []);
});

test("a frame that begins inside of another waits for one that fits", () => {
  const script = new Script();
  script.open("a");
  script.turn("a");
  script.text("a", 4, "abcd", 3);
  script.text("b", 6, "cdefgh", 4);
  const moment = script.moment();
  assert.equal(answer(moment.goTo(Infinity)), "abcd");
  script.text("a", 5, "ef");
  assert.equal(answer(moment.goTo(Infinity)), "abcdef");
});

test("what the recording lacks is said", () => {
  const script = new Script();
  script.open("a");
  script.turn("a");
  script.text("a", 7, "end");
  assert.deepEqual(script.moment().goTo(Infinity).holes, [[3, 6]]);
});

test("what the inspector spoiled is in the log once", () => {
  const script = new Script();
  script.open("a");
  script.turn("a");
  script.text("a", 3, "ab");
  script.text("a", 3, "ab", undefined, "repeated");
  script.text("a", 4, "cd", undefined, "lost");
  const moment = script.moment().goTo(Infinity);
  assert.equal(answer(moment), "abcd");
  assert.equal(moment.viewers.get("a"), 3);
  script.text("a", 5, "ef");
  assert.deepEqual(moment.goTo(Infinity).holes, []);
});

test("another epoch begins anew", () => {
  const script = new Script();
  script.open("a");
  script.turn("a");
  script.open("a", { after: 2, epoch: "f", outcome: "reset" });
  const moment = script.moment().goTo(Infinity);
  assert.equal(moment.epoch, "f");
  assert.equal(moment.last, null);
  assert.equal(moment.viewers.get("a"), 0);
});

test("lengths stand for texts, and are cut like them", () => {
  const script = new Script("redacted");
  script.open("a");
  script.turn("a");
  script.text("a", 3, "«5»");
  script.text("b", 5, "«9»", 3);
  script.event("a", "cut", 6, { turn: 2, keep_through: 4, by: "me", text: { bytes: 7, crc32: 0 } });
  assert.equal(answer(script.moment().goTo(Infinity)).length, 7);
});

test("a recording comes back as it was", () => {
  const script = new Script();
  script.open("a");
  script.turn("a");
  const { header, lines } = parse(format(script.recording));
  assert.deepEqual(header, script.recording.header);
  assert.deepEqual(lines, script.recording.entries.map(({ line }) => line));
  assert.throws(() => parse("{}"), /no recording/);
  assert.throws(() => parse(""), /no recording/);
});

test("what was missed is said where it is saved", () => {
  const script = new Script();
  script.recording.missed = 7;
  script.n = 7;
  script.open("a");
  const { lines } = parse(format(script.recording));
  assert.deepEqual(lines[0], { kind: "lost", n: 7, at_ms: 0, lines: 7 });
  const again = new Recording();
  again.clear(HEADER);
  for (const line of lines) again.add(line);
  assert.equal(again.missed, 7);
  assert.equal(again.entries.length, 2);
});

test("lines that come again are known", () => {
  const script = new Script();
  script.open("a");
  const [{ line }] = script.recording.entries;
  assert.equal(script.recording.add(line), null);
  assert.equal(script.recording.entries.length, 2);
});

test("replies belong to the conversation of their command", () => {
  const script = new Script();
  script.in("a", { type: "send", id: "s1", conversation: "c", content: "x" });
  script.out("a", { type: "reply", re: "s1", ok: true, outcome: "started" });
  script.out("b", { type: "reply", re: "s1", ok: true, outcome: "started" });
  assert.deepEqual(script.recording.entries.map(({ conversation }) => conversation), ["c", "c", null]);
});

test("the oldest entries are dropped, wherever they are", () => {
  const script = new Script();
  script.recording.maxEntries = 10;
  const { generation } = script.recording;
  script.open("gone");
  script.line("closed", { connection: "gone", by: "client" });
  for (let seq = 1; seq < 30; seq += 1) script.event("a", "skip", seq);
  const { entries, missed, conversations, connections } = script.recording;
  assert.ok(entries.length <= 10);
  assert.equal(entries.length + missed, script.n);
  assert.ok(script.recording.generation > generation);
  assert.equal(conversations.get("c").entries[0], entries[0]);
  assert.deepEqual([...connections.keys()], ["a"]);
  assert.deepEqual([...conversations.get("c").lanes.keys()], ["a"]);
});

test("frames that a client made up do no harm", () => {
  const script = new Script();
  script.in("a", { type: 7, conversation: {}, seq: "x", id: null });
  script.in("a", { type: "hello", client: null });
  script.line("in", { connection: "a", bytes: 3 });
  assert.deepEqual(script.recording.entries.map(({ type }) => type), ["no type", "hello", "no frame"]);
  assert.equal(script.recording.conversations.size, 0);
});
