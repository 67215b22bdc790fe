"""The inspector of one server: its recording, and the connections it looks at."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from msgspec import Meta, Struct

from wsserver.connections.transport import Transport
from wsserver.inspector.recorder import Recorder
from wsserver.inspector.tap import Tap, tapped

DelayMs = Annotated[int, Meta(ge=0, le=60_000)]


class Order(Struct, frozen=True, kw_only=True, tag_field="act"):
    """The base of what a page may order; of which connection."""

    connection: str


class Drop(Order, frozen=True, kw_only=True, tag="drop"):
    """Cut the connection."""


class Delay(Order, frozen=True, kw_only=True, tag="delay"):
    """Hold each way up by so many milliseconds."""

    in_ms: DelayMs
    out_ms: DelayMs


class Duplicate(Order, frozen=True, kw_only=True, tag="duplicate"):
    """Give the server the next command twice."""


class Repeat(Order, frozen=True, kw_only=True, tag="repeat"):
    """Give the client the next event twice."""


class Lose(Order, frozen=True, kw_only=True, tag="lose"):
    """Keep the next event from the client."""


AnyOrder = Drop | Delay | Duplicate | Repeat | Lose


class Watched(Struct, frozen=True, kw_only=True):
    """A connection that is open, and how many milliseconds each way is held up."""

    connection: str
    in_ms: int
    out_ms: int


class Inspector:
    """Taps connections, and does to them what is ordered.

    Attributes:
        recorder: Writes down what passes.
    """

    def __init__(self, recorder: Recorder) -> None:
        """Begins with no connection."""
        self.recorder = recorder
        self._taps: dict[str, Tap] = {}

    @asynccontextmanager
    async def tapped(
        self, connection: str, transport: Transport
    ) -> AsyncGenerator[Transport]:
        """Gives what to use in the transport's place, while the context is open."""
        async with tapped(connection, transport, self.recorder) as tap:
            self._taps[connection] = tap
            try:
                yield tap
            finally:
                del self._taps[connection]

    def watched(self) -> list[Watched]:
        """Returns the connections that are open."""
        return [
            Watched(connection=name, in_ms=tap.in_ms, out_ms=tap.out_ms)
            for name, tap in self._taps.items()
        ]

    def obey(self, order: AnyOrder) -> None:
        """Does what is ordered; nothing where the connection has ended."""
        tap = self._taps.get(order.connection)
        if tap is None:
            return
        name, in_ms, out_ms = order.connection, None, None
        if isinstance(order, Delay):
            in_ms, out_ms = order.in_ms, order.out_ms
        act = type(order).__struct_config__.tag
        self.recorder.act(name, str(act), in_ms, out_ms)
        match order:
            case Drop():
                tap.drop()
            case Delay():
                tap.in_ms, tap.out_ms = order.in_ms, order.out_ms
            case Duplicate():
                tap.duplicate()
            case Repeat():
                tap.repeat()
            case Lose():
                tap.lose()
