// A client over a network of doubles, and the frames of a server in few words.

import { ChatClient } from "../../client_demo/web/client.js";
import { crc32 } from "../../client_demo/web/fold.js";
import { Clock, counter, Network, WELCOME } from "./doubles.mjs";

export function opened(options = {}, welcome = WELCOME) {
  const network = new Network();
  const clock = new Clock();
  const client = new ChatClient({
    url: "ws://host/v1/chat", WebSocket: network.WebSocket, newId: counter("id"), random: () => 0.5, clock, ...options,
  });
  client.start();
  const socket = greet(network, welcome);
  const conversation = client.open("c");
  attach(socket);
  return { network, clock, client, socket, conversation };
}

export function greet(network, welcome = WELCOME) {
  network.socket.accept();
  network.socket.deliver(welcome);
  return network.socket;
}

export function attach(socket, members = {}) {
  const { id, conversation } = socket.last("open");
  socket.deliver({ type: "reply", re: id, ok: true, outcome: "replay", conversation, epoch: "e", head: 0, oldest: 1, ...members });
}

export const settled = () => new Promise(setImmediate);
export const ok = (re, outcome, more) => ({ type: "reply", re, ok: true, outcome, ...more });
export const refused = (re, code) => ({ type: "reply", re, ok: false, error: { code, message: `It is ${code}.`, retryable: false } });
export const message = (seq, id, more) => ({ type: "message", conversation: "c", seq, id, role: "user", content: "hi", by: "me", at: "", ...more });
export const start = (seq, answers) => ({ type: "start", conversation: "c", seq, turn: seq, message: answers, model: "m", request_id: "r", at: "" });
export const delta = (seq, text, turn = 2) => ({ type: "delta", conversation: "c", seq, turn, text });
export const done = (seq, text, more) => {
  const bytes = new TextEncoder().encode(text);
  return { type: "done", conversation: "c", seq, turn: 2, status: "completed", text: { bytes: bytes.length, crc32: crc32(bytes) }, ...more };
};
export const request = (call, more) => ({
  type: "tool_request", conversation: "c", turn: 2, call, name: "f", arguments: {}, deadline_ms: 1_000, redelivered: false, ...more,
});

export async function read(answer) {
  const texts = [];
  for await (const text of answer.pieces()) texts.push(text);
  return texts;
}
