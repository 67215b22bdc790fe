"""A protocol server for tests of the client: real WebSockets, scripted answers.

It says welcome, opens conversations and replays their logs by itself. Other
commands wait for the test, which replies and appends events as it likes.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from math import inf
from typing import Any

import anyio
import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from protocol.text import proof

Frame = dict[str, Any]
WELCOME: Frame = {
    "type": "welcome",
    "protocol": 1,
    "connection": "w",
    "heartbeat_ms": 20_000,
    "server": {"name": "double", "version": "1"},
    "models": ["m"],
    "limits": {
        "frame_bytes": 262_144,
        "conversations": 128,
        "active_turns": 16,
        "queued": 8,
        "pending_tools": 8,
        "tool_output_bytes": 65_536,
        "idempotency_s": 86_400,
    },
    "features": ["gathered_text"],
}
AT = "2026-01-01T00:00:00.000Z"
TIMING = {"queue_ms": 1, "ttft_ms": 20, "total_ms": 300}


class Peer:
    """One connection, seen from the server.

    Attributes:
        hello: The client's first frame.
        opens: What it opened, in order.
    """

    def __init__(self, socket: ServerConnection, double: "Double") -> None:
        self.hello: Frame = {}
        self.opens: list[Frame] = []
        self._socket = socket
        self._double = double
        self._give, self._commands = anyio.create_memory_object_stream[Frame](inf)

    async def command(self, kind: str) -> Frame:
        """The next command, which must be of this type."""
        with anyio.fail_after(60):
            frame = await self._commands.receive()
        assert frame["type"] == kind, frame
        return frame

    def waiting(self) -> int:
        """How many commands were not asked for yet."""
        return self._commands.statistics().current_buffer_used

    async def send(self, **members: Any) -> None:
        await self._socket.send(msgspec.json.encode(members), text=True)

    async def reply(self, command: Frame, outcome: str = "ok", **members: Any) -> None:
        await self.send(
            type="reply", re=command["id"], ok=True, outcome=outcome, **members
        )

    async def refuse(self, command: Frame, code: str, **members: Any) -> None:
        error = {"code": code, "message": "because", "retryable": False} | members
        await self.send(type="reply", re=command["id"], ok=False, error=error)

    async def close(self, code: int) -> None:
        await self._socket.close(code)

    def cut(self) -> None:
        """Drops the connection without a close frame."""
        self._socket.transport.abort()

    async def run(self) -> None:
        async for data in self._socket:
            frame = msgspec.json.decode(data)
            match frame["type"]:
                case "hello":
                    self.hello = frame
                    await self._double.greet(self)
                case "open":
                    self.opens.append(frame)
                    await self._double.open(self, frame)
                case "ping" if self._double.silent:
                    pass
                case "ping":
                    await self.send(type="pong", server_time=AT)
                case _:
                    self._give.send_nowait(frame)

    def forget(self) -> None:
        self._give.close()
        self._commands.close()


class Double:
    """The server.

    Attributes:
        url: Where it listens.
        peers: All connections so far, oldest first.
        connected_at: When each said hello.
        silent: Gives no sign of life.
        epoch: Of all logs.
        logs: The events of each conversation.
        greet: Answers each hello; may be replaced.
    """

    def __init__(self) -> None:
        self.url = ""
        self.peers: list[Peer] = []
        self.connected_at: list[float] = []
        self.welcome = WELCOME
        self.greet: Callable[[Peer], Any] = self.say_welcome
        self.epoch = "e1"
        self.silent = False
        self.logs: dict[str, list[Frame]] = {}
        self._new_peer = anyio.Event()

    @property
    def peer(self) -> Peer:
        """The newest connection."""
        return self.peers[-1]

    async def connection(self, number: int) -> Peer:
        """The connection with this number, from 1, once it said hello."""
        with anyio.fail_after(600):
            while len(self.connected_at) < number:
                await self._new_peer.wait()
        return self.peers[number - 1]

    async def beat(self) -> None:
        """Gives a sign of life on the newest connection every 20 s, for a day.

        Without an end virtual time would run on where everything else waits.
        """
        for _ in range(24 * 180):
            await anyio.sleep(20)
            if self.peers and not self.silent:
                with suppress(ConnectionClosed):
                    await self.peer.send(type="ping", t=1, heads={})

    async def begin(self, name: str = "c") -> int:
        """Takes the next send and begins its turn; returns the turn's number."""
        await self.connection(1)
        send = await self.peer.command("send")
        return await self.start(name, await self.message(name, send))

    async def delete(self, name: str) -> None:
        """Loses a conversation as if somebody else had deleted it."""
        del self.logs[name]
        await self.peer.send(
            type="error", code="conversation_not_found", message="It was deleted.",
            retryable=False, gone=name,
        )  # fmt: skip

    async def say_welcome(self, peer: Peer) -> None:
        self.connected_at.append(anyio.current_time())
        event, self._new_peer = self._new_peer, anyio.Event()
        event.set()
        await peer.send(**self.welcome)

    async def open(self, peer: Peer, frame: Frame) -> None:
        name = frame["conversation"]
        outcome, after, reason = "replay", frame.get("after", 0), None
        if name not in self.logs and "after" in frame:
            await peer.refuse(frame, "conversation_not_found")
            return
        if name not in self.logs:
            self.logs[name] = []
            outcome = "created"
        if frame.get("epoch", self.epoch) != self.epoch:
            outcome, after, reason = "reset", 0, "epoch_changed"
        log = self.logs[name]
        verdict: Frame = {"epoch": self.epoch, "head": len(log), "oldest": 1}
        if reason:
            verdict["reason"] = reason
        await peer.reply(frame, outcome, conversation=name, **verdict)
        for event in log[after:]:
            await peer.send(**event)
        await peer.send(type="caught_up", conversation=name, seq=len(log))

    async def event(self, name: str, kind: str, /, **members: Any) -> int:
        """Appends an event and sends it on the newest connection."""
        seq = len(self.logs[name]) + 1
        event = {"type": kind, "conversation": name, "seq": seq} | members
        self.logs[name].append(event)
        with suppress(ConnectionClosed):
            await self.peer.send(**event)
        return seq

    async def message(self, name: str, send: Frame, **members: Any) -> int:
        """Puts a send into the log and replies to it."""
        seq = await self.event(
            name, "message", id=send["id"], role="user", content=send["content"],
            by="me", at=AT, **members,
        )  # fmt: skip
        await self.peer.reply(send, "started", seq=seq)
        return seq

    async def start(self, name: str, message: int) -> int:
        """Begins a turn; returns its number."""
        turn = len(self.logs[name]) + 1
        await self.event(
            name, "start", turn=turn, message=message, model="m", request_id="r", at=AT
        )
        return turn

    async def say(self, name: str, turn: int, *texts: str) -> None:
        for text in texts:
            await self.event(name, "delta", turn=turn, text=text)

    async def done(self, name: str, turn: int, **members: Any) -> None:
        """Ends a turn; the proof is that of its deltas."""
        text = "".join(
            event["text"]
            for event in self.logs[name]
            if event["type"] == "delta" and event["turn"] == turn
        )
        await self.event(
            name, "done", turn=turn,
            **{
                "status": "completed",
                "text": msgspec.to_builtins(proof(text)),
                "timing": TIMING,
            } | members,
        )  # fmt: skip

    async def answer(self, name: str, *texts: str) -> None:
        """Takes the next send and answers it whole."""
        send = await self.peer.command("send")
        turn = await self.start(name, await self.message(name, send))
        await self.say(name, turn, *texts)
        await self.done(name, turn)

    async def run(self, socket: ServerConnection) -> None:
        peer = Peer(socket, self)
        self.peers.append(peer)
        with suppress(ConnectionClosed, anyio.ClosedResourceError):
            await peer.run()


@asynccontextmanager
async def double(port: int = 0) -> AsyncGenerator[Double]:
    """Serves on the loopback until the block ends."""
    made = Double()
    async with (
        serve(
            made.run, "127.0.0.1", port, ping_interval=None, compression=None,
            max_size=None, close_timeout=1,
        ) as server,
        anyio.create_task_group() as tasks,
    ):  # fmt: skip
        made.url = f"ws://127.0.0.1:{_port(server)}/v1/chat"
        tasks.start_soon(made.beat)
        try:
            yield made
        finally:
            tasks.cancel_scope.cancel()
            for peer in made.peers:
                peer.cut()
                peer.forget()


def _port(server: Server) -> int:
    return next(iter(server.sockets)).getsockname()[1]
