"""What a boundary around anybody's code stops, and what passes."""

import anyio
import anyio.lowlevel
import pytest

from wsserver.foreign_code import stops


class Panic(BaseException):
    """As of a library in Rust."""


def cancelled() -> BaseException:
    return anyio.get_cancelled_exc_class()()


def both(*errors: BaseException) -> BaseExceptionGroup[BaseException]:
    return BaseExceptionGroup("", errors)


@pytest.mark.parametrize(
    ("error", "stopped"),
    [
        (ValueError(), True),
        (SystemExit(2), True),
        (Panic(), True),
        (KeyboardInterrupt(), False),
        (GeneratorExit(), False),
        (both(ValueError(), Panic()), True),
        (both(ValueError(), KeyboardInterrupt()), False),
    ],
    ids=repr,
)
async def test_nothing_is_stopped_that_ends_the_process(
    error: BaseException, stopped: bool
) -> None:
    assert stops(error) is stopped


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_passes_if_a_scope_of_ours_asked_for_it() -> None:
    for error in (cancelled(), both(ValueError(), both(cancelled()))):
        assert stops(error), "nobody asked for it"
        with anyio.CancelScope() as scope:
            scope.cancel()
            passes = not stops(error)
            await anyio.lowlevel.checkpoint()
        assert passes
        with anyio.CancelScope(deadline=anyio.current_time() + 60):
            await anyio.lowlevel.checkpoint()
            assert stops(error), "not yet"
