"""The turn of a message that never reaches a model."""

from protocol.content import TextProof
from protocol.events import DoneEvent, StartEvent, TurnErrorEvent, UsageEvent
from wsserver.engine.conversation import Waiting
from wsserver.engine.moments import timestamp
from wsserver.engine.timing import Stopwatch
from wsserver.log.conversation_log import ConversationLog
from wsserver.turns.services import Services

NO_TEXT = TextProof(bytes=0, crc32=0)


def end_at_once(
    log: ConversationLog, waiting: Waiting, model: str, services: Services
) -> int:
    """Appends a whole turn without a model call; returns its number.

    For a message that was taken back, or whose model is no longer configured.
    """
    clock = services.clock
    now, wall = clock.now(), clock.wall()
    turn = log.head + 1
    log.append(
        StartEvent,
        turn=turn,
        message=waiting.seq,
        model=model,
        request_id=f"req_{clock.token()}",
        at=timestamp(wall),
    )
    log.append(
        UsageEvent,
        turn=turn,
        input_tokens=0,
        output_tokens=0,
        estimated=False,
        model_calls=0,
    )
    if not waiting.withdrawn:
        log.append(
            TurnErrorEvent,
            turn=turn,
            code="upstream_error",
            message=f"No upstream knows the model {model!r} any more.",
            retryable=False,
        )
    watch = Stopwatch(accepted_at=min(now, now - (wall - waiting.at)), started_at=now)
    done = log.append(
        DoneEvent,
        turn=turn,
        status="interrupted" if waiting.withdrawn else "failed",
        reason=waiting.withdrawn,
        text=NO_TEXT,
        timing=watch.timing(now, 0),
    )
    services.metrics.turn_started(model)
    services.metrics.turn_ended(model, done)
    return turn
