"""Control frames that may leave only once the store has what they speak of.

A reply to a command that changed the log, and a request to run a tool, must not
be taken back by a crash. They wait here, in order for each conversation, and
hold up no other frame.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from wsserver.connections.errors import error_frame
from wsserver.connections.lane import ControlLane
from wsserver.log.conversation_log import ConversationLog
from wsserver.turns.errors import refusal


class Sight(Protocol):
    """What a gate needs of a view."""

    @property
    def closed(self) -> bool:
        """Whether it is not open any more."""
        ...

    def sent_through(self) -> int:
        """Returns the last number that was sent."""
        ...


class Held(Struct, frozen=True, kw_only=True):
    """A frame that waits.

    Attributes:
        frame: The frame.
        changes: It may leave when the log has settled so many of its changes.
        re: The command it answers; None for a frame that answers none.
        view: The view it is for. A frame that answers none does not leave when
            that was closed.
        sent_through: It may leave when `view` has sent this number; 0 for none.
        meanwhile: What leaves in its place while the store does not take the
            changes; None where there is nothing to be said before.
    """

    frame: bytes
    changes: int
    re: str | None = None
    view: Sight | None = None
    sent_through: int = 0
    meanwhile: bytes | None = None

    def may_leave(self, settled: int) -> bool:
        """Whether the reply may be sent: what it speaks of is stored, and was sent.

        Args:
            settled: How many of the log's changes are in the store.
        """
        if settled < self.changes:
            return False
        view = self.view
        return view is None or view.closed or view.sent_through() >= self.sent_through

    def now(self) -> "Held":
        """Returns what leaves in its place, which waits for nothing."""
        assert self.meanwhile is not None, "there is something to be said"
        return Held(frame=self.meanwhile, changes=0, re=self.re)


class Gate:
    """The frames of one conversation that wait, in order."""

    def __init__(self, log: ConversationLog, on_wake: Callable[["Gate"], None]) -> None:
        self.log = log
        self.held: deque[Held] = deque()
        self.marked = False
        self._on_wake = on_wake

    def wake(self) -> None:
        """Looks, soon, at what may leave."""
        if not self.marked:
            self.marked = True
            self._on_wake(self)

    def release(self) -> list[Held]:
        """Removes and returns what may leave."""
        self.marked = False
        held, log = self.held, self.log
        released: list[Held] = []
        while held and (log.gone or held[0].may_leave(log.settled)):
            released.append(held.popleft())
        if log.stalled:
            now = [frame for frame in held if frame.meanwhile is not None]
            self.held = deque(frame for frame in held if frame.meanwhile is None)
            released += [frame.now() for frame in now]
        return released


class Gates:
    """All gates of one connection.

    Attributes:
        held: How many frames wait.
        due: Those for which `release` has something to do.
    """

    def __init__(self, lane: ControlLane, poke: Callable[[], None]) -> None:
        """Makes none yet; `poke` is called when the writer has something to do."""
        self.held = 0
        self._lane = lane
        self._poke = poke
        self._gates: dict[ConversationLog, Gate] = {}
        self.due: list[Gate] = []

    def hold(self, log: ConversationLog, held: Held) -> None:
        """Lets the frame leave as soon as it may."""
        if log.stalled and held.meanwhile is not None:
            held = held.now()
            self._leave(held)
            self._poke()
            return
        gate = self._gates.get(log)
        if gate is None:
            # Of a log that is gone nobody is told anything any more.
            if log.gone or held.may_leave(log.settled):
                self._leave(held, lost=held.changes > log.settled)
                self._poke()
                return
            gate = self._gates[log] = Gate(log, self._mark)
            log.subscribe(gate.wake)
        log.hurry()
        gate.held.append(held)
        self.held += 1

    def sent(self, log: ConversationLog) -> None:
        """Tells that a view has sent what a frame waits for, or was closed."""
        gate = self._gates.get(log)
        if gate is not None:
            gate.wake()

    def release(self) -> None:
        """Lets go what may leave. Called by the writer, never by a wake-up."""
        marked, self.due = self.due, []
        for gate in marked:
            for held in gate.release():
                self.held -= 1
                self._leave(held, lost=held.changes > gate.log.settled)
            if not gate.held:
                self._remove(gate)

    def clear(self) -> None:
        """Drops everything."""
        for gate in list(self._gates.values()):
            self._remove(gate)
        self.due.clear()
        self.held = 0

    def _mark(self, gate: Gate) -> None:
        self.due.append(gate)
        self._poke()

    def _remove(self, gate: Gate) -> None:
        gate.log.unsubscribe(gate.wake)
        self._gates.pop(gate.log, None)

    def _leave(self, held: Held, *, lost: bool = False) -> None:
        if held.re is None:
            if not (lost or (held.view is not None and held.view.closed)):
                self._lane.push(held.frame)
        elif lost:
            gone = refusal(
                "conversation_not_found", "The conversation was deleted meanwhile."
            )
            self._lane.answer(error_frame(gone.body, held.re))
        else:
            self._lane.answer(held.frame)
