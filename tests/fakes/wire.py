"""A client that speaks the protocol frame by frame and trusts nothing.

It checks on every event that numbers are contiguous, that nothing of a turn
follows its `done`, and that the kept text fits its proof; a test reads what it
has collected.
"""

import zlib
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

Frame = dict[str, Any]


class Copy:
    """What a client has of one conversation.

    Attributes:
        last: The cursor.
        events: All events, as they came.
        texts: The answer text by turn.
        dones: Each turn's `done`.
    """

    def __init__(self) -> None:
        self.last = 0
        self.epoch: str | None = None
        self.events: list[Frame] = []
        self.texts: dict[int, str] = defaultdict(str)
        self.cuts: dict[int, Frame] = {}
        self.dones: dict[int, Frame] = {}
        self.starts: set[int] = set()

    def add(self, event: Frame) -> None:
        """Takes the next event; raises AssertionError when it does not fit."""
        first = event.get("first", event["seq"])
        assert first == self.last + 1, f"{first} after {self.last}: {event}"
        self.last = event["seq"]
        self.events.append(event)
        turn = event.get("turn", 0)
        kind = event["type"]
        if turn in self.dones:
            assert kind in ("cut", "skip"), f"after done: {event}"
        if kind == "start":
            self.starts.add(turn)
        elif kind == "delta":
            self.texts[turn] += event["text"]
        elif kind == "cut":
            self.cuts[turn] = event
            kept = self.texts[turn].encode()[: event["text"]["bytes"]]
            self.texts[turn] = kept.decode()
            self._prove(turn, event["text"])
        elif kind == "done":
            assert turn in self.starts or turn < self.events[0]["seq"]
            self.dones[turn] = event

    def prove(self) -> None:
        """Checks every finished turn's text against its proof."""
        for turn, done in self.dones.items():
            proof = self.cuts.get(turn, done)["text"]
            self._prove(turn, proof)

    def _prove(self, turn: int, proof: Frame) -> None:
        text = self.texts[turn].encode()
        assert len(text) == proof["bytes"], (turn, text, proof)
        assert zlib.crc32(text) == proof["crc32"], (turn, text, proof)


class Wire:
    """One connection.

    Attributes:
        welcome: The server's first frame.
        copies: By conversation; may be shared with the next connection.
        controls: Control frames that no command waited for, in order.
        close_code: After the end of the connection.
    """

    def __init__(self, socket: ClientConnection, copies: dict[str, Copy]) -> None:
        self.socket = socket
        self.copies = copies
        self.controls: list[Frame] = []
        self.frames: list[Frame] = []
        self.bytes = 0
        self.close_code: int | None = None
        self.welcome: Frame = {}
        self._replies: dict[str, Frame] = {}
        self._moved = anyio.Event()
        self._count = 0

    async def send(self, **frame: Any) -> None:
        """Sends a frame."""
        await self.socket.send(orjson.dumps(frame).decode())

    async def command(self, type_: str, seconds: float = 10.0, **members: Any) -> Frame:
        """Sends a command; returns its reply."""
        if "id" not in members:
            self._count += 1
            members["id"] = f"w{self._count}-{id(self)}"
        await self.send(type=type_, **members)
        await self.until(lambda: members["id"] in self._replies, seconds)
        return self._replies.pop(members["id"])

    async def open(self, conversation: str, **members: Any) -> Frame:
        """Opens a conversation with this client's cursor, if it has one."""
        copy = self.copies[conversation]
        if copy.epoch is not None:
            members = {"after": copy.last, "epoch": copy.epoch, **members}
        return await self.command("open", conversation=conversation, **members)

    async def until(self, done: Callable[[], Any], seconds: float = 10.0) -> None:
        """Waits until `done()` is true; frames are read meanwhile."""
        with anyio.fail_after(seconds):
            while not done():
                if self.close_code is not None:
                    raise AssertionError(f"closed with {self.close_code}")
                await self._moved.wait()

    async def done(self, conversation: str, turn: int, seconds: float = 20.0) -> Frame:
        """Waits for a turn's `done`."""
        copy = self.copies[conversation]
        await self.until(lambda: turn in copy.dones, seconds)
        return copy.dones[turn]

    async def closed(self, seconds: float = 10.0) -> int:
        """Waits for the connection's end; returns its close code."""
        with anyio.fail_after(seconds):
            while self.close_code is None:
                await self._moved.wait()
        return self.close_code

    async def read(self) -> None:
        """Reads until the connection ends."""
        try:
            async for data in self.socket:
                self.bytes += len(data)
                self._take(orjson.loads(data))
                self._move()
        except ConnectionClosed:
            pass
        finally:
            self.close_code = self.socket.close_code or 1006
            self._move()

    def _move(self) -> None:
        moved, self._moved = self._moved, anyio.Event()
        moved.set()

    def _take(self, frame: Frame) -> None:
        self.frames.append(frame)
        if "seq" in frame and frame["type"] not in ("reply", "caught_up"):
            self.copies[frame["conversation"]].add(frame)
        elif frame["type"] == "reply":
            if frame["ok"] and "epoch" in frame:
                copy = self.copies[frame["conversation"]]
                if frame["outcome"] == "reset":
                    copy = self.copies[frame["conversation"]] = Copy()
                    copy.last = frame["oldest"] - 1
                copy.epoch = frame["epoch"]
                if copy.last == 0:
                    copy.last = frame["oldest"] - 1
            self._replies[frame["re"]] = frame
        elif frame["type"] == "welcome":
            self.welcome = frame
        elif frame["type"] != "ping":
            self.controls.append(frame)


@asynccontextmanager
async def wire(
    url: str,
    copies: dict[str, Copy] | None = None,
    *,
    hello: bool = True,
    token: str | None = None,
    **options: Any,
) -> AsyncGenerator[Wire]:
    """Connects and says hello; leaving the context drops the connection."""
    socket = await connect(
        url,
        subprotocols=["wsserver.v1"],  # pyright: ignore[reportArgumentType]
        compression=None,
        ping_interval=None,
        max_size=2**24,
        **options,
    )
    made = Wire(socket, defaultdict(Copy) if copies is None else copies)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.read)
        try:
            if hello:
                secret = {} if token is None else {"token": token}
                await made.send(type="hello", protocol=1, **secret)
                await made.until(lambda: made.welcome)
            yield made
        finally:
            tasks.cancel_scope.cancel()
            socket.transport.abort()
