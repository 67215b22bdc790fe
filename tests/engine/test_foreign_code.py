"""What a boundary around anybody's code stops, and what passes."""

import pytest

from wsserver.engine.foreign_code import stops


class Cancelled(BaseException):
    """As an event loop tells a task."""


class Panic(BaseException):
    """As of a library in Rust."""


def both(*errors: BaseException) -> BaseExceptionGroup[BaseException]:
    return BaseExceptionGroup("", errors)


@pytest.mark.parametrize(
    ("error", "stopped"),
    [
        (ValueError(), True),
        (SystemExit(2), True),
        (Panic(), True),
        (Cancelled(), False),
        (KeyboardInterrupt(), False),
        (GeneratorExit(), False),
        (both(ValueError(), Panic()), True),
        (both(ValueError(), KeyboardInterrupt()), False),
        (both(both(Cancelled()), ValueError()), False),
    ],
    ids=repr,
)
def test_nothing_is_stopped_that_ends_a_task_or_the_process(
    error: BaseException, stopped: bool
) -> None:
    assert stops(error, Cancelled) is stopped
