"""Commands that were not replied to: sent again on every new connection.

The id of a command is its idempotency key, so sending again is always safe.
"""

from collections.abc import Iterator

from protocol.commands import Command


class Outbox:
    """Commands in the order they were given, each with its encoded frame."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Command, bytes]] = {}

    def __iter__(self) -> Iterator[tuple[Command, bytes]]:
        return iter(tuple(self._held.values()))

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, command: Command, frame: bytes) -> None:
        """Keeps a command until it is settled."""
        self._held[command.id] = (command, frame)

    def settle(self, command_id: str) -> Command | None:
        """Lets a command go; None where it is not held (any more)."""
        held = self._held.pop(command_id, None)
        return held[0] if held else None
