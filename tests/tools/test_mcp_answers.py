"""Answers of MCP servers at a URL that are not as the SDK wants them."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from tests.fakes.upstream import FakeUpstream, Reply, Request
from tests.tools.mcp_rig import call, connected, supervised, until
from wsserver.tools.mcp import server as mcp_server
from wsserver.tools.mcp.server import McpServer, NoAnswerError

TOOL = {"name": "echo", "inputSchema": {"type": "object"}}
NOTICE = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
JSON, EVENTS = "application/json", "text/event-stream"

Written = Callable[[dict[str, Any]], bytes]


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "_FIRST_DELAY_SECONDS", 0.05)


def alone(message: Any) -> bytes:
    return orjson.dumps([message])


def after_a_notice(message: Any) -> bytes:
    return orjson.dumps([NOTICE, message])


def among_others(message: dict[str, Any]) -> bytes:
    return orjson.dumps([{**message, "id": 999}, message, 3, NOTICE])


def event(written: Written) -> Written:
    def write(message: dict[str, Any]) -> bytes:
        lines = written(message).split(b"\n")
        return b"".join(b"data: %b\r\n" % line for line in lines) + b"\r\n"

    return write


class Server:
    """Answers like an MCP server of an old version, in another way of writing.

    Attributes:
        lists: How often it was asked for its tools.
        pages: What it answers, by the cursor.
        said: What its tool says.
    """

    def __init__(self, written: Written, content_type: str = JSON) -> None:
        self.lists = 0
        self.pages: Mapping[Any, Any] = {None: {"tools": [TOOL]}}
        self.said: dict[str, Any] = {"content": [{"type": "text", "text": "said"}]}
        self.written = written
        self.content_type = content_type

    def __call__(self, request: Request) -> Reply:
        if request.method != "POST":
            return Reply(status=405, framing="length", content_type=None)
        message = request.json
        if "id" not in message:
            return Reply(status=202, framing="length", content_type=None)
        body = {"jsonrpc": "2.0", "id": message["id"], **self.answer(message)}
        return Reply(body=self.written(body), content_type=self.content_type)

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        match message["method"]:
            case "initialize":
                result = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "s", "version": "1"},
                }
                return {"result": result}
            case "tools/list":
                self.lists += 1
                page = self.pages[message.get("params", {}).get("cursor")]
                return page if "error" in page else {"result": page}
            case "tools/call":
                return {"result": self.said}
            case _:
                return {"error": {"code": -32601, "message": "No method."}}


@asynccontextmanager
async def served(server: Server) -> AsyncGenerator[McpServer]:
    async with FakeUpstream() as upstream:
        upstream.script(server)
        async with connected(url=upstream.base_url) as found:
            yield found


@pytest.mark.parametrize(
    ("written", "content_type"),
    [
        (alone, JSON),
        (after_a_notice, JSON),
        (among_others, JSON),
        (event(alone), EVENTS),
        (event(after_a_notice), EVENTS),
        (event(among_others), EVENTS),
        (lambda message: b"\xef\xbb\xbf" + orjson.dumps(message), JSON),
        (lambda message: orjson.dumps({**message, "id": str(message["id"])}), JSON),
        (event(lambda m: orjson.dumps(m, option=orjson.OPT_INDENT_2)), EVENTS),
    ],
)
async def test_answers_in_other_clothes(written: Written, content_type: str) -> None:
    server = Server(written, content_type)
    with capture_logs() as lines:
        async with served(server) as found:
            assert await call(found, "echo") == "said"
    loud = [line["event"] for line in lines if line["log_level"] == "warning"]
    is_batch = b"[{" in written({"id": 1}).replace(b"data: ", b"")
    assert loud == ["mcp_batch"] * is_batch


@pytest.mark.parametrize(
    ("written", "content_type"), [(after_a_notice, JSON), (event(among_others), EVENTS)]
)
async def test_what_else_is_in_a_batch_is_not_lost(
    written: Written, content_type: str
) -> None:
    server = Server(written, content_type)
    async with served(server):
        await until(lambda: server.lists > 2)


async def test_half_a_character_costs_only_itself() -> None:
    server = Server(lambda m: orjson.dumps(m).replace(b"said", rb"sa\ud83d"))
    async with served(server) as found:
        assert await call(found, "echo") == "sa\ufffd"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"jsonrpc":"2.0","id":1,"res', "there is no answer in it"),
        (b'[{"jsonrpc":"2.0","id":1,"res', "there is no answer in it"),
        (b"{}", "there is no answer in it"),
        (b'{"id":1}', "no JSON-RPC message"),
        (b" " * (4 * 2**20 + 1), "the answer is longer than 4194304 bytes"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_at_once(
    body: bytes, why: str
) -> None:
    server = Server(orjson.dumps)
    async with served(server) as found:
        server.written = lambda message: body
        with pytest.raises(NoAnswerError) as failed:
            await call(found, "echo")
        server.written = orjson.dumps
    said = f"gave no answer (what it said is not valid: {why})"
    assert str(failed.value) == f"The MCP server 'test' {said}."


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(status=401, body=b"<html>"), "HTTP status 401: the credentials are"),
        (Reply(status=403, body=b"{", content_type=JSON), "HTTP status 403: the cred"),
        (Reply(status=500, body=b"{}", content_type=JSON), "HTTP status 500"),
        (
            Reply(
                status=400,
                body=b'[{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"So."}}]',
                content_type=JSON,
            ),
            "So.",
        ),
        (Reply(status=404, body=b"no"), "Not Found"),
    ],
)
async def test_a_status_that_is_an_error_is_named(reply: Reply, why: str) -> None:
    with capture_logs() as lines:
        async with FakeUpstream() as upstream:
            upstream.script(reply)
            async with supervised(url=upstream.base_url):
                await until(
                    lambda: any(line["event"] == "mcp_server_lost" for line in lines)
                )
    lost = next(line for line in lines if line["event"] == "mcp_server_lost")
    assert lost["why"].startswith(f"MCPError: {why}")


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ({"tools": None}, "tools: null instead of a list; taken for an empty one"),
        ({}, "page 2 is left out: what it said is not valid: tools: Field required"),
        ({"error": {"code": 1, "message": "No more."}}, "page 2 is left out: No more."),
    ],
)
async def test_a_page_that_is_of_no_use_takes_none_of_the_others_away(
    second: dict[str, Any], why: str
) -> None:
    server = Server(orjson.dumps)
    server.pages = {None: {"tools": [TOOL], "nextCursor": "2"}, "2": second}
    with capture_logs() as lines:
        async with served(server) as found:
            assert await call(found, "echo") == "said"
    faulty = [line for line in lines if line["event"] == "mcp_list_faulty"]
    assert [(line["server"], line["why"]) for line in faulty] == [("test", why)]


async def test_pages_without_end_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(dict[Any, Any]):
        def __missing__(self, cursor: Any) -> Any:
            return {"tools": [TOOL], "nextCursor": str(int(cursor or 0) + 1)}

    from wsserver.tools.mcp import session

    monkeypatch.setattr(session, "MOST_PAGES", 3)
    server = Server(orjson.dumps)
    server.pages = Endless()
    with capture_logs() as lines:
        async with served(server):
            assert server.lists == 3
    faulty = [line["why"] for line in lines if line["event"] == "mcp_list_faulty"]
    assert faulty == ["there are more than 3 pages; the rest is left out"]


async def test_a_list_that_is_none_is_told_of_and_not_asked_for_again() -> None:
    server = Server(orjson.dumps)
    server.pages = {None: {"tools": None}}
    with capture_logs() as lines:
        async with served(server) as found:
            assert list(found.names()) == []
            assert server.lists == 1
    why = "tools: null instead of a list; taken for an empty one"
    assert why in [line.get("why") for line in lines]
