"""A client of this project's protocol: one socket with any number of conversations."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import orjson

from tests.bench.clients.tally import Answer
from tests.bench.clients.websocket import WebSocketCounter, connect

PATH = "/v1/chat"
OPEN_SECONDS = 60.0
# An id may stand only once for a conversation, whichever socket it comes from.
_numbers = itertools.count(1)
_DELTA = b'{"type":"delta"'
_CONVERSATION = b'"conversation":"'


class Socket:
    """One connection.

    Attributes:
        counter: What is below: its bytes.
        on_event: Called with each frame but deltas, decoded.
    """

    def __init__(self, counter: WebSocketCounter) -> None:
        self.counter = counter
        self.on_event: Callable[[dict[str, Any]], None] = lambda _: None
        self._answers: dict[bytes, Answer] = {}
        self._replies: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._caught_up: dict[str, asyncio.Event] = {}
        counter.on_frame = self._on_frame
        counter.send(type="hello", protocol=1)

    async def open(
        self, conversation: str, answer: Answer | None = None, **members: object
    ) -> dict[str, Any]:
        """Opens a conversation and waits until it is caught up; returns the reply."""
        caught_up = self._caught_up[conversation] = asyncio.Event()
        self.attach(conversation, answer)
        reply = await self.command("open", conversation=conversation, **members)
        await asyncio.wait_for(caught_up.wait(), OPEN_SECONDS)
        return reply

    def attach(self, conversation: str, answer: Answer | None) -> None:
        """Lets the tokens of a conversation count for `answer` from now on."""
        if answer is None:
            self._answers.pop(conversation.encode(), None)
        else:
            self._answers[conversation.encode()] = answer

    async def command(self, type_: str, **members: object) -> dict[str, Any]:
        """Sends a command and returns its reply.

        Raises:
            RuntimeError: It was refused.
        """
        id_ = f"{type_}-{next(_numbers)}"
        reply: asyncio.Future[dict[str, Any]]
        reply = self._replies[id_] = asyncio.get_running_loop().create_future()
        self.counter.send(type=type_, id=id_, **members)
        frame = await asyncio.wait_for(reply, OPEN_SECONDS)
        if not frame["ok"]:
            raise RuntimeError(f"{type_} was refused: {frame['error']}")
        return frame

    def send(self, conversation: str) -> None:
        """Asks for an answer, without waiting for the reply."""
        self.counter.send(
            type="send",
            id=f"{conversation}-{next(_numbers)}",
            conversation=conversation,
            content="go",
        )

    def close(self) -> None:
        """Drops the connection."""
        self.counter.close()

    def _on_frame(self, payload: bytes) -> None:
        if payload.startswith(_DELTA):
            begin = payload.index(_CONVERSATION) + len(_CONVERSATION)
            name = payload[begin : payload.index(b'"', begin)]
            if (answer := self._answers.get(name)) is not None:
                answer.feed(payload)
            return
        frame = orjson.loads(payload)
        kind = frame["type"]
        if kind == "done":
            answer = self._answers.get(frame["conversation"].encode())
            if answer is not None:
                answer.end()
        elif kind == "reply":
            reply = self._replies.pop(frame["re"], None)
            if reply is not None and not reply.done():
                reply.set_result(frame)
        elif kind == "caught_up":
            self._caught_up[frame["conversation"]].set()
        self.on_event(frame)


async def connect_socket(port: int) -> Socket:
    """Connects and says hello."""
    return Socket(await connect(port, PATH))


class WsserverChat:
    """One conversation on a socket, as the other dialects' chats are."""

    def __init__(self, socket: Socket, conversation: str) -> None:
        self._socket = socket
        self._conversation = conversation

    def ask(self) -> None:
        self._socket.send(self._conversation)

    def close(self) -> None:
        self._socket.close()
