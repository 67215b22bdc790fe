"""The turn of a message that never reaches a model."""

from protocol.content import TextProof
from protocol.events import DoneEvent, StartEvent, TurnErrorEvent, UsageEvent
from wsserver.engine.conversation import Waiting
from wsserver.engine.ending import error_members
from wsserver.engine.model import Failure
from wsserver.engine.moments import timestamp
from wsserver.engine.timing import Stopwatch
from wsserver.log.conversation_log import ConversationLog
from wsserver.turns.services import Services
from wsserver.turns.turn_report import TurnReport

NO_TEXT = TextProof(bytes=0, crc32=0)


def end_at_once(
    log: ConversationLog,
    waiting: Waiting,
    report: TurnReport,
    services: Services,
    failure: Failure | None,
) -> int:
    """Appends a whole turn without a model call; returns its number.

    Args:
        log: The conversation's log.
        waiting: The message.
        report: Tells operators of it.
        services: What conversations share.
        failure: Why it can't be answered; None for a message that was taken back.
    """
    clock = services.clock
    now, wall = clock.now(), clock.wall()
    turn = log.head + 1
    log.append(
        StartEvent,
        turn=turn,
        message=waiting.seq,
        model=report.model,
        request_id=report.request,
        at=timestamp(wall),
    )
    report.started()
    log.append(
        UsageEvent,
        turn=turn,
        input_tokens=0,
        output_tokens=0,
        estimated=False,
        model_calls=0,
    )
    if failure is not None:
        report.failed(log.append(TurnErrorEvent, turn=turn, **error_members(failure)))
    watch = Stopwatch(accepted_at=min(now, now - (wall - waiting.at)), started_at=now)
    done = log.append(
        DoneEvent,
        turn=turn,
        status="interrupted" if failure is None else "failed",
        reason=waiting.withdrawn if failure is None else None,
        text=NO_TEXT,
        timing=watch.timing(now, 0),
    )
    report.ended(done)
    return turn
