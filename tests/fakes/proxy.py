"""A bad network: a TCP proxy that cuts, freezes and slows connections on purpose."""

import random
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.abc
from msgspec import Struct

from tests.fakes.serving import serving

CHUNK = 65_536


class Fault(Struct, frozen=True, kw_only=True):
    """What happens to one connection.

    Attributes:
        cut_up: Drop it after so many bytes from the client; None for never.
        cut_down: Drop it after so many bytes from the server.
        pieces: The largest piece that is passed on at once.
        delay_seconds: Before each piece.
    """

    cut_up: int | None = None
    cut_down: int | None = None
    pieces: int = CHUNK
    delay_seconds: float = 0.0


NO_FAULT = Fault()


class Proxy:
    """Passes connections on to one address.

    Attributes:
        port: Where it listens on loopback.
        connections: How many it has accepted.
        fault: Called for each new connection.
        thawed: Cleared to stop all reading from servers, set to go on.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self.port = 0
        self.connections = 0
        self.fault: Callable[[int], Fault] = lambda _: NO_FAULT
        self.thawed = anyio.Event()
        self.thawed.set()
        self._target = target
        self._streams: set[anyio.abc.SocketStream] = set()

    def url(self, url: str) -> str:
        """Returns the address of the same path through the proxy."""
        scheme, _, rest = url.partition("://")
        return f"{scheme}://127.0.0.1:{self.port}/{rest.partition('/')[2]}"

    def freeze(self) -> None:
        """Reads nothing more from servers until `thaw`."""
        self.thawed = anyio.Event()

    def thaw(self) -> None:
        """Goes on reading."""
        self.thawed.set()

    def cut(self) -> None:
        """Drops all connections now, as a network that is gone."""
        for stream in list(self._streams):
            _reset(stream)

    async def serve(self, client: anyio.abc.SocketStream) -> None:
        """Passes one connection on until one end is gone."""
        number = self.connections
        self.connections += 1
        fault = self.fault(number)
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with client, await anyio.connect_tcp(*self._target) as server:
                self._streams |= {client, server}
                try:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(
                            self._pass,
                            client,
                            server,
                            fault.cut_up,
                            fault,
                            tasks,
                            False,
                        )
                        tasks.start_soon(
                            self._pass,
                            server,
                            client,
                            fault.cut_down,
                            fault,
                            tasks,
                            True,
                        )
                finally:
                    self._streams -= {client, server}

    async def _pass(
        self,
        source: anyio.abc.SocketStream,
        sink: anyio.abc.SocketStream,
        left: int | None,
        fault: Fault,
        tasks: anyio.abc.TaskGroup,
        freezes: bool,
    ) -> None:
        try:
            while True:
                if freezes:
                    await self.thawed.wait()
                data = await source.receive(fault.pieces)
                if fault.delay_seconds:
                    await anyio.sleep(fault.delay_seconds)
                if left is not None:
                    data, left = data[:left], left - len(data)
                await sink.send(data)
                if left is not None and left <= 0:
                    _reset(source)
                    _reset(sink)
                    break
        except (
            anyio.EndOfStream,
            anyio.BrokenResourceError,
            anyio.ClosedResourceError,
        ):
            pass
        finally:
            tasks.cancel_scope.cancel()


def random_faults(seed: int, most_bytes: int) -> Callable[[int], Fault]:
    """Returns faults that cut every connection somewhere, the same for a seed."""

    def fault(number: int) -> Fault:
        chance = random.Random(seed * 10_007 + number)
        cut = chance.randrange(200, most_bytes)
        up = chance.random() < 0.3
        return Fault(
            cut_up=cut // 20 + 200 if up else None,
            cut_down=None if up else cut,
            pieces=chance.choice([1, 7, 100, CHUNK]),
        )

    return fault


def _reset(stream: anyio.abc.SocketStream) -> None:
    raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
    with suppress(OSError):
        raw.shutdown(socket.SHUT_RDWR)


@asynccontextmanager
async def proxy(url: str) -> AsyncGenerator[Proxy]:
    """Starts a proxy in front of a server's URL."""
    host, _, port = url.partition("://")[2].partition("/")[0].rpartition(":")
    made = Proxy((host, int(port)))
    async with serving(made.serve) as made.port:
        yield made
