// The JavaScript client in the judge's hands: one JSON object a line comes in, one goes
// out. Its argument is the folder of the client.

import { createInterface } from "node:readline";

import { Clock, counter, Network } from "../page/doubles.mjs";

const { ChatClient } = await import(`${process.argv[2]}/client.js`);

const LINKS = { connecting: "dialling", online: "up", waiting: "waiting", stopped: "stopped" };
let world;

function begin({ random, tools, token }) {
  const network = new Network();
  const clock = new Clock();
  world = { network, clock, taken: 0, givenUp: 0, asked: [], replied: [], told: [], running: new Map(), fault: null };
  const run = (_, { call }) => {
    world.asked.push(call);
    return new Promise((resolve, reject) => world.running.set(call, { resolve, reject }));
  };
  world.client = new ChatClient({
    url: "ws://judge/v1/chat",
    WebSocket: network.WebSocket,
    clock,
    random: () => random,
    token,
    tools: Object.fromEntries((tools ?? []).map((name) => [name, { run }])),
    newId: counter("id"),
    handlers: {
      reply: ({ id }, reply) => world.replied.push([id, reply.ok ? reply.outcome : reply.error.code]),
      expiring: () => world.told.push("auth_expiring"),
      status: ({ error }) => {
        if (error && error !== world.fault) world.told.push("fault");
        world.fault = error;
      },
    },
  });
  world.client.start();
}

const CALLS = {
  open: (client, { conversation, window_bytes: windowBytes, config }) => client.open(conversation, { windowBytes, config }),
  send: (client, { conversation, content, policy, seen_seq: seenSeq }) => client.send(conversation, content, { policy, seenSeq }),
  interrupt: (client, { conversation, turn, send, seen_seq: seenSeq }) => client.interrupt(conversation, { turn, send, seenSeq }),
  configure: (client, { conversation, config }) => client.configure(conversation, config),
  fork: (client, { conversation, through, ...options }) => client.fork(conversation, through, options),
  close: (client, { conversation }) => client.close(conversation),
  delete: (client, { conversation }) => client.delete(conversation),
  refresh: (client, { token }) => client.refresh(token),
  result: (_, { call, output, error }) => {
    const { resolve, reject } = world.running.get(call);
    if (error === undefined) resolve(output);
    else reject(new Error(error));
  },
  progress: (client, { conversation, call }) => client.toolProgress(conversation, call),
  again: (client, { id }) => {
    for (const [name, { sends }] of client.conversations) if (sends.get(id)?.error) client.sendAgain(name, id);
  },
  taken: (client, { conversation }) => client.painted(conversation),
};

function act(op) {
  const { network, clock, client } = world ?? {};
  switch (op.op) {
    case "begin":
      return begin(op);
    case "up":
      return network.socket.accept();
    case "down":
      return network.socket.cut(op.code ?? 1006);
    case "frame":
      return network.socket.readyState === 1 && network.socket.onmessage({ data: op.text });
    case "pass":
      return clock.pass(op.ms);
    default:
      return CALLS[op.do](client, op);
  }
}

function turn(turn) {
  const joined = (kind) => turn.parts.map((part) => (part.kind === kind ? part.text : "")).join("");
  const calls = turn.parts.filter((part) => part.kind === "tool");
  return {
    turn: turn.seq,
    model: turn.model,
    text: turn.text,
    reasoning: joined("reasoning"),
    status: turn.done?.status ?? null,
    reason: turn.done?.reason ?? null,
    code: turn.error?.code ?? null,
    proven: turn.proven,
    calls: Object.fromEntries(calls.map(({ call, result }) => [call, result?.status ?? "open"])),
  };
}

function shown(name, { fold }) {
  const { epoch, last } = world.client.cursor(name);
  const messages = [...fold.messages.values()].map(({ id }) => id);
  return { epoch, last, messages, turns: [...fold.turns.values()].map(turn) };
}

function state() {
  const { client, clock, network } = world;
  const sent = network.sockets.flatMap((socket) => socket.sent);
  const fresh = sent.slice(world.taken);
  world.taken = sent.length;
  const { state, retryAt } = client.status;
  const up = network.socket.readyState === 1;
  const givenUp = network.sockets.filter(({ closedBy }) => closedBy === "client").length;
  const gaveUp = givenUp > world.givenUp;
  world.givenUp = givenUp;
  const opened = [...client.conversations].filter(([name]) => (client.cursor(name)?.epoch ?? null) !== null);
  return {
    sent: fresh,
    link: up ? "up" : LINKS[state],
    wait_ms: retryAt === null ? null : retryAt - clock.now(),
    gave_up: gaveUp,
    conversations: Object.fromEntries(opened.map(([name, conversation]) => [name, shown(name, conversation)])),
    asked: world.asked.splice(0),
    replied: world.replied.splice(0),
    told: world.told.splice(0),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  act(JSON.parse(line));
  await new Promise(setImmediate); // tools and replies are promises
  console.log(JSON.stringify(state()));
}
