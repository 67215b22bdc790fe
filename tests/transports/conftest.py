"""A listener on a real port with a handler that hands its connections to the test."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
import pytest
from websockets.asyncio.client import ClientConnection, connect

from wsserver.connections.transport import Handshake, Transport, TransportClosed
from wsserver.transports import websocket
from wsserver.transports.handshake import Admission
from wsserver.transports.http import CHAT_PATH, Site
from wsserver.transports.listener import Endpoint, Listener
from wsserver.transports.metrics_access import MetricsAccess

MAX_FRAME_BYTES = 65_536
WAIT_SECONDS = 10
ADMISSION = Admission(
    allowed_origins=frozenset({"https://chat.example.org"}), loopback_only=True
)


@pytest.fixture(
    params=[
        pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
        pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
    ],
    scope="session",
)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Both loops that the server runs on."""
    if request.param[1]["use_uvloop"]:
        pytest.importorskip("uvloop")
    return request.param


@pytest.fixture(autouse=True)
def an_end_comes_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "CLOSE_SECONDS", 0.2)


@dataclass
class Served:
    """One connection on the server's side.

    Attributes:
        transport: What the handler was given.
        handshake: And with it.
        leave: Lets the handler return; with an exception it raises that.
        left: Set when the handler has returned.
    """

    transport: websocket.WebSocket
    handshake: Handshake
    leave: anyio.Event = field(default_factory=anyio.Event)
    left: anyio.Event = field(default_factory=anyio.Event)
    error: Exception | None = None

    async def end(self) -> TransportClosed:
        """Reads until the connection has ended, and returns how."""
        with anyio.fail_after(WAIT_SECONDS):
            while True:
                try:
                    await self.transport.receive()
                except TransportClosed as closed:
                    return closed


@dataclass
class Rig:
    """A listener and its knobs."""

    tasks: anyio.abc.TaskGroup
    admission: Admission = ADMISSION
    tls: ssl.SSLContext | None = None
    max_connections: int = 5_000
    ping_seconds: float = 1000.0
    reason: str | None = None
    port: int = 0
    served: list[Served] = field(default_factory=list[Served])
    clients: list["RawClient"] = field(default_factory=list["RawClient"])
    listener: Listener | None = None
    arrived: anyio.Event = field(default_factory=anyio.Event)

    async def start(self) -> None:
        self.listener = Listener(
            Endpoint(
                host="127.0.0.1",
                port=0,
                max_frame_bytes=MAX_FRAME_BYTES,
                max_connections=self.max_connections,
                ping_seconds=self.ping_seconds,
                tls=self.tls,
            ),
            admission=self.admission,
            metrics_access=MetricsAccess(),
            site=Site(files={}, not_ready=lambda: None, metrics=lambda: b""),
            handlers={CHAT_PATH: self._serve},
            refusing=lambda: self.reason,
            tasks=self.tasks,
        )
        self.port = await self.listener.start()

    async def _serve(self, transport: Transport, handshake: Handshake) -> None:
        assert isinstance(transport, websocket.WebSocket)
        served = Served(transport, handshake)
        self.served.append(served)
        self.arrived.set()
        self.arrived = anyio.Event()
        try:
            await served.leave.wait()
            if served.error is not None:
                raise served.error
        finally:
            served.left.set()

    async def stop(self) -> None:
        assert self.listener is not None
        for served in self.served:
            served.leave.set()
        with anyio.fail_after(WAIT_SECONDS):
            await self.listener.stop()
        for client in self.clients:
            client.close()

    async def connection(self, number: int = 0) -> Served:
        """Returns the connection of that number as soon as there is one."""
        with anyio.fail_after(WAIT_SECONDS):
            while len(self.served) <= number:
                await self.arrived.wait()
        return self.served[number]

    def client(self, **options: Any) -> connect:
        """Makes a client of websockets."""
        return connect(f"ws://127.0.0.1:{self.port}/v1/chat", **options)

    async def pair(self) -> tuple[ClientConnection, Served]:
        """Returns both ends of a new connection."""
        number = len(self.served)
        return await self.client(), await self.connection(number)

    async def silent(self) -> "RawClient":
        """Connects a new socket that has said nothing yet."""
        client = RawClient()
        self.clients.append(client)
        await client.connect(self.port)
        return client

    async def ask(
        self, message: bytes, receive_buffer_bytes: int | None = None
    ) -> tuple["RawClient", bytes]:
        """Sends bytes on a new socket; returns it and the first that comes back."""
        client = RawClient(receive_buffer_bytes)
        self.clients.append(client)
        await client.connect(self.port)
        await client.send(message)
        return client, await client.receive()

    async def raw(
        self, *, receive_buffer_bytes: int | None = None, **headers: str
    ) -> tuple["RawClient", bytes]:
        """Returns a socket after its handshake, and the answer to that."""
        return await self.ask(self.request(**headers), receive_buffer_bytes)

    def request(self, **headers: str) -> bytes:
        """Returns a handshake request."""
        fields = {
            "Host": f"127.0.0.1:{self.port}",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version": "13",
        } | {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{name}: {value}\r\n" for name, value in fields.items()]
        return f"GET /v1/chat HTTP/1.1\r\n{''.join(lines)}\r\n".encode()


class RawClient:
    """A TCP client that reads only when told to."""

    def __init__(self, receive_buffer_bytes: int | None = None) -> None:
        self.socket = socket.socket()
        self.socket.setblocking(False)
        if receive_buffer_bytes is not None:
            self.socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes
            )
        self._loop = asyncio.get_running_loop()

    async def connect(self, port: int) -> None:
        await self._loop.sock_connect(self.socket, ("127.0.0.1", port))

    async def send(self, data: bytes) -> None:
        with anyio.fail_after(WAIT_SECONDS):
            await self._loop.sock_sendall(self.socket, data)

    async def receive(self) -> bytes:
        """Returns what came; empty at the end."""
        with anyio.fail_after(WAIT_SECONDS):
            return await self._loop.sock_recv(self.socket, 262_144)

    async def receive_all(self) -> bytes:
        """Returns everything up to the end."""
        received = bytearray()
        try:
            while data := await self.receive():
                received += data
        except ConnectionResetError:
            pass
        return bytes(received)

    def close(self) -> None:
        self.socket.close()

    def vanish(self) -> None:
        """Ends with a reset instead of a goodbye."""
        self.socket.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self.socket.close()


def masked(opcode: int, payload: bytes = b"", *, last: bool = True) -> bytes:
    """Returns a client's frame; the mask is zero."""
    head = bytes(((0x80 if last else 0) | opcode,))
    size = len(payload)
    if size < 126:
        head += bytes((0x80 | size,))
    elif size < 65_536:
        head += b"\xfe" + size.to_bytes(2, "big")
    else:
        head += b"\xff" + size.to_bytes(8, "big")
    return head + bytes(4) + payload


@pytest.fixture
def frame() -> Any:
    """Makes a client's frames."""
    return masked


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    """A listener that has started."""
    async with anyio.create_task_group() as tasks:
        started = Rig(tasks)
        await started.start()
        yield started
        await started.stop()
