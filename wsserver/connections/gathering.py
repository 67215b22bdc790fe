"""Text that is gathered before it is sent, for a client that asked for `max_delay_ms`.

Still there is no queue: what is held back is in the log, behind the cursor. This
decides up to which number the cursor may move.

- Text goes no later than the delay after it was stored, and then as one frame with
  what came meanwhile; as soon as anything else follows it, all goes.
- A frame ends between two characters as people see them, so the last character waits
  for its own delay to be over, or for more to come. One that is commonly written in
  several parts waits further, until nothing has come for `QUIET_SECONDS` beyond the
  delay, or it took `LONGEST_SECONDS` in all. Frames stand for whole numbers: a number
  that ends inside of a character is held back with it.
"""

from collections.abc import Sequence

from wsserver.connections.arrivals import Arrivals
from wsserver.connections.graphemes import last_cut, looks_whole
from wsserver.connections.lens import Lens
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.entry import TEXT_KINDS, Entry

QUIET_SECONDS = 1.0
"""Beyond the delay: after that nothing that follows belongs to the last character."""

LONGEST_SECONDS = 10.0
"""Beyond the delay: no character takes longer, even of a slow model."""

MOST_BYTES = 16_384
"""More text than this is not gathered."""


class Gathering:
    """What may be sent of one log to one client.

    Attributes:
        holding: Whether nothing may be sent at the moment.
        look_at: When that changes though nothing comes, on the clock of `now`.
    """

    def __init__(
        self, log: ConversationLog, lens: Lens, delay_seconds: float, now: float
    ) -> None:
        """Begins with a replay: what is there is not gathered any more.

        Args:
            log: What is sent.
            lens: Shows it to the client.
            delay_seconds: How long text may be gathered.
            now: The time.
        """
        self.holding = False
        self.look_at = 0.0
        self._log = log
        self._lens = lens
        self._delay = delay_seconds
        self._quiet = delay_seconds + QUIET_SECONDS
        self._longest = delay_seconds + LONGEST_SECONDS
        self._arrivals = Arrivals(
            grain_seconds=delay_seconds / 8, seq=log.stored, at=now - delay_seconds
        )
        # While it holds: from when on it only waits for more to come; the text's
        # last number, an entry of it, its length.
        self._due = 0.0
        self._end = 0
        self._kind: Entry | None = None
        self._bytes = 0

    def arrived(self, now: float) -> bool:
        """Takes note of what is in the log; says whether to ask `through`.

        For every wake-up of the log. Text that adds to what is held needs nothing more.
        """
        self._arrivals.came(self._log.stored, now)
        self.holding = self.holding and self._still_holds(now)
        return not self.holding

    def through(
        self, after: int, block: Sequence[Entry], max_bytes: int, now: float
    ) -> int | None:
        """Returns up to which number may be sent.

        That is `after` where nothing may be sent now; None where what comes next,
        after the block if there is one, is not in memory.

        Args:
            after: The cursor.
            block: Entries after it that came from the store, if some did.
            max_bytes: About how much should be sent.
            now: The time; `arrived` was called with it.
        """
        if self.holding and self._still_holds(now):
            return after
        self.holding = False
        entries = block or self._log.read(after, MOST_BYTES)
        if entries is None:
            return None
        if not entries:  # there is nothing, or what there was is trimmed
            return self._log.stored
        run, followed = self._run(entries, after)
        if not run:
            return self._before_text(entries, after, max_bytes)
        return self._of_run(run, after, max_bytes, now, followed=followed)

    def _of_run(
        self,
        run: Sequence[Entry],
        after: int,
        max_bytes: int,
        now: float,
        *,
        followed: bool,
    ) -> int | None:
        size = sum([len(entry.body) for entry in run])
        end, stored = run[-1].seq, self._log.stored
        if followed and size <= max_bytes:
            return end
        if not followed and end == stored:
            return self._newest(run, size, after, max_bytes, now)
        if not followed and size < MOST_BYTES:
            # What came from the store ends here.
            more = self._log.read(end, MOST_BYTES)
            if more is None:
                return None
            if more:
                return self.through(after, [*run, *more], max_bytes, now)
            # The rest was trimmed.
        return last_cut(run, max_bytes) or end

    def _newest(
        self, run: Sequence[Entry], size: int, after: int, max_bytes: int, now: float
    ) -> int:
        """Returns the same for text that nothing follows yet."""
        since = self._arrivals.of(after + 1)
        if now < since + self._delay and size < MOST_BYTES:
            self._due = since + self._delay
            return self._hold(run, size, after, self._due)
        quiet_at = self._arrivals.newest + self._quiet
        end = run[-1].seq
        cut = last_cut(run, max_bytes)
        if cut is None and (now >= quiet_at or looks_whole(run[-1].text())):
            return end
        overdue = min(self._arrivals.older(self._longest, now), end)
        through = max(cut or after, overdue)
        if through > after:
            return through
        self._due = now
        return self._hold(run, size, after, min(quiet_at, since + self._longest))

    def _hold(self, run: Sequence[Entry], size: int, after: int, until: float) -> int:
        self.holding, self.look_at = True, until
        self._end, self._bytes, self._kind = run[-1].seq, size, run[0]
        return after

    def _still_holds(self, now: float) -> bool:
        """Looks at what came since; says whether it only adds to what is held."""
        kind = self._kind
        assert kind is not None, "it holds something"
        if now >= self.look_at:
            return False
        if now >= self._due:
            return self._end == self._log.stored
        for entry in self._log.read(self._end, MOST_BYTES) or ():
            self._bytes += len(entry.body)
            if not _belongs(entry, kind) or self._bytes >= MOST_BYTES:
                return False
            self._end = entry.seq
        return self._end == self._log.stored

    def _run(self, entries: Sequence[Entry], after: int) -> tuple[list[Entry], bool]:
        """Returns the text that comes next, and whether other things follow it.

        It is of one kind, turn and call, and not much longer than `MOST_BYTES`.
        """
        run: list[Entry] = []
        size = 0
        for entry in entries:
            if size >= MOST_BYTES:
                return run, False
            # A trim that overtakes this leaves a gap.
            goes_on = run and entry.first <= run[-1].seq + 1
            if not (
                (goes_on and _belongs(entry, run[0])) if run else self._is_text(entry)
            ):
                return run, True
            run.append(entry.part(after, entry.seq))
            size += len(run[-1].body)
        return run, False

    def _before_text(self, entries: Sequence[Entry], after: int, max_bytes: int) -> int:
        """Returns the last number before the next text, or of enough else."""
        through, size = after, 0
        for entry in entries:
            if self._is_text(entry) or size >= max_bytes:
                break
            through = entry.seq
            size += 0 if self._lens.hides(entry) else len(entry.body)
        return through

    def _is_text(self, entry: Entry) -> bool:
        return entry.kind in TEXT_KINDS and not self._lens.hides(entry)


def _belongs(entry: Entry, first: Entry) -> bool:
    """Says whether text goes on; turns have other things between them."""
    return entry.kind == first.kind and entry.attrs == first.attrs
