"""How a turn ends, and the words for it."""

from typing import Any, assert_never

from msgspec import Struct

from protocol.codes import ERRORS
from protocol.events import Reason, Status, TurnErrorEvent, UsageEvent
from wsserver.engine.actions import Action, Append, AppendDone
from wsserver.engine.model import Failure, FinishReason
from wsserver.engine.timing import Stopwatch
from wsserver.engine.usage import Tally

LONGEST_WAIT_SECONDS = 86_400.0
"""What a client is told to wait at the most; by then it has to ask again anyway."""

LONGEST_MESSAGE = 4_000
LONGEST_REASON = 256
"""Of what a provider says, in characters; more is cut, as a frame has to hold it."""

_INTERRUPTS = frozenset({"by_client", "abandoned", "superseded"})


class Ending(Struct, frozen=True, kw_only=True):
    """What the turn's `done` will say.

    Attributes:
        status: Of the `done`.
        reason: Of the `done`.
        finish_reason: The upstream's own word, if it gave one.
        failure: What the turn's `error` will say; with status `failed` only.
    """

    status: Status
    reason: Reason | None = None
    finish_reason: str | None = None
    failure: Failure | None = None


def stopped(reason: Reason) -> Ending:
    """Returns the ending of a turn that was stopped before its time."""
    status: Status = "interrupted" if reason in _INTERRUPTS else "incomplete"
    return Ending(status=status, reason=reason)


def failed(failure: Failure) -> Ending:
    """Returns the ending of a turn that can't go on."""
    return Ending(status="failed", failure=failure)


def finished(
    reason: FinishReason, upstream_reason: str | None, failure: Failure | None
) -> Ending:
    """Returns the ending of a turn whose last model call ended so."""
    match reason:
        case "stop" | "tool_calls":
            return Ending(status="completed", finish_reason=upstream_reason)
        case "length":
            why: Reason = "max_output_tokens"
        case "content_filter":
            why = "content_filter"
        case "incomplete":
            why = "upstream_truncated"
        case "error":
            return failed(failure or UNSAID)
        case _:
            assert_never(reason)
    return Ending(status="incomplete", reason=why, finish_reason=upstream_reason)


def closing(ending: Ending, tally: Tally, watch: Stopwatch, now: float) -> list[Action]:
    """Returns the last events of a turn: its usage, its error, its done."""
    actions: list[Action] = [Append(UsageEvent, tally.members())]
    if ending.failure is not None:
        actions.append(Append(TurnErrorEvent, error_members(ending.failure)))
    done = {
        "status": ending.status,
        "reason": ending.reason,
        "finish_reason": ending.finish_reason and ending.finish_reason[:LONGEST_REASON],
        "timing": watch.timing(now, tally.output_tokens),
    }
    return [*actions, AppendDone(done)]


def error_members(failure: Failure) -> dict[str, Any]:
    """Returns what a turn's `error` event says of a failure."""
    seconds = failure.retry_after_seconds
    return {
        "code": failure.code if failure.code in ERRORS else "upstream_error",
        "message": failure.message[:LONGEST_MESSAGE],
        "retryable": failure.retryable,
        "retry_after_ms": None
        if seconds is None
        else int(min(seconds, LONGEST_WAIT_SECONDS) * 1000),
    }


# What is wrong when the provider does not say it

UNSAID = Failure(
    code="upstream_error",
    message="The model failed without saying why.",
    retryable=False,
)

DEFECT = Failure(
    code="internal",
    message="The server failed while it ran the turn.",
    retryable=True,
)


def unknown_model(model: str) -> Failure:
    """No upstream has the model any more that the conversation was set to."""
    return Failure(
        code="upstream_error",
        message=f"No upstream knows the model {model!r} any more.",
        retryable=False,
    )


def silent(seconds: float) -> Failure:
    """The model gave no token for so long."""
    return Failure(
        code="upstream_timeout",
        message=f"The model gave no token within {round(seconds, 1):g} s.",
        retryable=True,
    )


def too_large(most_bytes: int) -> Failure:
    """The answer is longer than this."""
    return Failure(
        code="response_too_large",
        message=f"The answer is longer than {most_bytes} bytes.",
        retryable=False,
    )


def too_many_rounds(rounds: int, calls: int, most: str) -> Failure:
    """The model asked for tools too often; `most` says what is allowed."""
    return Failure(
        code="too_many_tool_rounds",
        message=f"The model asked for tools {rounds} times ({calls} calls);"
        f" {most} are allowed in a turn.",
        retryable=False,
    )
