"""The session cases of lifecycle and operations, through real sockets, by their ids."""

import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from anyio import to_thread
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.fakes.replies import DONE, delta, streamed, text_events
from tests.fakes.server import ServerProcess, server
from tests.fakes.upstream import FakeUpstream, Reply
from tests.fakes.wire import Copy, Wire, wire
from tests.whole.case import Case, begin, shown, soon


def env(upstream: FakeUpstream, **settings: object) -> dict[str, str]:
    given = {f"WSSERVER_{name.upper()}": str(value) for name, value in settings.items()}
    return {"OPENAI_BASE_URL": upstream.base_url, **given}


@pytest.mark.timeout(60)
async def test_l01_a_restart_lets_short_answers_end(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    words = ["word "] * 10

    def by_length(request: Any) -> Reply:
        pause = 0.05 if "short" in request.json["messages"][-1]["content"] else 10.0
        return streamed(
            text_events(*words), between_writes_seconds=pause, before_body_seconds=0.0
        )

    upstream.script(by_length)
    copies: dict[str, Copy] = defaultdict(Copy)
    settings = env(upstream, drain_seconds=1.5)
    async with server("--store", "sqlite", folder=tmp_path, env=settings) as running:
        async with wire(running.url, copies) as client:
            short = await begin(client, "short", "short")
            long = await begin(client, "long", "long")
            await shown(client, "short", short, "word ")
            code = await terminate(running, client)
        assert code == 0
        goaway = next(f for f in client.controls if f["type"] == "goaway")
        assert goaway["reason"] == "restart"
        assert copies["short"].dones[short]["status"] == "completed"
        assert client.close_code == 1012
        (left,) = (r for r in upstream.requests if b"long" in r.body)
        with anyio.fail_after(1):
            await left.disconnected.wait()
    async with (
        server("--store", "sqlite", folder=tmp_path, env=settings) as running,
        wire(running.url, copies) as client,
    ):
        await client.open("long")
        done = await client.done("long", long)
        assert (done["status"], done["reason"]) == ("incomplete", "server_shutdown")
        copies["long"].prove()


async def terminate(running: ServerProcess, client: Wire) -> int:
    """Ends a server while its client goes on reading; returns the exit code."""
    code = await running.terminate()
    await client.closed()
    return code


@pytest.mark.timeout(60)
async def test_l03_clients_see_a_restart(tmp_path: Path) -> None:
    codes: list[int] = []
    async with server("--store", "memory", folder=tmp_path) as running:
        ready = 0

        async def watch(number: int) -> None:
            nonlocal ready
            async with wire(running.url) as client:
                await client.open(f"c{number}")
                ready += 1
                codes.append(await client.closed())

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(watch, number)
            await soon(lambda: ready == 20)
            assert await running.terminate() == 0
    assert codes == [1012] * 20


@pytest.mark.timeout(60)
async def test_l05_l06_the_server_is_never_silent_for_long(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    """A middle box that counts data frames only sees them in both directions."""
    upstream.script(Reply(before_headers_seconds=60.0))
    settings = env(upstream, heartbeat_seconds=0.5, dead_after_seconds=2)
    async with (
        server("--store", "memory", folder=tmp_path, env=settings) as running,
        wire(running.url) as client,
    ):
        assert client.welcome["heartbeat_ms"] == 500
        await begin(client, "c")
        silences: list[float] = []
        for _ in range(8):
            began, count = anyio.current_time(), len(heartbeats(client))
            await client.until(lambda: len(heartbeats(client)) > count, 3)  # noqa: B023
            silences.append(anyio.current_time() - began)
            await client.send(type="ping")
        assert max(silences) < 1.0
        assert client.close_code is None
        assert heartbeats(client)[-1]["heads"].keys() == {"c"}
        pongs = [frame for frame in client.frames if frame["type"] == "pong"]
        assert len(pongs) >= 7, "and it answers the client's"


def heartbeats(client: Wire) -> list[Any]:
    """Returns what the server sent by itself to be heard."""
    return [frame for frame in client.frames if frame["type"] == "ping"]


async def test_l07_probes_leave_no_line(case: Case) -> None:
    before = len(case.running.log)

    def probe() -> list[int]:
        codes: list[int] = []
        for path in ("/healthz", "/readyz") * 50:
            with urllib.request.urlopen(case.running.http + path) as answer:  # noqa: S310
                codes.append(answer.status)
        return codes

    assert set(await to_thread.run_sync(probe)) == {200}
    assert case.running.log[before:] == ""


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("http://127.0.0.1.evil.example", 403),
        ("null", 403),
        ("own", 101),
        (None, 101),
    ],
)
async def test_l09_the_origin_is_checked(
    case: Case, origin: str | None, status: int
) -> None:
    origin = case.running.http if origin == "own" else origin
    headers = {} if origin is None else {"Origin": origin}
    try:
        async with connect(case.running.url, additional_headers=headers) as socket:
            await socket.send('{"type":"hello","protocol":1}')
            assert orjson.loads(await socket.recv())["type"] == "welcome"
            got = 101
    except InvalidStatus as refused:
        got = refused.response.status_code
    assert got == status


MALFORMED: dict[str, str] = {
    "": "bad_json",
    "{": "bad_json",
    "[]": "bad_json",
    "3": "bad_json",
    '"x"': "bad_json",
    "{}": "bad_frame",
    '{"type":"dance","id":"m1"}': "unknown_type",
    '{"type":"send","id":7,"conversation":"c","content":"x"}': "bad_frame",
    '{"type":"send","id":"m2","conversation":"c","content":5}': "bad_frame",
    '{"type":"open","id":"m3","conversation":"c","after":"x"}': "bad_cursor",
    '{"type":"open","id":"m4","conversation":"' + "x" * 200 + '"}': "bad_frame",
    '{"type":"ping","t":' + "[" * 5000 + "]" * 5000 + "}": "bad_frame",
    '{"type":"send","id":"m5","conversation":"c","content":"\\ud800"}': "bad_json",
}


async def test_l16_a_malformed_frame_ends_nothing(case: Case) -> None:
    name = case.name()
    pieces = [f"{n} " for n in range(60)]
    case.script(streamed(text_events(*pieces), between_writes_seconds=0.01))
    async with case.client() as client:
        turn = await begin(client, name)
        for data, code in MALFORMED.items():
            count = len(client.frames)
            await client.socket.send(data)

            def error(count: int = count) -> Any:
                for frame in client.frames[count:]:
                    if frame["type"] == "error" and "conversation" not in frame:
                        return frame
                    if frame["type"] == "reply":
                        return {**frame["error"], "re": frame["re"]}
                return None

            await client.until(error)
            assert error()["code"] == code, data[:80]
            named = orjson.loads(data) if code == "unknown_type" else {}
            assert error().get("re") == named.get("id", error().get("re"))
        done = await client.done(name, turn)
        assert done["status"] == "completed"
        assert client.copies[name].texts[turn] == "".join(pieces)


async def test_l19_time_to_first_token_is_not_that_of_the_role(case: Case) -> None:
    name = case.name()
    events = [delta(role="assistant", content=""), delta(content="now"), delta("stop")]
    case.script(
        streamed([*events, DONE], before_body_seconds=0.05, between_writes_seconds=0.4)
    )
    async with case.client() as client:
        done = await client.done(name, await begin(client, name))
    timing = done["timing"]
    assert 440 < timing["upstream_ttft_ms"] <= timing["ttft_ms"] < timing["total_ms"]
