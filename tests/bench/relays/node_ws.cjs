// Node's `ws` over the official openai SDK's stream.
//
// Run as `node node_ws.cjs UPSTREAM_PORT` with NODE_PATH where `npm install` put the
// packages; prints its port, ends with its input. What is said is as in plain_sdk.py.

const { OpenAI } = require("openai");
const { WebSocketServer } = require("ws");

const client = new OpenAI({
  baseURL: `http://127.0.0.1:${process.argv[2]}/v1`,
  apiKey: "none",
});

const server = new WebSocketServer({
  host: "127.0.0.1",
  port: 0,
  backlog: 4096,
  perMessageDeflate: false,
});

async function answer(socket, model) {
  const stream = await client.chat.completions.create({
    model,
    messages: [{ role: "user", content: "go" }],
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const chunk of stream) {
    if (socket.readyState !== socket.OPEN) return;
    const text = chunk.choices[0]?.delta?.content;
    if (text) socket.send(JSON.stringify({ text }));
  }
  socket.send(JSON.stringify({ done: true }));
}

server.on("connection", (socket) => {
  socket.on("message", (data) => answer(socket, JSON.parse(data).model));
});
server.on("listening", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
