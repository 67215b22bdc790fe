"""Who sends more than is good: slowed down, refused, and only then ended."""

from typing import Any

import anyio
import msgspec
import pytest

from tests.connections.journal import GatedDisk, settle
from tests.connections.wire import SETTINGS, connected, limited
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider, says


def server(*texts: str, **members: Any) -> Any:
    return rig(ScriptedProvider(says(*(texts or ("Hello",)))), **members)


async def test_more_than_a_hundred_bad_frames() -> None:
    async with server() as r, connected(r) as client:
        for _ in range(100):
            client.wire.say(b"{")
        client.say("ping")
        await client.frame("pong")
        client.wire.say(b"{")
        assert (await client.ended())[0] == 4400


async def test_a_flood_is_slowed_then_ended() -> None:
    async with (
        server() as r,
        connected(r) as client,
        connected(r, name="conn2") as other,
    ):
        await settle()
        for n in range(10_000):
            client.say("close", id=f"{n}", conversation="c")
        assert (await client.ended())[0] == 4529
        replies = [
            msgspec.json.decode(frame)
            for frame in client.wire.frames
            if b"reply" in frame
        ]
        refused = [frame["error"] for frame in replies if not frame["ok"]]
        assert 450 < len(replies) - len(refused) < 600
        assert {error["code"] for error in refused} == {"rate_limited"}
        assert refused[0]["retryable"]
        assert refused[0]["retry_after_ms"] >= 1
        assert (await other.ask("open", conversation="c"))["ok"]


async def test_acknowledgements_count_and_are_never_refused() -> None:
    settings = limited(frames_burst=5, frames_per_second=1)
    async with server() as r, connected(r, settings=settings) as client:
        await client.ask("open", conversation="c")
        await client.frame("caught_up")
        for _ in range(60):
            client.say("ack", conversation="c", seq=0)
        client.say("close", id="close", conversation="c")
        reply = await client.frame()
        assert reply["error"]["code"] == "rate_limited"
        assert reply["error"]["retry_after_ms"] > 500
        assert not client.wire.over


async def test_a_client_that_asks_and_does_not_read() -> None:
    settings = msgspec.structs.replace(SETTINGS, slow_after_seconds=0.2)
    async with server() as r, connected(r, settings=settings) as client:
        client.wire.stall()
        written = client.wire.written_bytes
        for _ in range(40):
            client.say("ping", t="x" * 100_000)
        assert (await client.ended())[0] == 4513
        assert client.wire.written_bytes - written < 2 * 2**20


async def test_a_client_that_asks_faster_than_it_reads_is_answered_in_its_time() -> (
    None
):
    settings = msgspec.structs.replace(SETTINGS, slow_after_seconds=0.2)
    async with server() as r, connected(r, settings=settings) as client:
        client.wire.stall()
        for n in range(40):
            client.say("ping", t=f"{n}" + "x" * 120_000)
        pongs: list[str] = []
        while len(pongs) < 40:
            await settle()
            assert client.wire.buffered_bytes() < 2 * 2**20
            assert len(client.wire._inbox) + len(pongs) >= 40 - 20, "no more is read"
            client.wire.drain(121_000)
            while client.wire.frames:
                pongs.append((await client.frame("pong"))["t"])
        assert [pong.rstrip("x") for pong in pongs] == [f"{n}" for n in range(40)]
        assert not client.wire.over


async def test_a_flood_leaves_the_others_their_turn() -> None:
    settings = limited(frames_burst=10_000)
    async with server() as r, connected(r, settings=settings) as client:
        for _ in range(900):
            client.say("ping")
        turns = 0
        while client.wire._inbox:
            turns += 1
            await anyio.lowlevel.checkpoint()
        assert turns > 10


async def test_what_is_asked_for_at_once_and_read_is_no_fault() -> None:
    async with server() as r, connected(r) as client:
        for _ in range(100):
            client.say("ping", t="x" * 100_000)
            await client.frame("pong")
        assert not client.wire.over


async def test_too_many_replies_wait_for_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wsserver.connections.dispatch.MAX_HELD", 3)
    disk = GatedDisk()
    async with server(store=disk) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        gate = disk.hold()
        for n in range(6):
            client.say("configure", id=f"{n}", conversation="c", config={})
        replies = [await client.frame("reply") for _ in range(3)]
        gate.set()
        replies += [await client.frame("reply") for _ in range(3)]
        codes = {reply["re"]: reply.get("error", {}).get("code") for reply in replies}
        assert codes == {
            **dict.fromkeys("012"),
            **dict.fromkeys("345", "store_unavailable"),
        }
