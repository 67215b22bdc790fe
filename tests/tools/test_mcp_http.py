"""MCP servers at a URL: the SDK's own server, and some that are no servers at all."""

import gzip
from collections.abc import AsyncGenerator

import anyio
import anyio.to_thread
import httpx2
import pytest

from tests.fakes.upstream import FakeUpstream, Reply
from tests.tools.mcp_rig import call, connected, context, http_server, supervised, until
from wsserver.engine.server_tools import ToolError
from wsserver.tools.mcp import server as mcp_server
from wsserver.tools.mcp.http import http_client
from wsserver.tools.mcp.server import NoAnswerError
from wsserver.tools.mcp.stdio import MOST_MESSAGE_BYTES


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "_FIRST_DELAY_SECONDS", 0.05)


@pytest.fixture
async def upstream() -> AsyncGenerator[FakeUpstream]:
    async with FakeUpstream() as made:
        yield made


@pytest.mark.parametrize("json", [False, True], ids=["events", "json"])
async def test_tools_of_a_real_server(json: bool) -> None:
    async with http_server(json=json) as http, connected(url=http.url) as server:
        assert await call(server, "add", a=1, b=2) == "3"
        with pytest.raises(ToolError, match="weather"):
            await call(server, "weather", city="Nowhere")
        assert len(await call(server, "huge", size=2_000_000)) == 2_000_000


async def test_changes_progress_and_cancelling() -> None:
    steps: list[int] = []
    async with http_server() as http, connected(url=http.url) as server:
        progress = context(lambda: steps.append(1))
        assert await server.run("t_wait", {"seconds": 0.3}, progress) == "waited"
        assert steps
        with anyio.move_on_after(0.2) as scope:
            await call(server, "wait", seconds=60)
        assert scope.cancelled_caught
        assert await call(server, "grow") == "grown"
        await until(lambda: server.find("t_late"))
        assert await call(server, "late") == "here"


async def test_a_server_that_is_restarted_is_found_again() -> None:
    async with http_server() as http, connected(url=http.url) as server:
        await http.kill()
        with pytest.raises(ToolError):
            await call(server, "add", a=1, b=2)
        await until(lambda: not server.connected)
        assert server.find("t_add") is not None
        async with http_server(http.port):
            await until(lambda: server.connected)
            assert await call(server, "add", a=1, b=2) == "3"


async def test_a_server_that_is_not_there_yet() -> None:
    async with http_server() as http:
        await http.kill()
        async with supervised(url=http.url) as server:
            with pytest.raises(ToolError, match="can't be reached"):
                await call(server, "add", a=1, b=2)
            async with http_server(http.port):
                await until(lambda: server.connected)
                assert await call(server, "add", a=1, b=2) == "3"


@pytest.mark.parametrize("json", [False, True], ids=["events", "json"])
async def test_an_answer_that_is_too_long_is_an_error(json: bool) -> None:
    async with http_server(json=json) as http, connected(url=http.url) as server:
        with pytest.raises(NoAnswerError):
            await call(server, "huge", size=5_000_000)
        await until(lambda: server.connected)
        assert await call(server, "add", a=1, b=2) == "3"


async def test_a_server_that_goes_is_missed_without_a_call() -> None:
    async with http_server() as http, connected(url=http.url) as server:
        await http.kill()
        await until(lambda: not server.connected, seconds=3)


@pytest.mark.parametrize(
    ("headers", "body", "fault"),
    [
        ({}, b" " * (MOST_MESSAGE_BYTES + 1), "longer than"),
        ({"Content-Encoding": "gzip"}, gzip.compress(bytes(10**8)), "compressed"),
    ],
    ids=["long", "bomb"],
)
async def test_bodies_have_a_limit(
    upstream: FakeUpstream, headers: dict[str, str], body: bytes, fault: str
) -> None:
    upstream.script(Reply(body=body, content_type="text/html", headers=headers))
    client = await anyio.to_thread.run_sync(http_client, "s", None)
    async with client:
        with pytest.raises(httpx2.StreamError, match=fault):
            await client.get(upstream.base_url)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=500, body=b"no"),
        Reply(status=200, body=b"<html>", content_type="text/html"),
        Reply(status=200, body=b"{", content_type="application/json"),
        Reply(
            status=200,
            body=b"{}",
            content_type="application/json",
            headers={"Content-Encoding": "gzip"},
        ),
        Reply(body=b"data: {}\n\n", end="abort"),
    ],
    ids=["500", "html", "half", "gzip", "abort"],
)
async def test_what_is_no_mcp_server(upstream: FakeUpstream, reply: Reply) -> None:
    upstream.script(reply)
    async with supervised(url=upstream.base_url, token="s3cret") as server:  # noqa: S106
        requests = await upstream.wait_for_requests(4)
        assert not server.connected
        assert requests[0].headers["authorization"] == "Bearer s3cret"
        with pytest.raises(ToolError, match="can't be reached"):
            await call(server, "add", a=1, b=2)
