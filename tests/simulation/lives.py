"""All that a store was ever given of each conversation, and by which rules it let go.

A conversation that is deleted and made anew has several lives, each with an epoch of
its own. What is trimmed is kept here: the oracles look at whole logs.
"""

from collections.abc import Callable, Sequence

import msgspec

from protocol.events import ToolCallEvent
from wsserver.log.entry import Entry
from wsserver.log.store import Meta, Write

_call = msgspec.json.Decoder(ToolCallEvent).decode


class Keeping(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a conversation is kept; None is no limit."""

    seconds: float | None = None
    bytes: int | None = None

    @property
    def all(self) -> bool:
        """Whether everything is."""
        return self.seconds is None and self.bytes is None


class Life:
    """One epoch of a conversation.

    Attributes:
        key: The store's.
        epoch: Its epoch.
        first: Its first number: a fork of a trimmed log does not begin with 1.
        entries: What was ever stored.
        oldest: The first number that is still kept.
        born_at: When it was stored first, on the loop's clock.
        live: Whether a turn runs or a message waits in it, as it was stored.
        written: When it was written last, in seconds since the epoch.
        ended_at: When it was deleted, on the loop's clock; None while it is there.
        receipts: Principal and id of stored receipts.
        calls: Stored tool calls.
        ends: The numbers of each `done`.
        trims: Whether retention may take something; the store need not have heard.
    """

    def __init__(self, key: str, meta: Meta, born_at: float) -> None:
        self.key = key
        self.born_at = born_at
        self.epoch = meta.epoch
        self.first = self.oldest = meta.oldest
        self.entries: list[Entry] = []
        self.live = False
        self.written = 0.0
        self.ended_at: float | None = None
        self.receipts: set[tuple[str, str]] = set()
        self.calls: set[str] = set()
        self.ends: set[int] = set()
        self.trims = False
        self._times: list[float] = []

    @property
    def name(self) -> str:
        """What clients know the conversation by."""
        return self.key.rpartition("/")[2]

    @property
    def head(self) -> int:
        """The last stored number."""
        return self.entries[-1].seq if self.entries else self.first - 1

    def add(self, entry: Entry, at: float) -> None:
        """Takes an entry that was stored at some time."""
        self.entries.append(entry)
        self._times.append(at)
        if entry.kind == "tool_call":
            self.calls.add(_call(entry.body).call)
        elif entry.kind == "done":
            self.ends.add(entry.seq)

    def begins(self, oldest: int) -> bool:
        """Whether the log may begin there: between two turns."""
        return oldest == self.first or oldest - 1 in self.ends

    def overdue(self, keep_bytes: int) -> bool:
        """Whether whole turns are kept beyond so many bytes."""
        following = min((end for end in self.ends if end >= self.oldest), default=None)
        return following is not None and self._bytes(following + 1) >= keep_bytes

    def trim(self, oldest: int, keeping: Keeping, now: float) -> str | None:
        """Takes note of a trim; says what is wrong with it."""
        dropped = [
            at
            for entry, at in zip(self.entries, self._times, strict=True)
            if self.oldest <= entry.seq < oldest
        ]
        self.oldest = oldest
        if oldest - 1 not in self.ends:
            return "inside of a turn"
        if keeping.bytes is not None and self._bytes(oldest) < keeping.bytes:
            return f"more than what is beyond {keeping.bytes} bytes"
        if keeping.seconds is not None and max(dropped) >= now - keeping.seconds:
            return f"what is younger than {keeping.seconds} s"
        return "what was to be kept" if keeping.all else None

    def _bytes(self, first: int) -> int:
        return sum(len(entry.body) for entry in self.entries if entry.first >= first)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """When a `fork` came in first, on the loop's clock, and what of its source was stored.

    Attributes:
        life: The source; None where there was none.
        head: Its last stored number.
    """

    at: float
    life: Life | None
    head: int


class Lives:
    """The lives of all conversations, by key, oldest first.

    Attributes:
        deletes: Names of conversations whose deletion somebody has asked for.
        deleting: By id of a `delete`: what there was each time that it came in.
        asked: By id of a `fork`: what was there when it came in first.
        woken: Keys of what somebody has opened, or sent to, since the server started.
    """

    def __init__(self, keeping: Keeping, report: Callable[[str], None]) -> None:
        self.deletes: set[str] = set()
        self.deleting: dict[str, list[Life | None]] = {}
        self.asked: dict[str, Asked] = {}
        self.woken: set[str] = set()
        self._keeping = keeping
        self._report = report
        self._lives: dict[str, list[Life]] = {}

    def all(self) -> list[Life]:
        """Returns every life there was."""
        return [life for lives in self._lives.values() for life in lives]

    def of(self, key: str) -> list[Life]:
        """Returns the lives of a conversation."""
        return self._lives.get(key, [])

    def now(self, key: str) -> Life | None:
        """Returns the life that a conversation has at present."""
        lives = self.of(key)
        return lives[-1] if lives and lives[-1].ended_at is None else None

    def epoch(self, key: str, epoch: str) -> Life | None:
        """Returns the life of an epoch; None while none of it is stored."""
        return next((life for life in self.of(key) if life.epoch == epoch), None)

    def may_end(self, name: str) -> bool:
        """Whether a conversation may be gone: by a deletion, or as nobody used it."""
        return name in self.deletes or self._keeping.seconds is not None

    def take(self, writes: Sequence[Write], now: float, clock: float) -> None:
        """Takes what was committed at `now`; `clock` is the loop's time."""
        for write in writes:
            if write.delete:
                self._end(write.key, now, clock)
        for write in writes:
            if write.meta is not None:
                self._write(write, write.meta, now, clock)

    def restarted(self) -> None:
        """The server starts: what waits, waits for somebody."""
        self.woken = set()

    def _end(self, key: str, now: float, clock: float) -> None:
        life = self.now(key)
        if life is None:
            return
        life.ended_at = clock
        if life.name in self.deletes:
            return
        keep = self._keeping.seconds
        if keep is None or life.live or life.written >= now - keep:
            self._report(f"{key} was dropped, and nobody has deleted it")

    def _write(self, write: Write, meta: Meta, now: float, clock: float) -> None:
        life = self.now(write.key)
        waited = life is not None and write.key not in self.woken
        if life is None:
            if self.epoch(write.key, meta.epoch) is not None:
                self._report(f"{write.key} was made anew under an epoch that it had")
            life = Life(write.key, meta, clock)
            life.trims = not self._keeping.all
            self._lives.setdefault(write.key, []).append(life)
        elif life.epoch != meta.epoch:
            self._report(f"{write.key} has another epoch and was not deleted")
        for entry in write.entries:
            life.add(entry, now)
            if entry.kind == "start" and waited:
                self._report(f"{write.key} {entry.seq} began before anybody opened it")
        life.receipts |= {(each.principal, each.id) for each in write.receipts}
        life.live, life.written = meta.live, now
        if meta.oldest > life.oldest:
            wrong = life.trim(meta.oldest, self._keeping, now)
            if wrong is not None:
                self._report(f"{write.key} was trimmed to {meta.oldest}: {wrong}")
