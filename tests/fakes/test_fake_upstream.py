"""The scripted upstream does what it says, and refuses what a strict one refuses."""

import socket
import struct
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from anyio.abc import SocketAttribute

from tests.fakes.replies import call_events, streamed, text_events
from tests.fakes.strict_messages import find_fault
from tests.fakes.upstream import FakeUpstream, Reply, Request
from tests.providers.upstream_rig import call, provider_for, refusal, request
from wsserver.engine.model import Finished, Text

USER = {"role": "user", "content": "hi"}
SAID = {"role": "assistant", "content": "hello"}


def asks(*ids: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": one, "type": "function", "function": function} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "42"}


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [{"role": "system", "content": "be kind"}, USER, SAID, USER],
        [USER, USER],
        [USER, asks("a"), result("a")],
        [USER, asks("a", "b"), result("a"), result("b"), SAID, USER],
        [USER, asks("a"), result("a"), asks("b"), result("b"), USER],
    ],
)
def test_good_messages(messages: list[Any]) -> None:
    assert find_fault(messages) is None


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        (None, "not empty"),
        ([], "not empty"),
        (["hi"], "unknown role"),
        ([USER, {"role": "clown", "content": "x"}], "unknown role"),
        ([USER, SAID], "last message"),
        ([SAID, USER], "must follow"),
        ([USER, SAID, SAID, USER], "must follow"),
        ([USER, {"role": "system", "content": "x"}], "at the start"),
        ([{"role": "user", "content": ""}], "must have content"),
        ([USER, {"role": "assistant", "content": ""}, USER], "content or tool calls"),
        ([USER, asks("a")], "without results: a"),
        ([USER, asks("a"), USER], "without results: a"),
        ([USER, asks("a", "b"), result("a"), USER], "without results: b"),
        ([USER, asks("a", "b"), result("b"), result("a")], "not the next"),
        ([USER, asks("a"), result("a"), result("a")], "not the next"),
        ([USER, result("a")], "not the next"),
        ([USER, asks("a", "a"), result("a"), result("a")], "two tool calls"),
        ([USER, asks("a"), result("a"), asks("a"), result("a")], "stood before"),
        ([USER, asks(""), result("")], "an id and a name"),
    ],
)
def test_bad_messages(messages: Any, fault: str) -> None:
    found = find_fault(messages)
    assert found is not None
    assert fault in found


async def test_a_strict_upstream_refuses_them() -> None:
    async with (
        FakeUpstream(strict=True) as upstream,
        provider_for(upstream.base_url) as provider,
    ):
        upstream.script(streamed(text_events("fine")))
        assert Text("fine") in await call(provider, request())
        failure = await refusal(provider, request(messages=[USER, asks("a")]))
    assert failure.message == "tool calls without results: a"
    assert len(upstream.requests) == 2


async def test_a_script_can_look_at_the_request() -> None:
    def answer(asked: Request) -> Reply:
        return streamed(text_events(asked.json["model"]))

    async with (
        FakeUpstream() as upstream,
        provider_for(upstream.base_url) as provider,
    ):
        upstream.script(answer)
        assert Text("toy") in await call(provider, request())


async def test_replies_come_in_order_and_the_last_one_stays() -> None:
    first = streamed(call_events({"id": "a", "name": "f", "arguments": "{}"}))
    async with (
        FakeUpstream() as upstream,
        provider_for(upstream.base_url) as provider,
    ):
        upstream.script(first, streamed(text_events("done")))
        ends = [(await call(provider, request()))[-1] for _ in range(3)]
    reasons = [end.reason for end in ends if isinstance(end, Finished)]
    assert reasons == ["tool_calls", "stop", "stop"]
    assert all(asked.answered.is_set() for asked in upstream.requests)
    assert upstream.requests[0].bytes_written == len(first.body)


def test_writes_end_where_they_should() -> None:
    reply = Reply(body=b"abcdefg", splits=[3], write_bytes=2)
    assert list(reply.writes()) == [b"ab", b"c", b"de", b"fg"]
    assert list(Reply(body=b"abc").writes()) == [b"abc"]
    assert list(Reply().writes()) == []


async def test_clients_that_hang_up_in_mid_write_trouble_nobody_else() -> None:
    body = b'{"messages":[]}'
    head = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(
        body
    )

    async def hang_up(port: int, after_seconds: float) -> None:
        client = await anyio.connect_tcp("127.0.0.1", port)
        await client.send(head + body)
        await anyio.sleep(after_seconds)
        raw = client.extra_attributes[SocketAttribute.raw_socket]()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await client.aclose()

    async with FakeUpstream() as upstream:
        upstream.script(streamed(text_events(*["x" * 2000] * 200)))
        port = urlsplit(upstream.base_url).port
        assert port is not None
        async with anyio.create_task_group() as clients:
            for number in range(200):
                clients.start_soon(hang_up, port, number % 20 / 2000)
                await anyio.sleep(0.002)
        with anyio.fail_after(5.0):
            while upstream.connections_open:
                await anyio.sleep(0.001)
