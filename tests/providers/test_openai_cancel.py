"""Stopping a model call in every phase, and what it leaves behind: nothing."""

from collections.abc import Callable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.fakes.replies import DONE, delta, streamed, text_events
from tests.fakes.upstream import FakeUpstream, Reply
from tests.providers.upstream_rig import WAIT_SECONDS, Rig, provider_for, request, rig
from wsserver.engine.model import Finished, ModelEvent, Text
from wsserver.providers.chat.provider import OpenAIChat

ANSWER = streamed(text_events("a", "b"))
STOP_SECONDS = 3.0


async def read_all(provider: OpenAIChat, events: list[ModelEvent]) -> None:
    async with provider.stream(request()) as batches:
        async for batch in batches:
            events += batch


async def check_stops(it: Rig, is_there: Callable[[list[ModelEvent]], bool]) -> None:
    """Cancels a call once `is_there`, then looks at both ends, then calls again."""
    events: list[ModelEvent] = []
    await it.provider.warm_up()
    async with anyio.create_task_group() as group:
        group.start_soon(read_all, it.provider, events)
        with anyio.fail_after(WAIT_SECONDS):
            while not is_there(events):
                await checkpoint()
        at = anyio.current_time()
        group.cancel_scope.cancel()
    assert anyio.current_time() - at < STOP_SECONDS
    with anyio.fail_after(STOP_SECONDS):
        for asked in it.upstream.requests:
            await asked.disconnected.wait()
        while it.upstream.connections_open:
            await checkpoint()
    assert not any(isinstance(event, Finished) for event in events)
    after = await it.call(ANSWER)
    assert isinstance(after[-1], Finished)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(before_headers_seconds=60.0),
        Reply(before_body_seconds=60.0),
        Reply(end="stall"),
        streamed(text_events("a")[:1], end="stall"),
        streamed([b": ping\n\n"] * 3, end="stall"),
        streamed([delta(content="a"), b"data: {"], end="stall"),
    ],
)
async def test_while_nothing_is_there_yet(reply: Reply) -> None:
    async with rig(pool_size=1) as it:
        it.upstream.script(reply)
        await check_stops(it, lambda _: bool(it.upstream.requests))


async def test_while_it_streams() -> None:
    async with rig(pool_size=1) as it:
        pieces = [delta(content="x")] * 2000
        it.upstream.script(streamed(pieces, between_writes_seconds=0.001))
        await check_stops(it, lambda events: len(events) > 5)
        asked = it.upstream.requests[0]
        assert asked.bytes_written < len(pieces[0]) * 1000


async def test_while_the_upstream_reports_an_error() -> None:
    async with rig(pool_size=1) as it:
        error = b'data: {"error":{"message":"busy"}}\n\n'
        it.upstream.script(streamed([delta(content="a"), error], end="stall"))
        await check_stops(it, lambda events: len(events) > 0)


async def test_while_an_error_body_is_read() -> None:
    async with rig(pool_size=1) as it:
        it.upstream.script(Reply(status=500, body=b"busy", end="stall"))
        await check_stops(
            it, lambda _: any(r.bytes_written for r in it.upstream.requests)
        )


async def test_while_nobody_accepts() -> None:
    async with (
        FakeUpstream(accepts=False) as upstream,
        provider_for(upstream.base_url) as provider,
    ):
        with anyio.move_on_after(0.2) as scope, anyio.fail_after(WAIT_SECONDS):
            await read_all(provider, [])
        assert scope.cancelled_caught


async def test_while_it_waits_for_others() -> None:
    """A place that falls free goes to who waits, not to who went away."""
    async with rig(pool_size=1) as it, anyio.create_task_group() as group:
        hold = anyio.Event()
        it.upstream.script(
            streamed(text_events("first"), hold=hold), streamed(text_events("next"))
        )
        first: list[ModelEvent] = []
        third: list[ModelEvent] = []
        leaving = anyio.CancelScope()

        async def leave() -> None:
            with leaving:
                await read_all(it.provider, [])

        group.start_soon(read_all, it.provider, first)
        await it.upstream.wait_for_requests(1)
        group.start_soon(leave)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(read_all, it.provider, third)
        await anyio.wait_all_tasks_blocked()
        hold.set()
        while not any(isinstance(event, Finished) for event in first):
            await checkpoint()
        leaving.cancel()
        with anyio.fail_after(WAIT_SECONDS):
            while not third:
                await checkpoint()
        assert Text("next") in third


async def test_as_many_calls_at_a_time_as_there_are_places() -> None:
    async with rig(pool_size=3) as it, anyio.create_task_group() as group:
        hold = anyio.Event()
        it.upstream.script(streamed(text_events("a"), hold=hold))
        for _ in range(8):
            group.start_soon(read_all, it.provider, [])
        await it.upstream.wait_for_requests(3)
        for _ in range(200):
            await checkpoint()
        assert len(it.upstream.requests) == 3
        hold.set()
    assert len(it.upstream.requests) == 8
    assert it.upstream.connections_opened == 3


@pytest.mark.parametrize("offset", range(4))
async def test_anywhere_and_twice_in_a_row(offset: int) -> None:
    """Cancelled after any number of steps of the loop, no connection is left."""
    pieces = streamed([delta(content="x")] * 20)
    async with rig(pool_size=2) as it:
        it.upstream.script(pieces)
        await it.provider.warm_up()
        for steps in range(offset, 120, 4):
            async with (
                anyio.create_task_group() as outer,
                anyio.create_task_group() as inner,
            ):
                inner.start_soon(read_all, it.provider, [])
                for _ in range(steps):
                    await checkpoint()
                inner.cancel_scope.cancel()
                outer.cancel_scope.cancel()
        after = [await it.call(ANSWER) for _ in range(3)]
        assert all(isinstance(events[-1], Finished) for events in after)
        with anyio.fail_after(STOP_SECONDS):
            while it.upstream.connections_open > 1:
                await checkpoint()


async def test_leaving_early_closes_the_connection() -> None:
    async with rig(pool_size=1) as it:
        it.upstream.script(streamed([delta(content="x")] * 3, end="stall"))
        async with it.provider.stream(request()) as batches:
            await anext(batches)
        with anyio.fail_after(STOP_SECONDS):
            await it.upstream.requests[0].disconnected.wait()
        await it.call(ANSWER)


async def test_an_error_of_the_reader_closes_the_connection() -> None:
    async with rig(pool_size=1) as it:
        it.upstream.script(streamed([delta(content="x")] * 3, end="stall"))
        with pytest.raises(ZeroDivisionError):
            async with it.provider.stream(request()):
                _ = 1 / 0
        with anyio.fail_after(STOP_SECONDS):
            await it.upstream.requests[0].disconnected.wait()
        await it.call(ANSWER)


@pytest.mark.parametrize("write_bytes", [None, 50])
@pytest.mark.parametrize("before_end_seconds", [0.0, 0.02])
async def test_an_answer_read_to_its_end_leaves_its_connection(
    write_bytes: int | None, before_end_seconds: float
) -> None:
    reply = Reply(
        body=b"".join(text_events("a", "b")),
        write_bytes=write_bytes,
        before_end_seconds=before_end_seconds,
    )
    async with rig() as it:
        for _ in range(5):
            await it.call(reply)
    assert it.upstream.connections_opened == 1


async def test_a_refusal_leaves_its_connection() -> None:
    async with rig() as it:
        for _ in range(3):
            await it.refusal(Reply(status=429, body=b"busy"))
    assert it.upstream.connections_opened == 1


async def test_the_end_is_told_at_once_although_the_body_goes_on() -> None:
    async with rig() as it:
        it.upstream.script(streamed([*text_events("a"), DONE], end="stall"))
        with anyio.fail_after(STOP_SECONDS):
            async with it.provider.stream(request()) as batches:
                events = [event async for batch in batches for event in batch]
                assert isinstance(events[-1], Finished)
                assert not it.upstream.requests[0].disconnected.is_set()
            await it.upstream.requests[0].disconnected.wait()


async def test_each_read_is_a_batch_also_without_content() -> None:
    async with rig() as it:
        it.upstream.script(streamed([b": ping\n\n", b": ping\n\n", *text_events("a")]))
        async with it.provider.stream(request()) as batches:
            sizes = [len(batch) async for batch in batches]
    assert sizes[0] == 0
    assert sizes[-1] == 1
