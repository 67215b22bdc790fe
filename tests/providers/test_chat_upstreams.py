"""Every stream of the catalogue over real HTTP."""

from collections.abc import AsyncIterator

import anyio
import pytest

from tests.fakes.upstream import FakeUpstream, Reply
from tests.upstreams.catalogue import CASES, Case, check_events, check_failure
from wsserver.engine.model import (
    Finished,
    ModelEvent,
    ModelRequest,
    Text,
    UpstreamError,
)
from wsserver.providers.chat.provider import OpenAIChat, OpenAIChatSettings

REQUEST = ModelRequest(
    model="toy", messages=[{"role": "user", "content": "hi"}], request_id="r-1"
)
STALL_SECONDS = 0.3
WAIT_SECONDS = 10.0

every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@pytest.fixture(scope="module")
async def upstream() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as upstream:
        yield upstream


@pytest.fixture(scope="module")
async def provider(upstream: FakeUpstream) -> AsyncIterator[OpenAIChat]:
    provider = OpenAIChat(OpenAIChatSettings(base_url=upstream.base_url))
    yield provider
    await provider.aclose()


async def call(provider: OpenAIChat) -> list[ModelEvent]:
    events: list[ModelEvent] = []
    with anyio.fail_after(WAIT_SECONDS):
        async with provider.stream(REQUEST) as batches:
            async for batch in batches:
                events += batch
    return events


async def call_that_stalls(provider: OpenAIChat) -> list[ModelEvent]:
    """Makes a model call and stops it as a turn's timer does."""
    events: list[ModelEvent] = []
    with anyio.move_on_after(STALL_SECONDS) as timer:
        async with provider.stream(REQUEST) as batches:
            async for batch in batches:
                events += batch
    assert timer.cancelled_caught, "a stalled answer does not end"
    return events


async def check(
    case: Case, upstream: FakeUpstream, provider: OpenAIChat, *served: Reply
) -> None:
    upstream.script(*served)
    if case.first is not None:
        with pytest.raises(UpstreamError) as refused:
            await call(provider)
        failure = refused.value.failure
        assert (failure.code, failure.retryable) == ("upstream_rate_limited", True)
        assert failure.retry_after_seconds == 1.0
    if case.answer.status != 200:
        with pytest.raises(UpstreamError) as failed:
            await call(provider)
        check_failure(case, failed.value.failure)
    elif case.answer.end == "stall":
        events = await call_that_stalls(provider)
        assert not any(isinstance(event, Finished) for event in events)
        texts = [event.text for event in events if isinstance(event, Text)]
        assert "".join(texts) == case.expect.text
        with anyio.fail_after(WAIT_SECONDS):
            await upstream.requests[-1].disconnected.wait()
    else:
        check_events(case, await call(provider))


@every_case
async def test_over_http_at_its_cuts(
    case: Case, upstream: FakeUpstream, provider: OpenAIChat
) -> None:
    await check(case, upstream, provider, *case.replies())


@every_case
async def test_over_http_in_small_writes(
    case: Case, upstream: FakeUpstream, provider: OpenAIChat
) -> None:
    *first, served = case.replies()
    small = Reply(
        body=served.body,
        status=served.status,
        content_type=served.content_type,
        end=served.end,
        write_bytes=max(7, len(served.body) // 100),
    )
    await check(case, upstream, provider, *first, small)
