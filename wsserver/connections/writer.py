"""The one writer of a connection: control frames first, then conversations in turn.

Whoever has something to send marks it and pokes the writer; the data stays where
it is (in the log, in the lane) until the transport has room for it. The writer is
called back by the event loop, once for all pokes of a turn of the loop; it is a task
only while it waits for room.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial

from wsserver.connections.errors import fail
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

    __slots__ = (
        "_control", "_high_water", "_metrics", "_poked", "_ring", "_running",
        "_start_soon", "_transport", "_waits_for_room", "gates", "lane",
    )  # fmt: skip

    def __init__(
        self,
        transport: Transport,
        *,
        lane: ControlLane,
        high_water_bytes: int,
        start_soon: Callable[[Callable[[], Awaitable[None]]], None],
        metrics: ConnectionMetrics,
    ) -> None:
        """Makes a writer.

        Args:
            transport: Where frames go.
            lane: Control frames.
            high_water_bytes: No more is written while it buffers more than this.
            start_soon: Runs a task of the connection, which ends with what that raises.
            metrics: Counts what was delivered.
        """
        self.lane = lane
        self.gates = Gates(lane, self.poke)
        self._transport = transport
        self._high_water = high_water_bytes
        self._start_soon = start_soon
        self._metrics = metrics
        self._ring: deque[View] = deque()
        self._poked = False
        self._control = False  # whether to look for more than the ring holds
        self._running = False
        self._waits_for_room = False

    @property
    def due(self) -> bool:
        """Whether something could be written."""
        return bool(self._ring or self.lane.frames or self.gates.due)

    def poke(self) -> None:
        """Wakes the writer for control frames; carries nothing."""
        self._control = True
        self._wake()

    def push(self, frame: bytes) -> None:
        """Sends a control frame that the client did not ask for, such as a `ping`."""
        self.lane.push(frame)
        self.poke()

    def answer(self, frame: bytes) -> None:
        """Sends a control frame that the client asked for."""
        self.lane.answer(frame)
        self.poke()

    def mark(self, view: View) -> None:
        """Puts a view into the ring; it calls this when it is woken."""
        self._ring.append(view)
        self._wake()

    def _wake(self) -> None:
        if not self._poked:
            self._poked = True
            self._transport.call_soon(self.take_turn)

    def begin(self) -> None:
        """Writes from now on."""
        self._running = True
        self.poke()

    def end(self) -> None:
        """Writes nothing more, but for `write_rest`."""
        self._running = False

    def drop_views(self) -> None:
        """Forgets views that had something to send: they hold their logs."""
        self._ring.clear()

    def take_turn(self) -> None:
        """Writes what is due, if there is room; called by the event loop, too."""
        self._poked = False
        if self._waits_for_room or not self._running:
            return
        room = self._high_water - self._transport.buffered_bytes()
        if room <= 0:
            self._waits_for_room = True
            self._start_soon(self._wait_for_room)
            return
        try:
            self.write_once(room)
        except BaseException as error:  # noqa: BLE001 - for the connection, not the loop
            self._running = False
            self._start_soon(partial(fail, error))
        if self._ring or self._control:
            self._wake()

    async def _wait_for_room(self) -> None:
        await self._transport.writable()
        self._waits_for_room = False
        self.poke()

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
        out: list[bytes] = []
        if self._control:
            self._control = False
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
        ring, numbers = self._ring, 0
        while ring and not self._control:
            view = ring.popleft()
            view.ready = False
            budget = QUANTUM_BYTES - view.debt
            if budget > 0:
                before, sent = view.position, len(out)
                size = view.take(budget, out)
                view.debt = 0 if size <= budget else size - budget
                room -= size
                numbers += view.position - before
                again = len(out) > sent and view.due
            else:
                view.debt -= QUANTUM_BYTES
                again = True
            if again:
                view.ready = True
                ring.append(view)
            if room <= 0:
                break
        return numbers
