"""Commands that were not replied to: sent again on every new connection.

The id of a command is its idempotency key, so sending again is always safe. Only so
many are under way at once; the others wait for replies, in order, so that a burst
goes at the server's pace. What the server refused for coming too fast
(`rate_limited`) is sent again after the wait that it asked for: one command at a
time until all that was refused is taken, and then more with each reply.

Behind a `delete` nothing goes into its conversation before the reply: it would be
deleted too, if the `delete` had to be sent again. Other conversations go on.
"""

from collections import OrderedDict
from collections.abc import Iterator

from msgspec import Struct

from protocol.commands import (
    Close,
    Command,
    Configure,
    Delete,
    Interrupt,
    Refresh,
    Send,
    ToolResult,
)

MOST_UNDER_WAY = 64
"""Enough for 100 commands a second over half a second of network."""

USUAL_WAIT_SECONDS = 1.0
"""For a refusal that names no wait."""


class _Held(Struct):
    """A command with its encoded frame, and how many were given before it."""

    command: Command
    frame: bytes
    number: int


class Outbox:
    """Commands in the order they were given, each with its encoded frame."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._count = 0
        self._waiting: OrderedDict[str, None] = OrderedDict()
        self._urgent: OrderedDict[str, None] = OrderedDict()
        # Sends that go before all else, since their interrupt has gone.
        self._named: OrderedDict[str, None] = OrderedDict()
        self._under_way: set[str] = set()
        self._refused: set[str] = set()
        self._deletes: dict[str, int] = {}
        self._deleting: dict[str, list[str]] = {}  # and what waits for that
        self._most = MOST_UNDER_WAY
        self._paused_until: float | None = None

    def __iter__(self) -> Iterator[Command]:
        return iter([held.command for held in self._held.values()])

    def hold(self, command: Command, frame: bytes) -> None:
        """Keeps a command until it is settled; `due` gives it when it may go."""
        self.settle(command.id)
        self._count += 1
        self._held[command.id] = _Held(command, frame, self._count)
        if isinstance(command, Delete):
            deletes = self._deletes.get(command.conversation, 0)
            self._deletes[command.conversation] = deletes + 1
        self._wait(command)

    def settle(self, command_id: str) -> Command | None:
        """Lets a command go; None where it is not held (any more)."""
        held = self._held.pop(command_id, None)
        if held is None:
            return None
        self._take_off(command_id)
        self._landed(held.command)
        if isinstance(held.command, Delete):
            self._forget_delete(held.command.conversation)
        if not self._refused:
            self._most = min(self._most + 1, MOST_UNDER_WAY)
        return held.command

    def into(self, conversation: str) -> list[Command]:
        """Finds what is held for a conversation and comes to nothing with it.

        A fork does not: what it makes is a conversation of its own.
        """
        return [
            command
            for command in self
            if isinstance(command, Send | Configure | Interrupt | ToolResult)
            and command.conversation == conversation
        ]

    def deletes(self, conversation: str) -> bool:
        """Says whether a `delete` of a conversation is held."""
        return conversation in self._deletes

    def too_fast(self, command_id: str, wait_seconds: float | None, now: float) -> None:
        """Notes that a command came too fast for the server.

        Args:
            command_id: Which one; void where it is not held.
            wait_seconds: What the server asks to wait; None for no word on it.
            now: When.
        """
        held = self._held.get(command_id)
        if held is not None:
            self._landed(held.command)
            self._refused.add(command_id)
            self._most = 1
            self._paused_until = now + (
                USUAL_WAIT_SECONDS if wait_seconds is None else wait_seconds
            )

    def advance(self, now: float) -> None:
        """Time has passed: maybe the wait that the server asked for."""
        if self._paused_until is not None and now >= self._paused_until:
            self._paused_until = None

    def next_timer(self, room_at: float) -> float | None:
        """When `due` has something by time alone; None for never.

        Args:
            room_at: When there is room for one more frame.
        """
        if self._paused_until is not None:
            return self._paused_until
        return None if self._next() is None else room_at

    def due(self, *, has_room: bool) -> tuple[Command, bytes] | None:
        """Takes the next command that may go out now; None where none may.

        Args:
            has_room: Whether there is room for a frame that can wait.
        """
        command_id = next(iter(self._named), None)
        if command_id is None and has_room:
            command_id = self._next()
        if command_id is None:
            command_id = next(iter(self._urgent), None)
        if command_id is None:
            return None
        self._take_off(command_id)
        self._under_way.add(command_id)
        held = self._held[command_id]
        match held.command:
            case Delete():
                self._deleting[held.command.conversation] = []
            case Interrupt(send=str() as send) if send in self._waiting:
                # The server remembers this for a minute, and the send may wait longer.
                self._named[send] = None
            case _:
                pass
        return held.command, held.frame

    def new_connection(self) -> None:
        """Everything goes out anew."""
        self._waiting.clear()
        self._urgent.clear()
        self._named.clear()
        self._under_way.clear()
        self._refused.clear()
        self._deleting.clear()
        self._most = MOST_UNDER_WAY
        self._paused_until = None
        for held in self._held.values():
            self._wait(held.command)

    def _take_off(self, command_id: str) -> None:
        self._waiting.pop(command_id, None)
        self._urgent.pop(command_id, None)
        self._named.pop(command_id, None)
        self._refused.discard(command_id)

    def _wait(self, command: Command) -> None:
        self._waiting[command.id] = None
        if _must_not_wait(command):
            self._urgent[command.id] = None

    def _forget_delete(self, conversation: str) -> None:
        self._deletes[conversation] -= 1
        if not self._deletes[conversation]:
            del self._deletes[conversation]

    def _landed(self, command: Command) -> None:
        if command.id in self._under_way and isinstance(command, Delete):
            for waits in reversed(self._deleting.pop(command.conversation)):
                if waits in self._held:
                    self._waiting[waits] = None
                    self._waiting.move_to_end(waits, last=False)
        self._under_way.discard(command.id)

    def _next(self) -> str | None:
        """The next in order; None where it has to wait for a reply, or for time."""
        if self._paused_until is not None or len(self._under_way) >= self._most:
            return None
        if self._refused:
            return min(self._refused, key=self._order_again)
        while (command_id := next(iter(self._waiting), None)) is not None:
            behind = self._behind_delete(self._held[command_id].command)
            if behind is None:
                break
            del self._waiting[command_id]
            behind.append(command_id)
        return command_id

    def _behind_delete(self, command: Command) -> list[str] | None:
        if isinstance(command, Close) or _must_not_wait(command):
            return None
        return self._deleting.get(getattr(command, "conversation", ""))

    def _order_again(self, command_id: str) -> tuple[bool, int]:
        held = self._held[command_id]
        return not _must_not_wait(held.command), held.number


def _must_not_wait(command: Command) -> bool:
    """What others wait for: a stop, a turn's tool, the connection's credentials."""
    return isinstance(command, Interrupt | ToolResult | Refresh)
