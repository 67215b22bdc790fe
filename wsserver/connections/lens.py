"""What one client sees of a log's entries: filtered, joined, as frames. Pure.

This module knows nothing of where entries come from or where frames go.
"""

from collections.abc import Iterator, Sequence

from protocol.merge import MAX_MERGED_BYTES
from wsserver.log.entry import TEXT_KINDS, Entry

HEAD_BYTES = 128
"""About what a frame adds to its text, for counting against a budget."""


class Lens:
    """One client's options for one conversation.

    Attributes:
        muted: Turns whose text is not sent.
    """

    __slots__ = (
        "_frames", "_quoted", "_tool_deltas", "muted",
    )  # fmt: skip

    def __init__(self, quoted: bytes, *, frames: bool, tool_deltas: bool) -> None:
        """Makes a lens.

        Args:
            quoted: The conversation's id as a JSON string.
            frames: Send each number by itself.
            tool_deltas: Send `tool_delta` too, else `skip` their numbers.
        """
        self.muted: set[int] = set()
        self._quoted = quoted
        self._frames = frames
        self._tool_deltas = tool_deltas

    def show(
        self,
        entries: Sequence[Entry],
        after: int,
        through: int,
        max_bytes: int,
        out: list[bytes],
    ) -> tuple[int, int]:
        """Appends the frames of `after + 1 ... through` to `out`.

        Stops when the frames reach `max_bytes`, after one at the least.

        Args:
            entries: In order. Where numbers are lacking in between, frames lack them
                too: the client is to see that.
            after: The cursor.
            through: The last number to be sent.
            max_bytes: The budget.
            out: Where frames go.

        Returns:
            The last number that the frames stand for, and their size in bytes.
        """
        if len(entries) == 1 and not self.muted:
            entry = entries[0]
            seq = entry.seq
            if entry.first == seq <= through and entry.kind != "tool_delta":
                frame = entry.frame(self._quoted)
                out.append(frame)
                return seq, len(frame)
        return self._show(entries, after, through, max_bytes, out)

    def hides(self, entry: Entry) -> bool:
        """Says whether an entry goes out as a `skip`."""
        if entry.kind not in TEXT_KINDS:
            return False
        return entry.turn in self.muted or (
            entry.kind == "tool_delta" and not self._tool_deltas
        )

    def _show(
        self,
        entries: Sequence[Entry],
        after: int,
        through: int,
        max_bytes: int,
        out: list[bytes],
    ) -> tuple[int, int]:
        size = 0
        run: list[Entry] = []  # neighbours that go out as one frame
        run_bytes = 0
        hidden = False  # whether the run goes out as a `skip`
        for entry in self._pieces(entries, after, through):
            hide = self.hides(entry)
            if run and not (
                hide == hidden
                and entry.first == after + 1
                and (hide or self._joins(run[0], run_bytes, entry))
            ):
                size += self._emit(run, hidden, out)
                run, run_bytes = [], 0
            if size + run_bytes >= max_bytes:
                break
            run.append(entry)
            run_bytes += 0 if hide else len(entry.body) + (not run_bytes) * HEAD_BYTES
            hidden = hide
            after = entry.seq
        if run:
            size += self._emit(run, hidden, out)
        return after, size

    def _pieces(
        self, entries: Sequence[Entry], after: int, through: int
    ) -> Iterator[Entry]:
        """Cuts entries to the range, and into their numbers where that is asked."""
        for whole in entries:
            if whole.first > through:
                return
            if whole.seq <= after:
                continue
            if self._frames and not self.hides(whole):
                first, last = max(whole.first, after + 1), min(whole.seq, through)
                for seq in range(first, last + 1):
                    yield whole.part(seq - 1, seq)
            else:
                yield whole.part(after, through)

    def _joins(self, first: Entry, size: int, entry: Entry) -> bool:
        return (
            not self._frames
            and entry.kind == first.kind
            and entry.turn == first.turn
            and entry.attrs == first.attrs
            and entry.kind in TEXT_KINDS
            and size + len(entry.body) <= MAX_MERGED_BYTES
        )

    def _emit(self, run: list[Entry], hidden: bool, out: list[bytes]) -> int:
        first, seq = run[0].first, run[-1].seq
        if hidden:
            frame = self._skip(first, seq)
        elif len(run) == 1:
            frame = run[0].frame(self._quoted)
        else:
            head = run[0]
            body = b"".join([entry.body for entry in run])
            joined = Entry(head.kind, first, seq, head.turn, body, head.attrs)
            frame = joined.frame(self._quoted)
        out.append(frame)
        return len(frame)

    def _skip(self, first: int, seq: int) -> bytes:
        if first == seq:
            return b'{"type":"skip","conversation":%b,"seq":%d}' % (self._quoted, seq)
        return b'{"type":"skip","conversation":%b,"first":%d,"seq":%d}' % (
            self._quoted,
            first,
            seq,
        )
