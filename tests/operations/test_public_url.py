"""Visits to servers through what may stand in between, over real sockets."""

import ipaddress
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import orjson
import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from tests.fakes.proxy import Fault, proxy
from tests.fakes.server import server
from tests.fakes.serving import serving
from wsserver.operations.checks import dialogue, public_url
from wsserver.operations.checks.dialogue import judge_stream
from wsserver.operations.checks.findings import Finding
from wsserver.operations.checks.public_url import PublicUrl, visit

KEY = "0123456789abcdef"


async def visited(
    url: str, *, token: str | None = None, idle_seconds: float = 0.0
) -> dict[str, Finding]:
    """Returns the findings of a visit by what they are about."""
    findings: list[Finding] = []
    parsed = PublicUrl.parse(url)
    with anyio.fail_after(15):
        await visit(
            parsed, token=token, idle_seconds=idle_seconds, tell=findings.append
        )
    return {finding.check: finding for finding in findings}


@pytest.mark.parametrize(
    ("text", "origin", "chat"),
    [
        ("https://a.example", "https://a.example", "wss://a.example/v1/chat"),
        ("https://a.example/", "https://a.example", "wss://a.example/v1/chat"),
        ("a.example", "https://a.example", "wss://a.example/v1/chat"),
        ("http://a.example:81", "http://a.example:81", "ws://a.example:81/v1/chat"),
        ("wss://A.example/v1/chat", "https://a.example", "wss://A.example/v1/chat"),
        ("ws://[::1]:8765/x/v1/chat", "http://[::1]:8765", "ws://[::1]:8765/x/v1/chat"),
        ("https://a.example/x/", "https://a.example", "wss://a.example/x/v1/chat"),
        ("https://u:p@a.example", "https://a.example", "wss://a.example/v1/chat"),
    ],
)
def test_an_address_can_be_written_in_many_ways(
    text: str, origin: str, chat: str
) -> None:
    url = PublicUrl.parse(text)

    assert (url.origin, url.chat) == (origin, chat)


@pytest.mark.parametrize("text", ["", "ftp://a.example", "https://", "https://a:b"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        PublicUrl.parse(text)


@pytest.mark.parametrize(
    ("host", "is_here"),
    [("localhost", True), ("127.0.0.2", True), ("[::1]", True), ("a.example", False)],
)
def test_this_machine_is_known(host: str, is_here: bool) -> None:
    assert PublicUrl.parse(f"http://{host}").is_here is is_here


async def test_a_server_that_is_well(tmp_path: Path) -> None:
    async with server("--heartbeat-seconds=0.2", folder=tmp_path) as running:
        found = await visited(running.http, idle_seconds=1.0)

    assert {name: finding.status for name, finding in found.items()} == dict.fromkeys(
        ["page", "websocket", "welcome", "clock there", "streaming", "idle"], "ok"
    )
    assert "heartbeat 0.2 s" in found["welcome"].says
    heartbeats = int(found["idle"].says.split()[-1])
    assert 2 <= heartbeats <= 6


async def test_nothing_is_left_behind(tmp_path: Path) -> None:
    async with server("--store", "sqlite", folder=tmp_path) as running:
        await visited(running.http)
        await running.terminate()
        log = running.log

    assert "conversation_created" in log
    assert "conversation_deleted" in log


async def test_credentials_that_are_missing_or_wrong(tmp_path: Path) -> None:
    keys = anyio.Path(tmp_path / "keys")
    await keys.write_text(f"ann:{KEY}\n")
    await keys.chmod(0o600)
    flags = ["--auth-keys-file", str(keys), "--store", "memory"]
    async with server(*flags, folder=tmp_path) as running:
        missing = await visited(running.http)
        wrong = await visited(running.http, token="x" * 16)
        right = await visited(running.http, token=KEY)

    for found in (missing, wrong):
        assert found["welcome"].status == "fail"
        assert "--token" in (found["welcome"].remedy or "")
    assert right["streaming"].status == "ok"


async def test_a_connection_that_is_cut_in_silence(tmp_path: Path) -> None:
    """By what counts only what clients send: heartbeats do not help."""
    flags = ["--heartbeat-seconds=0.2", "--store=memory"]
    async with (
        server(*flags, folder=tmp_path) as running,
        proxy(running.url) as cutting,
    ):

        async def cut() -> None:
            while "conversation_deleted" not in running.log:  # now it is silent
                await anyio.sleep(0.05)
            await anyio.sleep(0.5)
            cutting.cut()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut)
            found = await visited(f"http://127.0.0.1:{cutting.port}", idle_seconds=9)

    assert found["idle"].status == "fail"
    assert "cut after" in found["idle"].says
    assert "counts only what the client sends" in (found["idle"].remedy or "")


async def test_a_way_on_which_nothing_goes_through_after_the_handshake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialogue, "ANSWER_SECONDS", 0.3)
    async with (
        server("--store=memory", folder=tmp_path) as running,
        proxy(running.url) as way,
    ):
        way.fault = lambda number: Fault(delay_seconds=0.5 if number == 3 else 0.0)
        found = await visited(f"http://127.0.0.1:{way.port}")

    assert found["websocket"].status == "fail"
    assert "does not answer" in found["websocket"].says


@asynccontextmanager
async def answering(**answers: tuple[int, str, str]) -> AsyncGenerator[str]:
    """Something that answers each path with a status, a type and a body.

    `chat` answers handshakes; `else_` all other paths, with 200 unless given.
    """

    def respond(connection: ServerConnection, request: Request) -> Response:
        name = {"/v1/chat": "chat", "/": "page"}.get(request.path, request.path[1:])
        status, kind, body = answers.get(name, (200, "text/html", "<p>hello"))
        headers = Headers({"Content-Type": kind, "Content-Length": str(len(body))})
        return Response(status, "Said", headers, body.encode())

    async def nobody(connection: ServerConnection) -> None:
        raise AssertionError("all handshakes are refused")

    async with serve(nobody, "127.0.0.1", 0, process_request=respond) as made:
        yield f"http://127.0.0.1:{made.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("status", "body", "remedy"),
    [
        (400, "", "Connection headers"),
        (505, "", "HTTP/1.1"),
        (426, "", "Upgrade"),
        (403, "Pages of that origin may not connect.", "Host header"),
        (421, "", "auth_keys_file"),
        (404, "", "pass all paths"),
        (503, "draining", "wait"),
        (418, "", "proxy's log"),
        (200, "", "proxy's log"),
    ],
)
async def test_a_handshake_that_is_refused(status: int, body: str, remedy: str) -> None:
    async with answering(chat=(status, "text/plain", body)) as url:
        found = await visited(url)

    assert found["page"].status == "ok"
    assert found["websocket"].status == "fail"
    assert f"refused with {status} {body}".rstrip() == found["websocket"].says
    assert remedy in (found["websocket"].remedy or "")


@pytest.mark.parametrize("status", [502, 504])
async def test_a_proxy_that_does_not_reach_the_server(status: int) -> None:
    html = (status, "text/html", "<h1>Bad Gateway</h1>")
    async with answering(healthz=html, page=html) as url:
        found = await visited(url)

    assert list(found) == ["page"], "it makes no sense to go on"
    assert f"says {status}: it does not reach" in found["page"].says


@pytest.mark.parametrize(
    ("name", "status"), [("healthz", 404), ("page", 421), ("page", 403), ("page", 599)]
)
async def test_a_page_that_is_not_there(name: str, status: int) -> None:
    async with answering(**{name: (status, "text/plain", "why")}) as url:
        found = await visited(url)

    assert found["page"].status == "fail"
    assert f"answers {status} why" in found["page"].says


async def test_a_host_that_is_not_there() -> None:
    found = await visited("http://127.0.0.1:1")

    assert list(found) == ["page"]
    assert "can't reach 127.0.0.1:1" in found["page"].says


async def test_something_that_speaks_no_http() -> None:
    async def hang_up(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.send(b"220 mail.example ESMTP\r\n")

    async with serving(hang_up) as port:
        found = await visited(f"http://127.0.0.1:{port}")
        assert found["page"].status == "fail"
        assert found["page"].remedy == (
            f"if it has TLS there, write https://127.0.0.1:{port}"
        )
        found = await visited(f"127.0.0.1:{port}")
        assert found["page"].remedy == (
            f"it has no TLS there: write http://127.0.0.1:{port}, or let the proxy have"
            " it"
        )


@pytest.mark.parametrize("from_here", [False, True])
async def test_metrics_that_others_may_read_are_a_warning(
    monkeypatch: pytest.MonkeyPatch, from_here: bool
) -> None:
    async with answering(chat=(404, "text/html", "")) as url:
        assert "metrics" not in await visited(url), "an address of this machine"
        monkeypatch.setattr(public_url.PublicUrl, "is_here", False)
        monkeypatch.setattr(ipaddress.IPv4Address, "is_loopback", from_here)
        found = await visited(url)

    assert found["metrics"].status == "warn"
    assert found["metrics"].says.startswith("anyone can read") is not from_here


@asynccontextmanager
async def stranger(
    handle: Callable[[ServerConnection], Awaitable[None]],
) -> AsyncGenerator[str]:
    """Something that accepts connections and is no wsserver; gives its URL."""

    def page(connection: ServerConnection, request: Request) -> Response | None:
        if request.path == "/v1/chat":
            return None
        return connection.respond(200, "hello")

    async with serve(
        handle,
        "127.0.0.1",
        0,
        process_request=page,
        subprotocols=["wsserver.v1"],  # pyright: ignore[reportArgumentType]
    ) as made:
        yield f"http://127.0.0.1:{made.sockets[0].getsockname()[1]}"


WELCOME = (
    b'{"type":"welcome","protocol":1,"connection":"c","heartbeat_ms":1000,"models":[],'
    b'"features":[],"server":{"name":"s","version":"0"},"limits":{"frame_bytes":1,'
    b'"conversations":1,"active_turns":1,"queued":1,"pending_tools":1,'
    b'"tool_output_bytes":1,"idempotency_s":1}}'
)


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        (["hello"], "The frame is not JSON"),
        (["[]"], "A frame must be one JSON object; got a list"),
        (["{}"], "`type` is missing"),
        ([b"\xff"], "The frame is not UTF-8"),
        (['{"type":"welcome"}'], "is missing"),
        (
            [WELCOME.decode(), '{"type":"pong","server_time":"noon"}'],
            "`server_time` is not a time in UTC",
        ),
    ],
)
async def test_what_answers_but_does_not_speak_the_protocol(
    answers: list[str | bytes], says: str
) -> None:
    async def answer(connection: ServerConnection) -> None:
        for one in answers:
            await connection.recv()
            await connection.send(one)
        await connection.wait_closed()

    async with stranger(answer) as url:
        found = await visited(url)
    finding = found["websocket"]
    assert finding.status == "fail"
    assert finding.says.startswith("what answers does not speak the protocol: ")
    assert says in finding.says
    assert finding.remedy == "does the URL lead to a wsserver, of this version?"


async def test_a_connection_that_ends_in_the_middle() -> None:
    async def welcome_and_leave(connection: ServerConnection) -> None:
        await connection.recv()
        await connection.close(1013, "full")

    async with stranger(welcome_and_leave) as url:
        found = await visited(url)

    assert found["websocket"].status == "fail"
    assert "closed in the middle (1013)" in found["websocket"].says


@pytest.mark.parametrize(
    ("lasted", "heartbeat", "code", "remedy"),
    [
        (10.0, 20.0, None, "set heartbeat_seconds below 10"),
        (60.0, 20.0, None, "counts only what the client sends"),
        (60.0, 20.0, 4508, "control frames"),
    ],
)
def test_who_cuts_is_told_by_when(
    lasted: float, heartbeat: float, code: int | None, remedy: str
) -> None:
    finding = dialogue._cut(lasted, heartbeat, code)

    assert finding.status == "fail"
    assert remedy in (finding.remedy or "")


@pytest.mark.parametrize(
    ("moments", "status"),
    [
        ([n / 60 for n in range(60)], "ok"),
        ([0.0, 0.6], "ok"),
        ([0.0, 0.4], "warn"),
        ([5.0], "warn"),
        ([], "warn"),
    ],
)
def test_an_answer_that_was_gathered_is_a_warning(
    moments: list[float], status: str
) -> None:
    assert judge_stream(moments).status == status


async def test_credentials_that_may_not_send(tmp_path: Path) -> None:
    refusal = {"code": "forbidden", "message": "You may not.", "retryable": False}

    async def refuse(connection: ServerConnection) -> None:
        async for data in connection:
            frame: dict[str, Any] = orjson.loads(data)
            answers: dict[str, dict[str, Any]] = {
                "hello": orjson.loads(WELCOME),
                "ping": {"type": "pong", "server_time": "2026-01-01T00:00:00.000Z"},
            }
            refused = {"type": "reply", "re": frame.get("id"), "ok": False}
            answer = answers.get(frame["type"], refused | {"error": refusal})
            await connection.send(orjson.dumps(answer).decode())

    def page(connection: ServerConnection, request: Request) -> Response | None:
        is_chat = request.path == "/v1/chat"
        return None if is_chat else connection.respond(200, "hello")

    async with serve(
        refuse,
        "127.0.0.1",
        0,
        process_request=page,
        subprotocols=["wsserver.v1"],  # pyright: ignore[reportArgumentType]
    ) as made:
        found = await visited(f"http://127.0.0.1:{made.sockets[0].getsockname()[1]}")

    assert found["streaming"].status == "warn"
    assert "not tried: You may not." in found["streaming"].says
    assert found["clock there"].status == "warn"
