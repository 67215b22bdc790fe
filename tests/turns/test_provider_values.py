"""What a provider may say that no event could hold ends its turn, and nothing else."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from math import inf, nan
from typing import Any

import pytest

from protocol.content import Tool
from protocol.events import TurnErrorEvent
from tests.turns.talk import talking
from wsserver.engine.model import (
    Call,
    Failure,
    Finished,
    ModelEvent,
    ModelRequest,
    Text,
    UpstreamError,
    Usage,
)
from wsserver.engine.provider import ModelStream, Sink

HALF = "half of a pair: \ud800"
ANOTHER: Any = "end_turn"  # of another API


def failure(**members: Any) -> Failure:
    given: dict[str, Any] = {"code": "upstream_error", "message": "no"}
    return Failure(retryable=False, **{**given, **members})


def refused(**members: Any) -> ModelEvent:
    raise UpstreamError(failure(**members))


def asked(**members: Any) -> Finished:
    given: dict[str, Any] = {"upstream_id": "u", "name": "look", "arguments": "{}"}
    return Finished(
        reason="tool_calls", calls=(Call(valid=True, **{**given, **members}),)
    )


def counted(count: Any) -> Finished:
    usage = Usage(input_tokens=1, output_tokens=2, cached_tokens=count)
    return Finished(reason="stop", usage=usage)


class Says:
    """A provider that says `a` and then what is made only then, as providers do."""

    def __init__(self, made: Callable[[], ModelEvent], *, at_once: bool) -> None:
        self._made = made
        self._at_once = at_once

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelStream]:
        del request
        if self._at_once:
            self._made()
        yield self

    async def pump(self, sink: Sink) -> None:
        sink([Text("a")])
        sink([self._made()])


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    "made",
    [
        lambda: refused(message=HALF),
        lambda: refused(retry_after_seconds=inf),
        lambda: refused(retry_after_seconds=nan),
        lambda: refused(retry_after_seconds=-1.0),
        lambda: Finished(reason="error", failure=failure(message=HALF)),
        lambda: Finished(reason="stop", upstream_reason=HALF),
        lambda: Finished(reason=ANOTHER),
        lambda: counted(-1),
        lambda: counted(1.5),
        lambda: counted(True),
        lambda: counted(2**53),
        lambda: counted(10**5000),
        lambda: asked(upstream_id=HALF),
        lambda: asked(name=HALF),
        lambda: asked(arguments=f'{{"a":"{HALF}"}}'),
    ],
)
async def test_it_ends_the_turn_as_internal(
    made: Callable[[], ModelEvent], at_once: bool
) -> None:
    async with talking(
        provider=Says(made, at_once=at_once), tools=[Tool(name="look")]
    ) as talk:
        talk.send()
        done = await talk.done()
        assert (done.status, done.timing.total_ms < 1000) == ("failed", True)
        [error] = [e for e in await talk.log() if isinstance(e, TurnErrorEvent)]
        assert error.code == "internal"


async def test_a_wait_of_ages_is_told_as_a_day() -> None:
    made = partial(refused, code="upstream_rate_limited", retry_after_seconds=1e306)
    async with talking(provider=Says(made, at_once=True)) as talk:
        talk.send()
        await talk.done()
        [error] = [e for e in await talk.log() if isinstance(e, TurnErrorEvent)]
        assert (error.code, error.retry_after_ms) == (made.keywords["code"], 86_400_000)


@pytest.mark.parametrize("count", [0, 2**53 - 1, None])
def test_counts_that_can_be_are_taken(count: int | None) -> None:
    assert counted(count).usage is not None
