"""The session cases of resume and order, through real sockets, by their ids."""

import os
import random
import signal
from collections import defaultdict
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from websockets.asyncio.client import connect

from tests.fakes.replies import call_events, delta, streamed, text_events
from tests.fakes.server import server
from tests.fakes.upstream import FakeUpstream, Reply
from tests.fakes.wire import Copy, Frame, wire
from tests.whole.case import LOOK, Case, answer, asked, begin, history, kinds, shown

STREAM = [f"token {n} € " for n in range(60)]


def stream(seconds: float = 0.01) -> Reply:
    return streamed(text_events(*STREAM), between_writes_seconds=seconds)


async def test_r01_resumed_twice_without_waiting(case: Case) -> None:
    name = case.name()
    case.script(stream())
    async with case.client() as client:
        turn = await begin(client, name)
        await client.done(name, turn)
        head, epoch = client.copies[name].last, client.copies[name].epoch
    frames: list[Frame] = []
    async with connect(case.running.url, subprotocols=["wsserver.v1"]) as raw:  # type: ignore[list-item]
        await raw.send('{"type":"hello","protocol":1}')
        for id_ in ("a", "b"):
            cursor = {"conversation": name, "after": 5, "epoch": epoch}
            await raw.send(orjson.dumps({"type": "open", "id": id_, **cursor}).decode())
        with anyio.fail_after(5):
            while [f["type"] for f in frames].count("caught_up") < 1:
                frames.append(orjson.loads(await raw.recv()))
        await raw.send('{"type":"ping","t":"end"}')
        with anyio.fail_after(5):
            while frames[-1]["type"] != "pong":
                frames.append(orjson.loads(await raw.recv()))
    replies = [f["re"] for f in frames if f["type"] == "reply"]
    assert replies == ["a", "b"]
    at = next(n for n, f in enumerate(frames) if f.get("re") == "b")
    last = 5
    for event in (f for f in frames[at:] if "seq" in f and f["type"] != "caught_up"):
        assert event.get("first", event["seq"]) == last + 1, "each number once"
        last = event["seq"]
    assert last == head


async def test_r02_a_refresh_in_the_middle_shows_it_from_the_start(case: Case) -> None:
    name = case.name()
    case.script(stream())
    async with case.client() as first:
        turn = await begin(first, name)
        await shown(first, name, turn, "".join(STREAM[:20]))
        async with case.client() as second:
            await second.open(name)
            await second.done(name, turn)
            assert second.copies[name].texts[turn] == "".join(STREAM)
            second.copies[name].prove()


async def test_r03_the_tail_after_a_short_drop(case: Case) -> None:
    name = case.name()
    case.script(stream())
    copies: dict[str, Copy] = defaultdict(Copy)
    async with case.client(copies) as client:
        turn = await begin(client, name)
        await shown(client, name, turn, "".join(STREAM[:30]))
    await (await case.request(1)).answered.wait()
    missed = copies[name].last
    async with case.client(copies) as client:
        reply = await client.open(name)
        assert reply["outcome"] == "replay"
        done = await client.done(name, turn)
    assert done["status"] == "completed"
    assert done["seq"] > missed
    assert copies[name].texts[turn] == "".join(STREAM)
    copies[name].prove()


async def test_r04_what_is_over_is_answered_once(case: Case) -> None:
    name = case.name()
    case.script(streamed(text_events("all")))
    copies: dict[str, Copy] = defaultdict(Copy)
    async with case.client(copies) as client:
        await client.done(name, await begin(client, name))
    async with case.client(copies) as client:
        reply = await client.open(name)
        assert (reply["outcome"], reply.get("turn")) == ("replay", None)
        assert reply["head"] == copies[name].last
        unknown = await client.command(
            "open", conversation="case-unknown", after=3, epoch="e"
        )
        assert unknown["error"]["code"] == "conversation_not_found"
        ahead = await client.command(
            "open", conversation=name, after=999, epoch=copies[name].epoch
        )
        assert (ahead["outcome"], ahead["reason"]) == ("reset", "seq_ahead")
        await client.until(lambda: client.copies[name].dones)
        count = len(client.frames)
        await anyio.sleep(0.3)
        assert len(client.frames) == count, "nothing more is said"


async def test_r06_a_cursor_older_than_what_is_kept(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    env = {"OPENAI_BASE_URL": upstream.base_url, "WSSERVER_RETENTION_BYTES": "2000"}
    upstream.script(streamed(text_events(*STREAM)))
    copies: dict[str, Copy] = defaultdict(Copy)
    async with server("--store", "sqlite", folder=tmp_path, env=env) as running:
        async with wire(running.url, copies) as client:
            await client.done("c", await begin(client, "c"))
        old = copies["c"]
        for _ in range(8):
            async with wire(running.url) as other:
                await other.open("c")
                await other.done("c", await begin(other, "c"))
        await anyio.sleep(
            0.1
        )  # nobody watches: it leaves memory, and is trimmed when loaded
        async with wire(running.url, copies) as client:
            reply = await client.open("c")
            assert (reply["outcome"], reply["reason"]) == ("reset", "expired")
            assert reply["oldest"] > old.last
            newest = copies["c"]
            await client.until(lambda: newest.last == reply["head"])
            assert newest.texts[max(newest.dones)] == "".join(STREAM)
            newest.prove()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("keeps", [True, False], ids=["kept", "lost"])
async def test_r08_numbers_after_a_restart(
    keeps: bool, upstream: FakeUpstream, tmp_path: Path
) -> None:
    env = {"OPENAI_BASE_URL": upstream.base_url}
    store = f"sqlite:{tmp_path / 'log.db'}"
    upstream.script(streamed(text_events("one", "two")))
    copies: dict[str, Copy] = defaultdict(Copy)
    async with server("--store", store, folder=tmp_path, env=env) as running:
        async with wire(running.url, copies) as client:
            await client.done("c", await begin(client, "c"))
        await running.kill()
    if not keeps:
        for file in await _files(tmp_path):
            await file.unlink()
    async with server("--store", store, folder=tmp_path, env=env) as running:
        async with wire(running.url) as other:
            await other.open("c")
            turn = await begin(other, "c", "again")
            await other.done("c", turn)
        async with wire(running.url, copies) as client:
            reply = await client.open("c")
            outcome = ("replay", None) if keeps else ("reset", "epoch_changed")
            assert (reply["outcome"], reply.get("reason")) == outcome
            await client.done("c", turn)
            copy = copies["c"]
            assert copy.texts[turn] == "onetwo", "no token is lost"
            assert len(copy.dones) == (2 if keeps else 1)
            copy.prove()


async def _files(folder: Path) -> list[anyio.Path]:
    return [file async for file in anyio.Path(folder).glob("log.db*")]


async def test_r09_live_never_overtakes_the_replay(case: Case) -> None:
    chance = random.Random(9)
    name = case.name()
    config = {"model": "demo/long:tokens=1500,tokens_per_second=1500"}
    async with case.client() as writer:
        turn = await begin(writer, name, **config)
        watched: list[dict[str, Copy]] = []
        for _ in range(25):
            copies: dict[str, Copy] = defaultdict(Copy)
            async with case.client(copies) as reader:
                await reader.open(name)  # `Copy` holds that numbers rise by one
                await anyio.sleep(chance.uniform(0.0, 0.03))
            watched.append(copies)
        await writer.done(name, turn)
        for copies in watched:
            async with case.client(copies) as reader:
                await reader.open(name)
                await reader.done(name, turn)
            copies[name].prove()


@pytest.mark.timeout(60)
async def test_r12_no_turn_streams_for_ever_after_a_crash(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    env = {"OPENAI_BASE_URL": upstream.base_url}
    upstream.script(streamed(text_events("part ", "two")[:2], end="stall"))
    async with (
        server("--store", "sqlite", folder=tmp_path, env=env) as running,
        wire(running.url) as client,
    ):
        turn = await begin(client, "c")
        await shown(client, "c", turn, "part ")
        await running.kill()
    upstream.script(streamed(text_events("works")))
    async with (
        server("--store", "sqlite", folder=tmp_path, env=env) as running,
        wire(running.url) as client,
    ):
        reply = await client.open("c")
        assert reply.get("turn") is None, "nothing runs"
        done = await client.done("c", turn)
        assert (done["status"], done["reason"]) == ("incomplete", "server_restarted")
        assert client.copies["c"].texts[turn] == "part "
        turn = await begin(client, "c", "again")
        assert (await client.done("c", turn))["status"] == "completed"


async def test_r14_five_conversations_keep_apart(case: Case) -> None:
    names = [case.name() for _ in range(5)]

    def own(request: Any) -> Reply:
        said = request.json["messages"][-1]["content"]
        return streamed(
            text_events(*[f"{said}-{n} " for n in range(40)]),
            between_writes_seconds=0.002,
        )

    case.script(own)
    async with case.client() as client:
        turns = [await begin(client, name, name) for name in names]
        for name, turn in zip(names, turns, strict=True):
            await client.done(name, turn)
            text = "".join(f"{name}-{n} " for n in range(40))
            assert client.copies[name].texts[turn] == text


async def test_r15_in_order_whatever_holds_the_server_up(case: Case) -> None:
    names = [case.name() for _ in range(3)]
    case.script(stream(0.005))
    async with case.client() as client:
        turns = [await begin(client, name) for name in names]
        for _ in range(3):
            os.kill(case.running.pid, signal.SIGSTOP)
            await anyio.sleep(0.3)
            os.kill(case.running.pid, signal.SIGCONT)
            await anyio.sleep(0.05)
        for name, turn in zip(names, turns, strict=True):
            await client.done(name, turn)
            assert client.copies[name].texts[turn] == "".join(STREAM)


@pytest.mark.timeout(60)
async def test_r18_a_disconnect_is_not_a_cancel(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    env = {
        "OPENAI_BASE_URL": upstream.base_url,
        "WSSERVER_DETACH_GRACE_SECONDS": "1.5",
    }
    copies: dict[str, Copy] = defaultdict(Copy)
    async with server("--store", "memory", folder=tmp_path, env=env) as running:
        upstream.script(stream(0.02))
        async with wire(running.url, copies) as client:
            turn = await begin(client, "back")
            await shown(client, "back", turn, "".join(STREAM[:10]))
        await anyio.sleep(0.2)
        async with wire(running.url, copies) as client:
            await client.open("back")
            assert (await client.done("back", turn))["status"] == "completed"
            assert copies["back"].texts[turn] == "".join(STREAM)
        upstream.script(stream(0.1))
        async with wire(running.url, copies) as client:
            turn = await begin(client, "away")
            await shown(client, "away", turn, STREAM[0])
        left = anyio.current_time()
        with anyio.fail_after(5):
            await upstream.requests[-1].disconnected.wait()
        assert anyio.current_time() - left > 1.4
        async with wire(running.url, copies) as client:
            await client.open("away")
            done = await client.done("away", turn)
            assert (done["status"], done["reason"]) == ("interrupted", "abandoned")
            assert "".join(STREAM).startswith(copies["away"].texts[turn])
            assert copies["away"].texts[turn], "what was said is kept"


async def test_r19_any_number_is_a_place_to_resume(case: Case) -> None:
    name = case.name()
    calls = call_events({"id": "u", "name": "look", "arguments": '{"at":"sea"}'})
    thinking = [delta(reasoning_content="hm "), delta(reasoning_content="so")]
    asks = [
        calls[0],
        *thinking,
        delta(content="let me "),
        delta(content="see"),
        *calls[1:],
    ]
    case.script(streamed(asks), streamed(text_events("it is ", "blue")))
    async with case.client() as client:
        config = {"tools": [LOOK]}
        await client.open(name, config=config, handles=["look"], view="frames")
        turn = await begin(client, name)
        (request,) = await asked(client, 1)
        await answer(client, name, request["call"], output="blue")
        await client.done(name, turn)
        whole = client.copies[name]
    assert {"reasoning", "delta", "tool_call", "tool_result"} <= set(kinds(whole))
    assert all("first" not in e for e in whole.events if "text" in e)
    for after in range(whole.last):
        copies: dict[str, Copy] = defaultdict(Copy)
        for event in numbers(whole.events)[:after]:
            copies[name].add(event)
        copies[name].epoch = whole.epoch
        async with case.client(copies) as client:
            assert (await client.open(name))["outcome"] == "replay"
            await client.done(name, turn)
            copies[name].prove()
            assert copies[name].texts == whole.texts
            assert copies[name].last == whole.last


def numbers(events: list[Frame]) -> list[Frame]:
    """Returns one event for each number, also of those that were skipped at once."""
    return [
        {**{key: value for key, value in event.items() if key != "first"}, "seq": seq}
        for event in events
        for seq in range(event.get("first", event["seq"]), event["seq"] + 1)
    ]


async def test_r20_what_was_shown_is_not_tried_again(case: Case) -> None:
    name = case.name()
    five = text_events("1", "2", "3", "4", "5")[:6]
    case.script(streamed(five, end="reset"), streamed(text_events("12345678")))
    async with case.client() as client:
        turn = await begin(client, name)
        done = await client.done(name, turn)
        assert done["status"] in ("incomplete", "failed")
        assert client.copies[name].texts[turn] == "12345"
    assert len(case.requests) == 1
    again = await history(case, name)
    assert again.texts[turn] == "12345"
