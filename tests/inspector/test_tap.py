"""What passes a tap is recorded, and only what was ordered happens to it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import orjson
import pytest

from tests.connections.wire import Wire
from tests.inspector.recording import lines, recorder
from wsserver.connections.transport import TransportClosed
from wsserver.inspector.recorder import Recorder
from wsserver.inspector.records import Closed, Inbound, Opened, Outbound
from wsserver.inspector.tap import HELD_FRAMES, Tap, tapped

PING = b'{"type":"ping"}'
SEND = b'{"type":"send","id":"s1","conversation":"c","content":"Hi"}'
REPLY = b'{"type":"reply","re":"s1","ok":true,"seq":2}'
DELTA = b'{"type":"delta","conversation":"c","seq":3,"turn":2,"text":"Hello"}'
DONE = b'{"type":"done","conversation":"c","seq":4,"turn":2}'


@asynccontextmanager
async def tap() -> AsyncGenerator[tuple[Tap, Wire, Recorder]]:
    wire, written = Wire(), recorder(now=anyio.current_time)
    with anyio.fail_after(1000):
        async with tapped("c1", wire, written) as made:
            yield made, wire, written


def seen(written: Recorder, *kinds: type) -> list[dict[str, Any]]:
    return [
        {"type": line.frame["type"]} | ({"fault": line.fault} if line.fault else {})
        for line in lines(written)
        if isinstance(line, kinds or (Inbound, Outbound))
        and isinstance(line, Inbound | Outbound)
        and isinstance(line.frame, dict)
    ]


def types(frames: Any) -> list[str]:
    return [orjson.loads(frame)["type"] for frame in frames]


async def test_frames_pass_in_both_directions() -> None:
    async with tap() as (made, wire, written):
        wire.say(SEND)
        assert await made.receive() == SEND
        made.write([REPLY, DELTA])
        assert list(wire.frames) == [REPLY, DELTA]
        assert made.written_bytes == wire.written_bytes == len(REPLY) + len(DELTA)
        assert made.received_bytes == len(SEND)
        assert made.buffered_bytes() == 0
        await made.writable()
    opened, sent, reply, delta, closed = lines(written)
    assert isinstance(opened, Opened)
    assert isinstance(sent, Inbound)
    assert sent.bytes == len(SEND)
    assert sent.frame == orjson.loads(SEND) | {"content": "«2»"}
    assert isinstance(reply, Outbound)
    assert isinstance(delta, Outbound)
    assert delta.frame == orjson.loads(DELTA) | {"text": "«5»"}
    assert [line.n for line in lines(written)] == [1, 2, 3, 4, 5]
    assert isinstance(closed, Closed)


async def test_what_is_no_frame_is_recorded_by_its_size() -> None:
    async with tap() as (made, wire, written):
        wire.say(b"my password")
        assert await made.receive() == b"my password"
    line = lines(written)[1]
    assert isinstance(line, Inbound)
    assert (line.bytes, isinstance(line.frame, dict)) == (11, False)


@pytest.mark.parametrize(
    ("end", "by", "code"),
    [
        (lambda made, wire: wire.cut(1001), "client", 1001),
        (lambda made, wire: wire.cut(), "client", None),
        (lambda made, wire: wire.cut(by_peer=False), "server", None),
        (lambda made, wire: made.abort(), "server", None),
        (lambda made, wire: made.drop(), "inspector", None),
    ],
)
async def test_an_end_is_recorded_once(
    end: Callable[[Tap, Wire], None], by: str, code: int | None
) -> None:
    async with tap() as (made, wire, written):
        end(made, wire)
        if not wire.aborted:
            with pytest.raises(TransportClosed):
                await made.receive()
    ends = [line for line in lines(written) if isinstance(line, Closed)]
    assert [(line.by, line.code) for line in ends] == [(by, code)]


async def test_nothing_is_recorded_after_the_end() -> None:
    async with tap() as (made, _, written):
        made.drop()
        made.write([DELTA])
        assert seen(written) == []


async def test_each_way_can_be_slow() -> None:
    async with tap() as (made, wire, written):
        made.in_ms, made.out_ms = 300, 500
        began = anyio.current_time()
        for _ in range(3):
            wire.say(SEND)
        made.write([REPLY])
        made.write([DELTA])
        assert not wire.frames
        assert made.buffered_bytes() == len(REPLY) + len(DELTA)
        for _ in range(3):
            await made.receive()
        assert 0.29 < anyio.current_time() - began < 0.5, "together, not in turn"
        while len(wire.frames) < 2:
            await wire.changed()
        assert 0.49 < anyio.current_time() - began < 0.9
        assert types(wire.frames) == ["reply", "delta"]
    arrived, left = lines(written)[1], lines(written)[4]
    assert isinstance(arrived, Inbound)
    assert arrived.at_ms < 200, "it arrived before it was held"
    assert isinstance(left, Outbound)
    assert left.at_ms > 490, "it left after it was held"


async def test_no_frame_overtakes_one_that_is_held() -> None:
    async with tap() as (made, wire, _):
        made.out_ms = 200
        made.write([REPLY])
        made.out_ms = 0
        made.write([DELTA])
        assert not wire.frames
        while len(wire.frames) < 2:
            await wire.changed()
        assert types(wire.frames) == ["reply", "delta"]
        made.write([DONE])
        assert len(wire.frames) == 3


async def test_a_slow_way_holds_the_writer_up() -> None:
    async with tap() as (made, wire, _):
        made.out_ms = 400
        began = anyio.current_time()
        made.write([b'{"x":"%b"}' % (b"x" * 40_000)])
        await made.writable()
        assert anyio.current_time() - began > 0.39
        assert len(wire.frames) == 1


async def test_a_slow_way_does_not_read_without_end() -> None:
    async with tap() as (made, wire, _):
        made.in_ms = 60_000
        for _ in range(3 * HELD_FRAMES):
            wire.say(PING)
        for _ in range(5 * HELD_FRAMES):
            await anyio.lowlevel.checkpoint()
        assert made.received_bytes <= (HELD_FRAMES + 1) * len(PING)


async def test_what_is_held_goes_before_a_close_frame() -> None:
    async with tap() as (made, wire, _):
        made.out_ms = 60_000
        made.write([REPLY])
        await anyio.wait_all_tasks_blocked()  # the first one is waited for by now
        made.write([DELTA])
        await made.close(1012, "restart")
        assert types(wire.frames) == ["reply", "delta"]
        assert wire.closed == (1012, "restart")


async def test_the_next_command_can_come_twice() -> None:
    async with tap() as (made, wire, written):
        made.duplicate()
        for frame in (PING, SEND, SEND):
            wire.say(frame)
        got = [await made.receive() for _ in range(4)]
        assert got == [PING, SEND, SEND, SEND]
    twice = {"type": "send", "fault": "duplicated"}
    assert seen(written) == [
        {"type": "ping"}, {"type": "send"}, twice, {"type": "send"}
    ]  # fmt: skip


async def test_the_next_event_can_be_told_twice() -> None:
    async with tap() as (made, wire, written):
        made.repeat()
        made.write([REPLY, DELTA])
        made.write([DONE])
        assert types(wire.frames) == ["reply", "delta", "delta", "done"]
    assert {"type": "delta", "fault": "repeated"} in seen(written)


async def test_the_next_event_can_be_lost() -> None:
    async with tap() as (made, wire, written):
        made.lose()
        made.write([REPLY, DELTA, DONE])
        assert types(wire.frames) == ["reply", "done"]
    assert seen(written) == [
        {"type": "reply"}, {"type": "delta", "fault": "lost"}, {"type": "done"}
    ]  # fmt: skip
