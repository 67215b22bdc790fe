"""Counts what clients get; nothing more, for they share the machine with the relay."""

import asyncio
import re
import time

from tests.bench.mock_upstream import CHUNK_TEXT

_STAMP_BYTES = 17
_TOKEN = CHUNK_TEXT.encode()
_find_stamps = re.compile(rb"@(\d{16})").findall


class Tally:
    """What the clients of a run got, together.

    Attributes:
        tokens: Pieces of text, however many a frame holds.
        frames: Text frames, or reads where there are no frames.
        delays_us: Microseconds from the mock upstream's stamp to the client, of each
            stamped token.
        started: Streams whose first token is there.
        ended: Streams that came to their end.
        all_started: Set with the first token of the last stream.
        all_ended: Set with the last end.
    """

    def __init__(self, streams: int, *, stamped: bool = False) -> None:
        self.streams = streams
        self.stamped = stamped
        self.tokens = 0
        self.frames = 0
        self.delays_us: list[int] = []
        self.started = 0
        self.ended = 0
        self.all_started = asyncio.Event()
        self.all_ended = asyncio.Event()

    def on_start(self) -> None:
        """Counts a stream's first token."""
        self.started += 1
        if self.started == self.streams:
            self.all_started.set()

    def on_end(self) -> None:
        """Counts a stream's end."""
        self.ended += 1
        if self.ended == self.streams:
            self.all_ended.set()


class Answer:
    """One stream's tokens.

    Attributes:
        tokens: How many came so far.
        carried_bytes: Of a read, what may be the begin of a token that was split.
    """

    def __init__(self, tally: Tally) -> None:
        self.tokens = 0
        self.carried_bytes = (_STAMP_BYTES if tally.stamped else len(_TOKEN)) - 1
        self._tally = tally

    def feed(self, text: bytes) -> None:
        """Takes in a frame, or a read with what was carried over from the last one."""
        tally = self._tally
        tally.frames += 1
        if tally.stamped:
            stamps = _find_stamps(text)
            count = len(stamps)
            now = time.monotonic_ns() // 1000
            for stamp in stamps:
                tally.delays_us.append(now - int(stamp))
        else:
            count = text.count(_TOKEN)
        if count:
            tally.tokens += count
            if not self.tokens:
                tally.on_start()
            self.tokens += count

    def end(self) -> None:
        """Notes that the stream came to its end."""
        self._tally.on_end()
