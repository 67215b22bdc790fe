"""What a turn measures: times to first token, between tokens, in tools, in all.

Times are seconds of one monotonic clock, passed in; results are milliseconds.
The first token is the first non-empty fragment of content, reasoning, refusal or
call, counted from when the message was in the log. Time per output token leaves
out the time between model calls, so tools do not count as slow tokens.
"""

from protocol.content import Timing
from protocol.events import DoneEvent, UsageEvent

LUMP_TOKENS = 16
LUMP_WAIT_MS = 250.0
LUMP_TOKEN_MS = 0.1
"""No model makes 10,000 tokens a second: what comes so fast was gathered."""


class Stopwatch:
    """Collects one turn's times."""

    __slots__ = (
        "_accepted_at", "_call_first_at", "_call_last_at", "_called_at",
        "_calls_with_tokens", "_first_at", "_started_at", "_stopped_at", "_streamed",
        "_tools", "_tools_since", "_upstream_ttft",
    )  # fmt: skip

    def __init__(self, *, accepted_at: float, started_at: float) -> None:
        self._accepted_at = accepted_at
        self._started_at = started_at
        self._called_at = started_at
        self._first_at: float | None = None
        self._upstream_ttft: float | None = None
        self._call_first_at: float | None = None
        self._call_last_at = 0.0
        self._streamed = 0.0
        self._calls_with_tokens = 0
        self._tools_since: float | None = None
        self._tools = 0.0
        self._stopped_at: float | None = None

    def called(self, now: float) -> None:
        """A request goes to the model."""
        self._called_at = now

    def token(self, now: float) -> None:
        """A fragment with content arrived."""
        self._call_last_at = now
        if self._call_first_at is None:
            self._call_first_at = now
            self._calls_with_tokens += 1
            if self._first_at is None:
                self._first_at = now
                self._upstream_ttft = now - self._called_at

    def call_ended(self) -> None:
        """The model call is over."""
        if self._call_first_at is not None:
            self._streamed += self._call_last_at - self._call_first_at
            self._call_first_at = None

    def tools_began(self, now: float) -> None:
        """The turn waits for tools from now on."""
        self._tools_since = now

    def tools_ended(self, now: float) -> None:
        """All calls of the batch have settled."""
        if self._tools_since is not None:
            self._tools += now - self._tools_since
            self._tools_since = None

    def stopped(self, now: float) -> None:
        """An interrupt came."""
        self._stopped_at = now

    @property
    def first_token_seconds(self) -> float | None:
        """Time to first token, None while there is none."""
        return None if self._first_at is None else self._first_at - self._accepted_at

    def timing(self, now: float, output_tokens: int) -> Timing:
        """Returns the `done` event's member; the turn ends now."""
        self.call_ended()
        self.tools_ended(now)
        steps = output_tokens - self._calls_with_tokens
        tpot = self._streamed / steps if steps > 0 and self._streamed > 0 else None
        return Timing(
            queue_ms=_ms(self._started_at - self._accepted_at),
            upstream_ttft_ms=_optional_ms(self._upstream_ttft),
            ttft_ms=_optional_ms(self.first_token_seconds),
            tpot_ms=_optional_ms(tpot),
            tokens_per_s=None if tpot is None else round(1 / tpot, 2),
            tool_ms=_ms(self._tools) if self._tools else None,
            total_ms=_ms(now - self._accepted_at),
            stop_ms=None if self._stopped_at is None else _ms(now - self._stopped_at),
        )


def in_one_lump(done: DoneEvent, usage: UsageEvent) -> bool:
    """Whether a complete answer's first token came when the last one did.

    Then a proxy or a compression between here and the model holds tokens back. Of
    answers that are short, or came soon, nothing can be said.
    """
    timing, tokens = done.timing, usage.output_tokens - (usage.reasoning_tokens or 0)
    wait_ms = timing.upstream_ttft_ms
    if done.status != "completed" or wait_ms is None:
        return False
    if wait_ms < LUMP_WAIT_MS or tokens < LUMP_TOKENS:
        return False
    streamed_ms = (timing.tpot_ms or 0.0) * (usage.output_tokens - 1)
    return streamed_ms <= tokens * LUMP_TOKEN_MS


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _optional_ms(seconds: float | None) -> float | None:
    return None if seconds is None else _ms(seconds)
