"""Commands that were not replied to: sent again on every new connection.

The id of a command is its idempotency key, so sending again is always safe. What
the server refused for coming too fast (`rate_limited`) is sent again after the
wait that it asked for: one command at a time, each once the one before it was
taken, so that a long queue is not refused once more. Interrupts go before the rest.
"""

from collections.abc import Iterator
from itertools import chain

from protocol.commands import Command, Interrupt

_USUAL_WAIT_SECONDS = 1.0
"""For a refusal that names no wait."""


class Outbox:
    """Commands in the order they were given, each with its encoded frame."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Command, bytes]] = {}
        self._late: set[str] = set()
        self._late_interrupts: dict[str, None] = {}
        self._tried: str | None = None
        self._again_at: float | None = None

    def __iter__(self) -> Iterator[tuple[Command, bytes]]:
        return iter(tuple(self._held.values()))

    def hold(self, command: Command, frame: bytes) -> bool:
        """Keeps a command until it is settled.

        Returns:
            Whether it may go out now. Behind one that came too fast it waits, so
            that the order stays; an interrupt never does.
        """
        self._held[command.id] = (command, frame)
        if not self._late or isinstance(command, Interrupt):
            return True
        self._late.add(command.id)
        return False

    def settle(self, command_id: str) -> Command | None:
        """Lets a command go; None where it is not held (any more)."""
        held = self._held.pop(command_id, None)
        self._late.discard(command_id)
        self._late_interrupts.pop(command_id, None)
        return held[0] if held else None

    def too_fast(self, command_id: str, wait_seconds: float | None, now: float) -> None:
        """Notes that a command came too fast for the server.

        Args:
            command_id: Which one; void where it is not held.
            wait_seconds: What the server asks to wait; None for no word on it.
            now: When.
        """
        if command_id in self._held:
            self._late.add(command_id)
            if isinstance(self._held[command_id][0], Interrupt):
                self._late_interrupts[command_id] = None
            self._tried = None
            self._again_at = now + (
                _USUAL_WAIT_SECONDS if wait_seconds is None else wait_seconds
            )

    def next_timer(self) -> float | None:
        """When `due` has something at the latest; None for not by time alone."""
        return self._again_at

    def due(self, now: float) -> tuple[Command, bytes] | None:
        """Takes the next command that came too fast, if it may go out again now."""
        if self._again_at is not None:
            if now < self._again_at:
                return None
            self._again_at = None
        elif self._tried is None or self._tried in self._late:
            return None
        for command_id in chain(self._late_interrupts, self._held):
            if command_id in self._late:
                self._tried = command_id
                return self._held[command_id]
        self._tried = None
        return None

    def new_connection(self) -> None:
        """Forgets what came too fast: everything goes out anew."""
        self._late.clear()
        self._late_interrupts.clear()
        self._tried = self._again_at = None
