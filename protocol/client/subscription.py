"""A conversation that a client has open: its cursor and what fits after it.

Not the conversation's content, which is the application's fold, and not the
connection: a subscription outlives it and is opened again on the next one.
"""

from typing import Literal

from msgspec import UNSET
from msgspec.structs import replace

from protocol.client.events import Cursor, ResetReason
from protocol.commands import Open
from protocol.control import Reply
from protocol.events import LogEvent, SkipEvent, first_seq

Placing = Literal["fits", "old", "gap"]


class Subscription:
    """What to ask for, and up to where it was had.

    Attributes:
        wanted: The `open` that the application gave last.
        requests: Opens of the application that are not yet resolved.
        wire_id: The open whose verdict counts; older ones were replaced.
        attached: The verdict came, so events are of this attachment.
        misses: Times it was opened again since an event fitted.
        retry_at: When to open again after the server could not; else None.
    """

    def __init__(self, wanted: Open) -> None:
        self.wanted = wanted
        self.requests = [wanted]
        self.wire_id: str | None = None
        self.attached = False
        self.misses = 0
        self.retry_at: float | None = None
        self._epoch = wanted.epoch
        self._last: int = 0 if wanted.after is UNSET else wanted.after
        self._stuck_at: int | None = None

    @property
    def conversation(self) -> str:
        """Whose log it is."""
        assert self.wanted.conversation is not None, "every open is given a name"
        return self.wanted.conversation

    @property
    def cursor(self) -> Cursor | None:
        """The position to resume from; None before the first verdict."""
        if self._epoch is None:
            return None
        return Cursor(
            conversation=self.conversation, epoch=self._epoch, last=self._last
        )

    @property
    def resumes(self) -> bool:
        """Whether the server is asked for what it had, and not to make one."""
        return self._epoch is not None or self.wanted.after is not UNSET

    def change(self, wanted: Open) -> None:
        """Takes another open of the same conversation; a cursor in it counts."""
        self.wanted = wanted
        self.requests.append(wanted)
        if wanted.epoch is not None:
            self._epoch = wanted.epoch
            self._last = 0 if wanted.after is UNSET else wanted.after

    def take_requests(self) -> list[Open]:
        """Takes the opens that are now resolved."""
        requests, self.requests = self.requests, []
        return requests

    def opening(self, wire_id: str) -> Open:
        """Makes the frame that attaches from here; events are void until its reply."""
        self.wire_id = wire_id
        self.attached = False
        self.retry_at = None
        self._stuck_at = None
        if self._epoch is None:
            return replace(self.wanted, id=wire_id)
        return replace(self.wanted, id=wire_id, epoch=self._epoch, after=self._last)

    def attach(self, reply: Reply) -> ResetReason | None:
        """Takes the verdict of the open that counts.

        Returns:
            Why the state up to here is void, or None where it goes on.
        """
        self.attached = True
        self.wanted = replace(self.wanted, config=None)
        before_oldest = (reply.oldest or 1) - 1
        epoch = reply.epoch or self._epoch or ""
        known, self._epoch = self._epoch, epoch
        if known is None:
            self._last = before_oldest
            return None
        if reply.outcome != "reset" and known == epoch:
            return None
        self._last = before_oldest
        return reply.reason or "epoch_changed"

    def detach(self) -> None:
        """The connection is gone."""
        self.attached = False
        self.wire_id = None
        self.retry_at = None
        self.misses = 0
        self._stuck_at = None

    def place(self, event: LogEvent) -> Placing:
        """Says where an event stands, and moves the cursor over one that fits."""
        seq = event.seq
        if seq <= self._last:
            return "old"
        first, next_seq = first_seq(event), self._last + 1
        # Of a skip that is known in part the rest is simply taken.
        if first > next_seq or (first < next_seq and not isinstance(event, SkipEvent)):
            return "gap"
        self._last = seq
        self.misses = 0
        return "fits"

    def short_of(self, seq: int) -> bool:
        """Says whether something up to `seq` is missing."""
        return self.attached and self._last < seq

    def stuck_below(self, head: int) -> bool:
        """Compares with the head in a heartbeat.

        Heartbeats overtake events, so only a second one that finds the cursor in
        the same place below the head shows that something was lost. With a
        window it is the application that holds events up.
        """
        if not self.short_of(head) or self.wanted.window_bytes is not None:
            self._stuck_at = None
            return False
        stuck = self._stuck_at == self._last
        self._stuck_at = self._last
        return stuck
