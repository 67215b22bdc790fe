"""The one task that writes: control frames first, then conversations in turn.

Whoever has something to send marks it and pokes the writer; the data stays where
it is (in the log, in the lane) until the transport has room for it.
"""

from collections import deque
from collections.abc import Callable

import anyio
import anyio.lowlevel

from wsserver.connections.gates import Gates
from wsserver.connections.lane import ControlLane
from wsserver.connections.metrics import ConnectionMetrics
from wsserver.connections.transport import Transport
from wsserver.connections.viewer import View

QUANTUM_BYTES = 16_384
"""What each conversation may send before it is the next one's turn."""


class Writer:
    """Writes what is due, as fast as the transport takes it.

    A wake-up costs one `Transport.write`, however many conversations moved. A
    cursor moves in the same step in which its frames are handed over, with no
    await between, so a cancelled writer has lost nothing and repeats nothing.

    Attributes:
        lane: Control frames that may be written.
        gates: Control frames that wait for the store.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        lane: ControlLane,
        high_water_bytes: int,
        fetch: Callable[[View], None],
        metrics: ConnectionMetrics,
    ) -> None:
        """Makes a writer.

        Args:
            transport: Where frames go.
            lane: Control frames.
            high_water_bytes: No more is written while it buffers more than this.
            fetch: Told of a view whose next entries are not in memory; it calls
                `View.fetched` later.
            metrics: Counts what was delivered.
        """
        self.lane = lane
        self.gates = Gates(lane, self.poke)
        self._transport = transport
        self._high_water = high_water_bytes
        self._fetch = fetch
        self._metrics = metrics
        self._ring: deque[View] = deque()
        self._waiting: anyio.Event | None = None

    @property
    def due(self) -> bool:
        """Whether something could be written."""
        return bool(self._ring or self.lane or self.gates.due)

    def poke(self) -> None:
        """Wakes the writer; carries nothing."""
        waiting = self._waiting
        if waiting is not None:
            self._waiting = None
            waiting.set()

    def push(self, frame: bytes) -> None:
        """Sends a control frame."""
        self.lane.push(frame)
        self.poke()

    def answer(self, frame: bytes) -> None:
        """Sends a control frame that the client asked for."""
        self.lane.answer(frame)
        self.poke()

    def mark(self, view: View) -> None:
        """Puts a view into the ring; it calls this when it is woken."""
        self._ring.append(view)
        self.poke()

    async def run(self) -> None:
        """Writes for ever.

        Raises:
            TransportClosed: The connection is gone.
        """
        transport, high_water = self._transport, self._high_water
        while True:
            if not self.due:
                self._waiting = waiting = anyio.Event()
                await waiting.wait()
            buffered = transport.buffered_bytes()
            if buffered > high_water:
                await transport.writable()
                buffered = transport.buffered_bytes()
            self.write_once(high_water - buffered)
            if self.due:
                await anyio.lowlevel.checkpoint()

    def write_rest(self) -> None:
        """Hands over what is due, if there is room; for the end of a connection."""
        room = self._high_water - self._transport.buffered_bytes()
        if room > 0:
            self.write_once(room)

    def write_once(self, room: int) -> None:
        """Hands over all control frames, then events.

        Args:
            room: About how many bytes of events; one conversation's turn at least.
        """
        if self.gates.due:
            self.gates.release()
        out = self.lane.take()
        if self._ring:
            control = len(out)
            numbers = self._take_turns(room, out)
            self._metrics.delivered(len(out) - control, numbers)
        if out:
            self._transport.write(out)

    def _take_turns(self, room: int, out: list[bytes]) -> int:
        """Lets conversations take turns by bytes (deficit round robin).

        Ends early for a reply that waited for one of them to get so far. Returns
        how many numbers their cursors moved.
        """
        ring, gates, numbers = self._ring, self.gates, 0
        room = max(room, 1)
        while ring and room > 0 and not gates.due:
            view = ring.popleft()
            view.ready = False
            budget = QUANTUM_BYTES - view.debt
            if budget <= 0:
                view.debt -= QUANTUM_BYTES
                view.ready = True
                ring.append(view)
                continue
            before, sent = view.position, len(out)
            size = view.take(budget, out)
            view.debt = max(0, size - budget)
            room -= size
            numbers += view.position - before
            if view.starved:
                self._fetch(view)
            elif view.due and len(out) > sent:
                view.ready = True
                ring.append(view)
        return numbers
