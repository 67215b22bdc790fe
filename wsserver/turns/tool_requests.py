"""Who runs which call of a turn: the server itself, or which connection is asked.

The server runs the calls of its own tools. Any other is asked of exactly one
connection: the one that sent the message if it handles the tool, else another that
does, the most recent first. When that one leaves, the next is asked; a call that
nobody can run waits for one who comes.
"""

from collections.abc import Sequence

from protocol.control import ToolRequest
from wsserver.engine.tools import Batch
from wsserver.turns.clock import Clock
from wsserver.turns.served_calls import ServedCalls
from wsserver.turns.viewer import Viewer


class ToolRequests:
    """The open calls of one turn, and who was asked."""

    def __init__(
        self,
        batch: Batch,
        served: ServedCalls,
        *,
        conversation: str,
        turn: int,
        sender: str | None,
        viewers: Sequence[Viewer],
        clock: Clock,
    ) -> None:
        """Asks nobody yet.

        Args:
            batch: The turn's calls.
            served: Runs those of the server's tools.
            conversation: Its conversation.
            turn: Its number.
            sender: The connection that sent the message, if it is known.
            viewers: Who has the conversation open, the longest first; it changes.
            clock: Tells how long a call took.
        """
        self._batch = batch
        self._served = served
        self._conversation = conversation
        self._turn = turn
        self._sender = sender
        self._viewers = viewers
        self._clock = clock
        # By view and not by connection: one that opens anew has two for a moment. None
        # stands for the server.
        self._asked: dict[str, Viewer | None] = {}
        self._since: dict[str, float] = {}

    def ask(self, call: str) -> None:
        """Has an open call run, if anybody can run it."""
        opened = self._batch.open.get(call)
        if opened is None:
            return
        self._since.setdefault(call, self._clock.now())
        if self._served.run(opened):
            self._asked[call] = None
            return
        able = [viewer for viewer in self._viewers if opened.name in viewer.handles]
        first = [viewer for viewer in able if viewer.connection == self._sender]
        if able:
            self._deliver(call, (first or able)[-1])

    def attached(self, viewer: Viewer) -> None:
        """Asks a connection that came for what nobody was asked for."""
        for call, opened in self._batch.open.items():
            if call not in self._asked and opened.name in viewer.handles:
                self._deliver(call, viewer)

    def handles_changed(self, viewer: Viewer) -> None:
        """Asks others for what a connection does not handle any more, and it for more."""
        for call, opened in self._batch.open.items():
            if self._asked.get(call) is viewer and opened.name not in viewer.handles:
                del self._asked[call]
                self.ask(call)
        self.attached(viewer)

    def left(self, viewer: Viewer) -> None:
        """Asks others for what a connection that is gone was asked for."""
        for call, asked in list(self._asked.items()):
            if asked is viewer:
                del self._asked[call]
                self.ask(call)

    def served(self, call: str) -> bool:
        """Whether the server runs a call, or has run it."""
        return call in self._asked and self._asked[call] is None

    def settled(self, call: str) -> float:
        """Forgets a call; returns how many seconds it was open."""
        self._served.settled(call)
        if not self.served(call):  # it stays the server's: no client's result is for it
            self._asked.pop(call, None)
        now = self._clock.now()
        return now - self._since.pop(call, now)

    def let_go(self) -> None:
        """Forgets who takes results, once the turn has ended."""
        self._served.let_go()

    def _deliver(self, call: str, viewer: Viewer) -> None:
        delivery = self._batch.deliver(call, self._clock.now())
        assert delivery is not None, "only open calls are asked for"
        self._asked[call] = viewer
        viewer.request_tool(
            ToolRequest(
                conversation=self._conversation,
                turn=self._turn,
                call=call,
                name=delivery.name,
                arguments=delivery.arguments,
                deadline_ms=delivery.left_ms,
                redelivered=delivery.again,
            )
        )
