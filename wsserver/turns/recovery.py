"""What a crash or a defect left open is ended: every `start` gets its one `done`."""

from collections.abc import Iterable

import msgspec

from protocol.content import Timing
from protocol.events import (
    DoneEvent,
    MessageEvent,
    StartEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnErrorEvent,
    UsageEvent,
)
from wsserver.engine.conversation import ConversationState
from wsserver.engine.ending import Ending, error_members, stopped
from wsserver.engine.moments import wall_of
from wsserver.engine.timing import Stopwatch
from wsserver.engine.usage import BYTES_PER_TOKEN
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.entry import TEXT_KINDS, Entry
from wsserver.turns.kept_text import cut_through, proof
from wsserver.turns.services import Services
from wsserver.turns.turn_report import TurnReport

_start = msgspec.json.Decoder(StartEvent).decode
_result = msgspec.json.Decoder(ToolResultEvent).decode
_call = msgspec.json.Decoder(ToolCallEvent).decode
_message = msgspec.json.Decoder(MessageEvent).decode


class _Left:
    """What a turn that was cut off has left in the log.

    Attributes:
        open_calls: Calls that were not settled, in call order.
        output_tokens: An estimate.
        kinds: What there is of it.
        start: Its first event; None where a store has lost it.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.open_calls: list[str] = []
        self.output_tokens = 0
        self.start: StartEvent | None = None
        self.kinds: set[str] = set()
        self._batches = 0
        tokens = size = 0
        for entry in entries:
            self.kinds.add(entry.kind)
            if entry.kind in TEXT_KINDS:
                tokens += entry.seq - entry.first + 1
                size += len(entry.body)
            else:
                self._take(entry)
        self.output_tokens = max(tokens, -(-size // BYTES_PER_TOKEN))

    @property
    def model_calls(self) -> int:
        """How many there were: the next one begins as the last result comes in."""
        return self._batches + (not self.open_calls)

    def _take(self, entry: Entry) -> None:
        match entry.kind:
            case "start":
                self.start = _start(entry.body)
            case "tool_call":
                call = _call(entry.body)
                self.open_calls.append(call.call)
                self._batches = call.batch + 1
            case "tool_result":
                result = _result(entry.body)
                if result.invalid is not None:
                    self._batches = result.invalid.batch + 1
                elif result.call in self.open_calls:
                    self.open_calls.remove(result.call)
            case _:
                pass


def recover(log: ConversationLog, state: ConversationState, services: Services) -> bool:
    """Ends the turn that was running when the process died, if one was.

    The log's tail has to hold the turn. Returns whether there was one.
    """
    if state.running:
        note = "The call was cancelled: the server was restarted."
        end_by_log(log, state, services, stopped("server_restarted"), note)
        return True
    return False


def end_by_log(
    log: ConversationLog,
    state: ConversationState,
    services: Services,
    how: Ending,
    note: str = "The call was cancelled before it gave a result.",
    report: TurnReport | None = None,
) -> None:
    """Appends what the running turn lacks of its end, and ends it in the state.

    After a crash neither its usage nor its done is there: they are written in one commit,
    with the state in which no turn runs.

    Args:
        log: The conversation's log, whose tail holds the turn.
        state: The conversation's snapshot.
        services: What conversations share.
        how: What its `done` says, unless it is there.
        note: The output of the calls that have none.
        report: Tells operators of it; None where the turn began in another process.
    """
    turn = state.running
    entries = [entry for entry in log.tail(turn) if entry.turn == turn]
    left = _Left(entries)
    start = left.start
    if "done" not in left.kinds:
        report = report or TurnReport(
            services.metrics,
            key=log.key,
            turn=turn,
            request=start.request_id if start else "",
            model=start.model if start else "",
        )
        for call in left.open_calls:
            log.append(
                ToolResultEvent,
                turn=turn,
                call=call,
                status="cancelled",
                output=note,
                by="server",
            )
        if "usage" not in left.kinds:
            log.append(
                UsageEvent,
                turn=turn,
                input_tokens=state.asked_tokens,
                output_tokens=left.output_tokens,
                estimated=True,
                model_calls=left.model_calls,
            )
        failure = how.failure
        if failure is not None and "error" not in left.kinds:
            error = log.append(TurnErrorEvent, turn=turn, **error_members(failure))
            report.failed(error)
        through = cut_through(entries, turn)
        kept = proof(entries, turn, log.head if through is None else through)
        done = log.append(
            DoneEvent,
            turn=turn,
            status=how.status,
            reason=how.reason,
            text=kept,
            timing=_timing(log, start, services.clock.wall()),
        )
        report.ended(done)
    state.running = state.asked_tokens = 0
    log.compact_soon()


def _timing(log: ConversationLog, start: StartEvent | None, wall: float) -> Timing:
    """Returns what the log tells of a turn's times; how fast its tokens came it does not."""
    started_at = accepted_at = wall
    if start is not None:
        started_at = accepted_at = wall_of(start.at)
        for entry in log.tail(start.message)[:1]:  # another where it is trimmed
            if entry.seq == start.message:
                accepted_at = min(started_at, wall_of(_message(entry.body).at))
    return Stopwatch(accepted_at=accepted_at, started_at=started_at).timing(
        max(wall, started_at), 0
    )
