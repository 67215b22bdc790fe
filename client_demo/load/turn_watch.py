"""The times of one message: from its send to the end of its turn. No I/O."""

from client_demo.load.scenario import Prompt
from client_demo.load.tally import PromptTime, Tally
from protocol.events import (
    DoneEvent,
    LogEvent,
    MessageEvent,
    StartEvent,
    TextEvent,
    ToolCallEvent,
    ToolDeltaEvent,
    UsageEvent,
    first_seq,
)


class TurnWatch:
    """One message that was sent.

    Attributes:
        send: The id of its command.
        turn: Its turn's id; None before that began.
        pieces: The last numbers of the frames with text that came.
        tokens: How many numbers they stand for.
        ended_at: When its turn was over, or it was refused; None before that.
    """

    def __init__(
        self,
        send: str,
        tally: Tally,
        *,
        sent_at: float,
        late_seconds: float,
        measured: bool,
        prompt: Prompt | None,
    ) -> None:
        """Begins with the send.

        Args:
            send: The id of the command.
            tally: Where to count.
            sent_at: When it was sent.
            late_seconds: How much later that was than due.
            measured: Whether the times count.
            prompt: Where it is one of a set.
        """
        self.send = send
        self.turn: int | None = None
        self.pieces: list[int] = []
        self.tokens = 0
        self.ended_at: float | None = None
        self._tally = tally
        self._sent_at = sent_at
        self._late_seconds = late_seconds
        self._measured = measured
        self._prompt = prompt
        self._message: int | None = None
        self._first_at: float | None = None
        self._last_at: float | None = None
        self._usage: UsageEvent | None = None
        self._ttft_seconds: float | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.ended_at is not None

    def spoil(self) -> None:
        """Its times are this end's own: they do not count."""
        self._measured = False

    def lost(self) -> None:
        """The connection was lost: the next piece says nothing of the server's pace."""
        self._last_at = None

    def end(self, now: float) -> None:
        """It is over without a turn."""
        self.ended_at = now

    def take(self, event: LogEvent, now: float) -> None:
        """Takes an event of its conversation."""
        match event:
            case MessageEvent() if event.id == self.send:
                self._message = event.seq
                # It joins a turn; if that ends too soon a `start` will follow.
                self.turn = event.steers
            case StartEvent() if event.message == self._message:
                self.turn = event.turn
                self.ended_at = None
            case ToolDeltaEvent():
                pass
            case TextEvent() if event.turn == self.turn:
                self._piece(event, now)
            case ToolCallEvent() if event.turn == self.turn:
                self._began(now)
                # What comes next waits for the tool.
                self._last_at = None
            case UsageEvent() if event.turn == self.turn:
                self._usage = event
            case DoneEvent() if event.turn == self.turn and not self.over:
                self._done(event, now)
            case _:
                pass

    def _began(self, now: float) -> None:
        if self._first_at is None:
            self._first_at = now
            self._ttft_seconds = now - self._sent_at + self._late_seconds
            if self._measured:
                self._tally.first_token(self._ttft_seconds)

    def _piece(self, event: TextEvent, now: float) -> None:
        number = event.seq - first_seq(event) + 1
        self.pieces.append(event.seq)
        self.tokens += number
        self._tally.tokens(number)
        self._began(now)
        if self._last_at is not None and self._measured:
            self._tally.time("gap", now - self._last_at)
        self._last_at = now

    def _done(self, event: DoneEvent, now: float) -> None:
        self.ended_at = now
        self._tally.ended(event.status, event.reason)
        usage = self._usage
        if usage is not None:
            self._tally.count("output_tokens", usage.output_tokens)
        turn_seconds = now - self._sent_at + self._late_seconds
        tpot_seconds = self._tpot_seconds(event, now)
        if self._measured:
            self._tally.time("turn", turn_seconds)
            if event.timing.upstream_ttft_ms is not None:
                self._tally.time("upstream_ttft", event.timing.upstream_ttft_ms / 1000)
            if tpot_seconds is not None:
                self._tally.time("tpot", tpot_seconds)
        if self._prompt is not None:
            self._tally.prompts.append(
                PromptTime(
                    prompt=self._prompt.name,
                    language=self._prompt.language,
                    ttft_ms=_ms(self._ttft_seconds),
                    tpot_ms=_ms(tpot_seconds),
                    turn_ms=round(turn_seconds * 1000, 3),
                    input_tokens=usage.input_tokens if usage else 0,
                    output_tokens=usage.output_tokens if usage else 0,
                    status=event.status,
                )
            )

    def _tpot_seconds(self, event: DoneEvent, now: float) -> float | None:
        usage = self._usage
        if event.status != "completed" or usage is None or self._first_at is None:
            return None
        if usage.model_calls != 1 or usage.output_tokens < 2:
            return None
        return (now - self._first_at) / (usage.output_tokens - 1)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)
