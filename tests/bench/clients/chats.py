"""Chats in every row's dialect: connect, ask, count the answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import orjson

from tests.bench.clients.sse import connect_sse
from tests.bench.clients.tally import Answer
from tests.bench.clients.websocket import WebSocketCounter, connect
from tests.bench.clients.wsserver import WsserverChat, connect_socket
from tests.bench.rows import Dialect

CONNECT_AT_ONCE = 50
_SOCKETIO_PATH = "/socket.io/?EIO=4&transport=websocket"

T = TypeVar("T")


class Chat(Protocol):
    """A connection that can ask for an answer."""

    def ask(self) -> None:
        """Asks; the tokens go to the chat's `Answer`."""
        ...

    def close(self) -> None:
        """Drops the connection."""
        ...


class JsonChat:
    """A model's name in, frames with a text out, and one that says `done`."""

    def __init__(self, socket: WebSocketCounter, model: str, answer: Answer) -> None:
        self._socket = socket
        self._model = model
        self._answer = answer
        socket.on_frame = self._on_frame

    def ask(self) -> None:
        self._socket.send(model=self._model)

    def close(self) -> None:
        self._socket.close()

    def _on_frame(self, payload: bytes) -> None:
        if payload.startswith(b'{"done"'):
            self._answer.end()
        else:
            self._answer.feed(payload)


class SocketIoChat:
    """The least of Socket.IO 5 over Engine.IO 4 that it takes to chat."""

    def __init__(self, socket: WebSocketCounter, model: str, answer: Answer) -> None:
        self.connected = asyncio.Event()
        self._socket = socket
        self._model = model
        self._answer = answer
        socket.on_frame = self._on_frame
        socket.send_text("40")

    def ask(self) -> None:
        self._socket.send_text("42" + orjson.dumps(["ask", self._model]).decode())

    def close(self) -> None:
        self._socket.close()

    def _on_frame(self, payload: bytes) -> None:
        if payload.startswith(b'42["text"'):
            self._answer.feed(payload)
        elif payload.startswith(b'42["done"'):
            self._answer.end()
        elif payload.startswith(b"40"):
            self.connected.set()
        elif payload == b"2":
            self._socket.send_text("3")


async def open_chat(
    dialect: Dialect, port: int, conversation: str, model: str, answer: Answer
) -> Chat:
    """Connects one chat; `conversation` matters to wsserver only."""
    match dialect:
        case "wsserver":
            socket = await connect_socket(port)
            await socket.open(conversation, answer, config={"model": model})
            return WsserverChat(socket, conversation)
        case "json":
            return JsonChat(await connect(port, "/"), model, answer)
        case "socketio":
            chat = SocketIoChat(await connect(port, _SOCKETIO_PATH), model, answer)
            await asyncio.wait_for(chat.connected.wait(), 20)
            return chat
        case "sse":
            return await connect_sse(port, model, answer)


async def in_waves(count: int, make: Callable[[int], Awaitable[T]]) -> list[T]:
    """Makes so many, a few at once."""
    made: list[T] = []
    while len(made) < count:
        until = min(len(made) + CONNECT_AT_ONCE, count)
        made += await asyncio.gather(*(make(n) for n in range(len(made), until)))
    return made
