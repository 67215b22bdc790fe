"""What goes wrong on the way to an upstream, and back."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from anyio.lowlevel import checkpoint

from tests.fakes.replies import delta, event, json_reply, streamed, text_events, usage
from tests.fakes.serving import serving
from tests.fakes.upstream import FakeUpstream, Reply
from tests.providers.upstream_rig import (
    WAIT_SECONDS,
    provider_for,
    refusal,
    request,
    rig,
)
from wsserver.engine.model import Failure, Finished, ModelEvent, Text, Usage
from wsserver.providers.chat import provider
from wsserver.providers.chat.provider import OpenAIChat, OpenAIChatSettings
from wsserver.providers.http import transport

PART = text_events("so", " far")[:3]


def outcome(events: list[ModelEvent]) -> tuple[str, str]:
    """Returns the text and the reason."""
    last = events[-1]
    assert isinstance(last, Finished)
    text = "".join(one.text for one in events if isinstance(one, Text))
    return text, last.reason


@asynccontextmanager
async def bare_server(says: bytes) -> AsyncGenerator[str]:
    """A server that says the same to everybody and hangs up; gives its base URL."""

    async def serve(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            if says:
                await stream.send(says)

    async with serving(serve) as port:
        yield f"http://127.0.0.1:{port}/v1"


async def failure_at(base_url: str, **settings: object) -> Failure:
    async with provider_for(base_url, **settings) as provider:
        return await refusal(provider, request())


async def test_nobody_listens() -> None:
    async with FakeUpstream() as gone:
        base_url = gone.base_url
    failure = await failure_at(base_url)
    assert (failure.code, failure.retryable) == ("upstream_unavailable", True)
    assert failure.upstream_code == "ConnectionRefusedError"
    assert "127.0.0.1" not in failure.message


async def test_a_name_that_nobody_knows() -> None:
    failure = await failure_at("http://no-such-name.invalid/v1")
    assert (failure.code, failure.retryable) == ("upstream_unavailable", True)
    assert "no-such-name" not in failure.message


@pytest.mark.parametrize(
    "base_url",
    [
        "ftp://host/v1",
        "http://[::bad/v1",
        "http://host:x/v1",
        "/v1",
        "http:",
        "http://host/v1?a=b",
        "http://host/v1#a",
    ],
)
def test_an_address_that_is_none(base_url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        OpenAIChat(OpenAIChatSettings(base_url=base_url))


async def test_a_handshake_that_takes_too_long() -> None:
    async with FakeUpstream(accepts=False) as upstream:
        base_url = upstream.base_url.replace("http:", "https:")
        failure = await failure_at(base_url, connect_timeout_seconds=0.2)
    assert (failure.code, failure.retryable) == ("upstream_timeout", True)


async def test_no_tls_where_it_should_be() -> None:
    async with bare_server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as base_url:
        failure = await failure_at(base_url.replace("http:", "https:"))
    assert failure.code == "upstream_unavailable"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"", "upstream_unavailable"),
        (b"HTTP/1.1 200 OK\r\nContent-", "upstream_unavailable"),
        (b"220 mail.example ESMTP\r\n", "upstream_error"),
    ],
)
async def test_what_is_no_answer(answer: bytes, code: str) -> None:
    async with bare_server(answer) as base_url:
        failure = await failure_at(base_url)
    assert (failure.code, failure.retryable) == (code, True)


@pytest.mark.parametrize("end", ["abort", "reset"])
@pytest.mark.parametrize("is_busy", [False, True])
async def test_a_connection_that_breaks_in_mid_answer(end: str, is_busy: bool) -> None:
    """What came before it broke is kept, also if nobody was reading just then."""
    events: list[ModelEvent] = []
    async with rig() as it:
        it.upstream.script(streamed(PART, end=end))
        with anyio.fail_after(WAIT_SECONDS):
            async with it.provider.stream(request()) as batches:
                while is_busy and it.upstream.connections_open:
                    await checkpoint()
                for _ in range(20 if is_busy else 0):
                    await checkpoint()
                async for batch in batches:
                    events += batch
    assert outcome(events) == ("so far", "incomplete")


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
async def test_all_framings(framing: str) -> None:
    async with rig() as it:
        reply = Reply(body=b"".join(text_events("a")), framing=framing)  # type: ignore[arg-type]
        assert outcome(await it.call(reply)) == ("a", "stop")


async def test_a_length_that_is_not_reached() -> None:
    async with rig() as it:
        reply = streamed(PART, framing="length", headers={"X": "y"})
        short = Reply(
            body=reply.body,
            framing="close",
            headers={"Content-Length": str(len(reply.body) + 1)},
        )
        assert outcome(await it.call(short)) == ("so far", "incomplete")


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br"])
async def test_an_answer_that_nobody_here_can_unpack(encoding: str) -> None:
    async with rig() as it:
        reply = Reply(body=b"\x8b\x02", headers={"Content-Encoding": encoding})
        failure = await it.refusal(reply)
        assert (failure.code, failure.retryable) == ("upstream_error", False)
        assert f"({encoding})" in failure.message
        plain = streamed(text_events("a"), headers={"Content-Encoding": "Identity"})
        assert outcome(await it.call(plain)) == ("a", "stop")


async def test_an_empty_answer() -> None:
    async with rig() as it:
        assert outcome(await it.call(Reply(status=204, framing="close"))) == (
            "",
            "incomplete",
        )


async def test_a_redirect_is_not_followed() -> None:
    async with rig() as it:
        headers = {"Location": "http://127.0.0.1:1/"}
        failure = await it.refusal(Reply(status=307, headers=headers))
    assert (failure.code, failure.retryable) == ("upstream_error", False)
    assert len(it.upstream.requests) == 1


async def test_retry_after() -> None:
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    date = format_datetime(in_an_hour.replace(microsecond=0), usegmt=True)
    async with rig() as it:
        plain = await it.refusal(Reply(status=429, headers={"Retry-After": "7"}))
        milliseconds = await it.refusal(
            Reply(status=503, headers={"retry-after-ms": "1500"})
        )
        until = await it.refusal(Reply(status=503, headers={"Retry-After": date}))
    assert plain.retry_after_seconds == 7.0
    assert milliseconds.retry_after_seconds == 1.5
    assert until.retry_after_seconds is not None
    assert 3000 < until.retry_after_seconds <= 3600


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (json_reply({"error": {"message": "busy"}}, 503), "busy"),
        (json_reply({"detail": "no such model"}, 404), "no such model"),
        (Reply(status=502, body=b"<html><title>Bad Gateway</title>"), "Bad Gateway"),
        (Reply(status=500, body=b"plain words"), "plain words"),
        (Reply(status=500, body=b""), "HTTP status 500"),
        (
            Reply(status=500, body=b'{"error":', end="abort"),
            "HTTP status 500; its explanation was cut off.",
        ),
        (Reply(status=500, body=b"\xff"), "\ufffd"),
        (Reply(status=500, body=b"\x89PNG\r\n\x1a\n\0\0"), "HTTP status 500"),
        (
            Reply(status=500, body=b"\x8b\x02hi", headers={"Content-Encoding": "br"}),
            "HTTP status 500",
        ),
    ],
)
async def test_error_bodies(reply: Reply, message: str) -> None:
    async with rig() as it:
        assert (await it.refusal(reply)).message == message


@pytest.mark.parametrize("end", ["clean", "abort", "reset", "stall"])
@pytest.mark.parametrize("rest", [b"", b' {"' * 4_000_000], ids=["cut", "10 MB"])
async def test_a_refusal_that_is_cut_off_shows_no_json_and_no_key(
    end: Any, rest: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "_FINAL_BODY_SECONDS", 0.2)
    body = b'{"error": {"code": "invalid_api_key", "message": "Wrong key: sk-0123'
    async with rig(api_key="sk-0123456789") as it:
        reply = Reply(status=401, body=body + rest, write_bytes=1 << 16, end=end)
        failure = await it.refusal(reply)
    after = "HTTP status 401; its explanation was cut off, after: Wrong key: "
    assert failure.code == "upstream_auth"
    assert failure.upstream_code == "invalid_api_key"
    assert failure.message.startswith(after)
    if not rest:
        assert failure.message == f"{after}***"


async def test_an_error_body_is_read_within_bounds() -> None:
    size = 64 << 20
    async with rig() as it:
        reply = Reply(status=500, body=b"x" * size, write_bytes=1 << 16)
        failure = await it.refusal(reply)
        (asked,) = it.upstream.requests
        with anyio.fail_after(WAIT_SECONDS):
            await asked.disconnected.wait()
    assert set(failure.message) == {"x"}
    assert asked.bytes_written < size


@pytest.mark.parametrize(
    ("status", "patience"),
    [
        (400, "_FINAL_BODY_SECONDS"),
        (404, "_FINAL_BODY_SECONDS"),
        (429, "_RETRIED_BODY_SECONDS"),
        (500, "_RETRIED_BODY_SECONDS"),
        (503, "_RETRIED_BODY_SECONDS"),
    ],
)
@pytest.mark.parametrize("drips", [False, True])
async def test_an_error_body_that_does_not_end(
    monkeypatch: pytest.MonkeyPatch, status: int, patience: str, drips: bool
) -> None:
    """Where a retry follows nobody waits for it as long as where none does."""
    assert transport._RETRIED_BODY_SECONDS <= transport._FINAL_BODY_SECONDS / 5
    for name in ("_FINAL_BODY_SECONDS", "_RETRIED_BODY_SECONDS"):
        monkeypatch.setattr(transport, name, 3600.0)
    monkeypatch.setattr(transport, patience, 0.1)
    body = b"busy" + b" " * 1000 * drips
    drip = {"write_bytes": 4, "between_writes_seconds": 0.03} if drips else {}
    async with rig() as it:
        reply = Reply(status=status, body=body, end="stall", **drip)
        failure = await it.refusal(reply)
    # On a busy machine nothing of it may have come in that time.
    assert failure.message in {"busy", f"HTTP status {status}"}
    assert failure.retryable is (patience == "_RETRIED_BODY_SECONDS")


ERROR = event({"error": {"message": "busy", "code": 503}})


async def test_after_an_error_reading_goes_on_to_the_end() -> None:
    async with rig() as it:
        events = await it.call(streamed([delta(content="a"), ERROR, usage(3, 4)]))
    assert outcome(events) == ("a", "error")
    assert isinstance(events[-1], Finished)
    assert events[-1].usage == Usage(input_tokens=3, output_tokens=4)


async def test_after_an_error_silence_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provider, "_ERROR_SECONDS", 0.1)
    async with rig() as it:
        events = await it.call(streamed([delta(content="a"), ERROR], end="stall"))
    assert outcome(events) == ("a", "error")


async def test_after_an_error_chatter_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provider, "_ERROR_SECONDS", 0.2)
    async with rig() as it:
        reply = streamed([ERROR, *[b": ping\n\n"] * 500], between_writes_seconds=0.02)
        events = await it.call(reply)
    assert outcome(events) == ("", "error")
