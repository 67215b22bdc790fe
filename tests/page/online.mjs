// A client that is online, on a network that a test plays.

import { ChatClient } from "../../client_demo/web/client.js";
import { Clock, counter, Network, WELCOME } from "./doubles.mjs";

export const URL = "ws://host/v1/chat";

export function setUp(options = {}) {
  const network = new Network();
  const clock = new Clock();
  const replies = [];
  const client = new ChatClient({
    url: URL,
    WebSocket: network.WebSocket,
    newId: counter("id"),
    random: () => 0.5,
    clock,
    handlers: { reply: (command, reply) => replies.push([command.id, reply]) },
    ...options,
  });
  return { network, clock, client, replies };
}

export function greet({ network }, welcome = WELCOME) {
  network.socket.accept();
  network.socket.deliver(welcome);
  return network.socket;
}

export function online(options) {
  const world = setUp(options);
  world.client.start();
  return { ...world, socket: greet(world) };
}

export function opened(options) {
  const world = online(options);
  const conversation = world.client.open("c");
  attach(world.socket);
  return { ...world, conversation };
}

export function attach(socket, members = {}) {
  const { id, conversation } = socket.last("open");
  socket.deliver({
    type: "reply", re: id, ok: true, outcome: "replay", conversation, epoch: "e", head: 0, oldest: 1, ...members,
  });
}

export const message = (seq, id = `s${seq}`) => ({
  type: "message", conversation: "c", seq, id, role: "user", content: "hi", by: "me", at: "",
});
export const start = (seq, answers) => ({
  type: "start", conversation: "c", seq, turn: seq, message: answers, model: "m", request_id: "r", at: "",
});
export const delta = (seq, text, more) => ({ type: "delta", conversation: "c", seq, turn: 2, text, ...more });
