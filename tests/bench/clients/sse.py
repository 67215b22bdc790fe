"""A client of server-sent events that counts tokens without reading the events."""

import asyncio
from typing import cast

import orjson

from tests.bench.clients.tally import Answer

_END = b"[DONE]"


class SseChat(asyncio.Protocol):
    """One connection that asks and gets one answer."""

    def __init__(self, model: str, answer: Answer) -> None:
        self._model = model
        self._answer = answer
        self._transport: asyncio.Transport | None = None
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        text = self._rest + data
        self._answer.feed(text)
        if _END in text:
            self._rest = b""
            self._answer.end()
        else:
            # Shorter than what is counted, so nothing in it is counted twice.
            self._rest = text[-self._answer.carried_bytes :]

    def ask(self) -> None:
        assert self._transport is not None
        body = orjson.dumps({"model": self._model})
        self._transport.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
            % (len(body), body)
        )

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def connect_sse(port: int, model: str, answer: Answer) -> SseChat:
    """Connects to a relay on loopback."""
    _, chat = await asyncio.get_running_loop().create_connection(
        lambda: SseChat(model, answer), "127.0.0.1", port
    )
    return chat
