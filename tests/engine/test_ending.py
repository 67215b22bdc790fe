"""What a turn that fails says: the code, the words, whether to try again."""

from typing import Any

import pytest

from tests.engine.machine import connecting, machine
from wsserver.engine.actions import AppendDone
from wsserver.engine.answer import AnswerCheck
from wsserver.engine.ending import (
    LONGEST_MESSAGE,
    LONGEST_REASON,
    LONGEST_WAIT_SECONDS,
    UNSAID,
    error_members,
    silent,
    too_large,
    too_many_rounds,
)
from wsserver.engine.model import Failure, Finished


def unfit() -> Failure:
    check = AnswerCheck({"type": "object"})
    check.add("[")
    found = check.misfit()
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("failure", "code", "message", "retryable"),
    [
        (UNSAID, "upstream_error", "The model failed without saying why.", False),
        (
            silent(60.04),
            "upstream_timeout",
            "The model gave no token within 60 s.",
            True,
        ),
        (
            silent(0.5),
            "upstream_timeout",
            "The model gave no token within 0.5 s.",
            True,
        ),
        (
            too_large(8),
            "response_too_large",
            "The answer is longer than 8 bytes.",
            False,
        ),
        (
            too_many_rounds(3, 5, "2 times and 64 calls"),
            "too_many_tool_rounds",
            (
                "The model asked for tools 3 times (5 calls);"
                " 2 times and 64 calls are allowed in a turn."
            ),
            False,
        ),
        (
            unfit(),
            "schema_mismatch",
            "The answer does not fit the response schema: it is not JSON.",
            True,
        ),
    ],
)
def test_what_our_own_failures_say(
    failure: Failure, code: str, message: str, retryable: bool
) -> None:
    assert failure == Failure(code=code, message=message, retryable=retryable)


def told(failure: Failure | None) -> dict[str, Any]:
    """Returns the members of the `error` of a turn that ended so."""
    turn = machine()
    connecting(turn)
    end = Finished(reason="error", failure=failure)
    return turn.finished(end, 1.0, 1.0, 0.5)[1].members  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, None),
        (0.0, 0),
        (1.5, 1500),
        (LONGEST_WAIT_SECONDS, 86_400_000),
        (LONGEST_WAIT_SECONDS + 1, 86_400_000),
        (1e300, 86_400_000),
    ],
)
def test_the_error_says_what_the_upstream_said_and_a_day_at_the_most(
    seconds: float | None, shown: int | None
) -> None:
    failure = Failure(
        code="upstream_auth",
        message="no",
        retryable=False,
        retry_after_seconds=seconds,
    )
    assert told(failure) == {
        "code": "upstream_auth",
        "message": "no",
        "retryable": False,
        "retry_after_ms": shown,
    }


def test_a_failure_without_words_is_given_some() -> None:
    assert told(None)["message"] == UNSAID.message


def test_silence_is_told_in_seconds_since_the_model_was_asked() -> None:
    turn = machine()
    turn.called(30, 10.0)
    turn.time(70.0)
    error = turn.closed(71.0)[1].members  # type: ignore[union-attr]
    assert error["message"] == silent(60.0).message


def test_what_a_provider_says_is_cut_to_what_a_frame_can_hold() -> None:
    long = Failure(code="upstream_error", message="x" * 100_000, retryable=False)
    assert len(error_members(long)["message"]) == LONGEST_MESSAGE
    turn = machine()
    turn.called(10, 0.0)
    turn.connected(0.0)
    end = Finished(reason="stop", upstream_reason="x" * 100_000)
    *_, done = turn.finished(end, 0.0, 0.0, 0.5)
    assert isinstance(done, AppendDone)
    assert len(done.members["finish_reason"]) == LONGEST_REASON
