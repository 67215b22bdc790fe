// Sessions of the JavaScript client on the real server, whose address is the argument;
// each is a case of the client. Prints the name of each that went well.

import assert from "node:assert/strict";

import { ChatClient, chaotic, keptIn } from "../../client_demo/web/client.js";
import { Memory } from "./doubles.mjs";

const url = process.argv[2];
const FAST = { model: "demo/echo:tokens_per_second=2000" };
const SLOW = { model: "demo/long:tokens=80,tokens_per_second=200" };
const PATIENCE_MS = 15_000;

function started(options = {}) {
  const client = new ChatClient({ url, random: () => 0, ...options });
  client.start();
  return client;
}

async function read(answer) {
  let text = "";
  for await (const piece of answer.pieces()) text += piece;
  return text;
}

async function some(answer) {
  for await (const _ of answer.pieces()) break;
}

const SESSIONS = {
  "an answer is whole over three cuts": async () => {
    const client = started();
    const { id, fold } = client.open(undefined, { config: SLOW });
    const answer = client.send(id, "go on");
    for (let cut = 0; cut < 3; cut += 1) {
      await some(answer);
      client.drop();
    }
    assert.equal((await answer.wait()).status, "completed");
    assert.equal(answer.turn.proven, true);
    assert.equal(fold.turns.size, 1);
    client.stop();
  },
  "an answer is whole where frames are late and doubled": async () => {
    const client = started({ WebSocket: chaotic(WebSocket, { double: 0.2, delayMs: 2 }) });
    const answer = client.send(client.open(undefined, { config: SLOW }).id, "go on");
    await answer.wait();
    assert.equal(answer.turn.proven, true);
    client.stop();
  },
  "what was said before a reload is said once": async () => {
    const keep = keptIn(new Memory());
    const before = started({ keep });
    const { id } = before.open(undefined, { config: FAST });
    await before.ask(id, "first");
    before.stop();
    const send = before.send(id, "second");
    assert.equal(keep.load().length, 1);
    const after = started({ keep });
    const again = started({ keep }); // and a tab that was duplicated
    const ended = (client) =>
      new Promise((resolve) => {
        const look = () => {
          const turn = client.conversations.get(id).turnOf(send.sendId);
          if (turn?.done) resolve(client.conversations.get(id).fold);
          else setTimeout(look, 5);
        };
        look();
      });
    for (const fold of [await ended(after), await ended(again)]) {
      assert.deepEqual([...fold.messages.values()].map(({ content }) => content), ["first", "second"]);
    }
    assert.deepEqual(keep.load(), []);
    after.stop();
    again.stop();
  },
  "a stop keeps what was read": async () => {
    const client = started();
    const { id } = client.open(undefined, { config: SLOW });
    const answer = client.send(id, "go on");
    let text = "";
    for await (const piece of answer.pieces()) {
      text += piece;
      if (text.length > 40 && !answer.done) await answer.interrupt();
    }
    assert.equal((await answer.wait()).reason, "by_client");
    const { turn } = answer;
    await assert.rejects(answer.answer(), { name: "IncompleteAnswerError", text: turn.text });
    assert.ok(text.startsWith(turn.text) || turn.text.startsWith(text));
    assert.equal(turn.proven, true);
    client.stop();
  },
  "a fork goes on from where it was made": async () => {
    const client = started();
    const { id } = client.open(undefined, { config: FAST });
    const first = client.send(id, "first");
    await first.wait();
    assert.match(await client.ask(id, "second"), /second/);
    const fork = await client.fork(id, first.turn.seq);
    const { fold } = client.open(fork);
    await client.ask(fork, "second, better");
    assert.deepEqual([...fold.messages.values()].map(({ content }) => content), ["first", "second, better"]);
    await client.delete(id);
    client.stop();
  },
  "a tool runs once over a cut, and the answer goes on": async () => {
    let runs = 0;
    const tools = {
      get_number: {
        parameters: { type: "object" },
        run: async () => {
          runs += 1;
          client.drop();
          return 4711;
        },
      },
    };
    const client = started({ tools });
    const { id } = client.open(undefined, {
      config: { model: "demo/tools:tokens_per_second=2000", tools: client.toolDeclarations },
    });
    assert.match(await client.ask(id, "Which number is it?"), /4711/);
    assert.equal(runs, 1);
    client.stop();
  },
  "conversations of one socket keep apart": async () => {
    const client = started();
    const asked = Array.from({ length: 5 }, (_, n) => {
      const { id } = client.open(undefined, { config: FAST });
      return [n, client.send(id, `number ${n}`)];
    });
    for (const [n, answer] of asked) assert.match(await read(answer), new RegExp(`number ${n}`));
    client.stop();
  },
  "a refusal says which": async () => {
    const client = started();
    const { id } = client.open(undefined, { config: SLOW });
    const first = client.send(id, "go on");
    await some(first);
    await assert.rejects(client.ask(id, "me too", { policy: "reject" }), { name: "CommandError", code: "busy" });
    await first.interrupt();
    client.stop();
  },
};

const timer = setTimeout(() => {
  console.error("out of patience");
  process.exit(1);
}, PATIENCE_MS);
await Promise.all(
  Object.entries(SESSIONS).map(async ([name, play]) => {
    await play();
    console.log(name);
  }),
);
clearTimeout(timer);
