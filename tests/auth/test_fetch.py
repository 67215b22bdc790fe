"""Fetching a document over real sockets."""

import gzip

import anyio
import pytest

from tests.fakes.upstream import FakeUpstream, Reply
from wsserver.auth import fetch as module
from wsserver.auth.fetch import fetch
from wsserver.auth.key_set import FetchError

PLACE = "/keys?secret=HUSH123"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def url(upstream: FakeUpstream) -> str:
    return upstream.base_url.removesuffix("/v1") + PLACE


async def refusal(upstream: FakeUpstream) -> str:
    with pytest.raises(FetchError) as caught:
        await fetch(url(upstream))
    text = str(caught.value)
    assert "HUSH" not in text
    assert "127.0.0.1" not in text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return text


async def test_a_document_comes_whole() -> None:
    async with FakeUpstream() as upstream:
        body = b'{"keys":[]}' * 9_000
        upstream.script(Reply(body=body, write_bytes=1_000))
        assert await fetch(url(upstream)) == body
        (request,) = upstream.requests
        assert (request.method, request.path) == ("GET", PLACE)
        assert "cookie" not in request.headers


async def test_a_document_that_unpacks_to_far_more_is_not_unpacked() -> None:
    async with FakeUpstream() as upstream:
        packed = gzip.compress(b" " * 50_000_000)
        upstream.script(Reply(body=packed, headers={"Content-Encoding": "gzip"}))
        assert "compressed" in await refusal(upstream)
        (request,) = upstream.requests
        assert request.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("status", [204, 301, 302, 404, 500])
async def test_any_other_answer_is_none(status: int) -> None:
    async with FakeUpstream() as upstream:
        upstream.script(Reply(status=status, headers={"Location": "/elsewhere"}))
        assert str(status) in await refusal(upstream)
        assert len(upstream.requests) == 1


async def test_a_document_may_be_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_DOCUMENT_BYTES", 10_000)
    async with FakeUpstream() as upstream:
        upstream.script(Reply(body=b"x" * 10_000), Reply(body=b"x" * 10_001))
        assert len(await fetch(url(upstream))) == 10_000
        assert "too long" in await refusal(upstream)


@pytest.mark.parametrize("end", ["abort", "reset"])
async def test_a_document_that_breaks_off_is_none(end: str) -> None:
    async with FakeUpstream() as upstream:
        upstream.script(Reply(body=b"half", end=end))  # pyright: ignore[reportArgumentType]
        assert "no answer" in await refusal(upstream)


async def test_nobody_there() -> None:
    async with FakeUpstream() as upstream:
        gone = upstream
    assert "no answer" in await refusal(gone)


async def test_it_can_be_left_at_any_time() -> None:
    async with FakeUpstream() as upstream:
        upstream.script(Reply(before_headers_seconds=60.0))
        with anyio.move_on_after(1.0) as left:
            await fetch(url(upstream))
        assert left.cancelled_caught
        with anyio.fail_after(2):
            await upstream.requests[0].disconnected.wait()


async def test_a_proxy_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with FakeUpstream() as proxy:
        address = proxy.base_url.removesuffix("/v1")
        monkeypatch.setenv("http_proxy", address)
        proxy.script(Reply(body=b"{}"))
        assert await fetch("http://issuer.example/keys") == b"{}"
        (request,) = proxy.requests
        assert request.path == "http://issuer.example/keys"
