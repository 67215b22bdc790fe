"""While the store takes nothing: a stop is answered, and nothing is promised."""

from typing import Any

import anyio
from structlog.testing import capture_logs

from tests.connections.wire import Client, connected
from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider, says
from wsserver.log.committer import STALL_SECONDS

SOON_SECONDS = 2 * STALL_SECONDS


def endless() -> ScriptedProvider:
    return ScriptedProvider([*says("one")[:-1], anyio.Event()])


async def streaming(client: Client) -> int:
    """Starts a turn that never ends; returns its number."""
    await client.ask("open", conversation="c")
    turn = (await client.ask("send", conversation="c", content="hi"))["turn"]
    await client.frame("delta")
    return turn


async def stop(client: Client, **members: Any) -> dict[str, Any]:
    with anyio.fail_after(SOON_SECONDS):
        return await client.ask("interrupt", id="i", conversation="c", **members)


async def test_a_stop_is_answered_while_the_store_hangs() -> None:
    store, provider = FaultyStore(), endless()
    async with rig(provider, store) as r, connected(r) as client:
        turn = await streaming(client)
        gate = store.gate = anyio.Event()
        reply = await stop(client, seen_seq=turn + 1)
        assert (reply["outcome"], reply["turn"]) == ("interrupted", turn)
        assert (reply["keep_through"], reply["stored"]) == (turn + 1, False)
        assert provider.open_calls == 0, "the upstream is closed at once"
        assert not client.wire.frames, "nothing is seen that is not stored"
        gate.set()
        assert (await client.frame("cut"))["keep_through"] == turn + 1
        assert (await client.frame("done"))["reason"] == "by_client"
        again = await stop(client, seen_seq=turn + 1)
        assert (again["duplicate"], "stored" in again) == (True, False)


async def test_a_stop_is_answered_while_the_store_fails() -> None:
    store, provider = FaultyStore(), endless()
    async with rig(provider, store) as r, connected(r) as client:
        turn = await streaming(client)
        store.failing = True
        assert (await stop(client))["outcome"] == "interrupted"
        for members in ({"turn": turn}, {"send": "late"}, {"turn": 99}):
            reply = await client.ask("interrupt", conversation="c", **members)
            assert reply["ok"]
            assert reply["stored"] is False
        assert (await client.ask("close", conversation="c"))["ok"]


async def test_a_stop_does_not_wait_for_a_reply_that_waits() -> None:
    store = FaultyStore()
    async with rig(endless(), store) as r, connected(r) as client:
        await streaming(client)
        gate = store.gate = anyio.Event()
        client.say("send", id="s2", conversation="c", content="more")
        assert (await stop(client, send="s2"))["outcome"] == "dequeued"
        gate.set()
        assert (await client.frame("reply"))["re"] == "s2"


async def test_what_was_kept_and_not_sent_follows_the_reply() -> None:
    store, gate = FaultyStore(), anyio.Event()
    script = [*says("one")[:-1], gate, *says("two")[:-1], anyio.Event()]
    async with rig(ScriptedProvider(script), store) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        await client.ask("send", conversation="c", content="hi")
        await client.frame("delta")
        hangs = store.gate = anyio.Event()
        gate.set()
        await anyio.wait_all_tasks_blocked()
        assert (await stop(client, keep="generated"))["stored"] is False
        hangs.set()
        assert (await client.frame("delta"))["text"] == "two"
        assert (await client.frame("done"))["text"]["bytes"] == len("onetwo")


async def test_what_can_not_be_stored_now_is_refused_and_not_waited_for() -> None:
    store = FaultyStore()
    async with rig(endless(), store) as r, connected(r) as client:
        turn = await streaming(client)
        gate = store.gate = anyio.Event()
        fork = {"conversation": "c", "through": turn - 1, "new": "f"}
        for _ in range(2):
            for type_, members in (("open", {"conversation": "new"}), ("fork", fork)):
                with anyio.fail_after(SOON_SECONDS):
                    reply = await client.ask(type_, id=type_, **members)
                assert reply["error"]["code"] == "store_unavailable"
                assert reply["error"]["retryable"]
        gate.set()
        await r.committer.flush()
        reply = await client.ask("fork", id="fork", **fork)
        assert (reply["outcome"], reply["conversation"]) == ("created", "f")
        reply = await client.ask("open", conversation="new")
        assert reply["outcome"] == "replay"


async def test_no_prompt_is_made_of_what_has_a_hole_and_it_can_be_deleted() -> None:
    store = FaultyStore()
    provider = ScriptedProvider(says("all ", "of ", "it"))
    async with rig(provider, store) as r:
        async with connected(r) as client:
            await client.ask("open", conversation="c")
            await client.ask("send", conversation="c", content="hi")
            seq = (await client.frame("done"))["seq"]
        await r.committer.flush()
        assert r.directory.statistics() == (0, 0)
        store.spoil = lambda rows: [row for row in rows if row.first != 1]
        async with connected(r) as client:
            await client.ask("open", conversation="c", after=seq)
            with capture_logs() as lines:
                client.say("send", id="s", conversation="c", content="and?")
                done = await client.frame("done")
            assert done["status"] == "failed"
            assert len(provider.requests) == 1
            told = [
                one["error"] for one in lines if one["event"] == "history_unavailable"
            ]
            assert told == ["local/c: the store lacks number 1"]
            assert (await client.ask("delete", conversation="c"))[
                "outcome"
            ] == "deleted"


async def test_nobody_is_sent_what_the_store_gives_twice_and_it_can_be_deleted() -> (
    None
):
    store = FaultyStore()
    async with rig(ScriptedProvider(says("all ", "of ", "it")), store) as r:
        async with connected(r) as client:
            await client.ask("open", conversation="c")
            await client.ask("send", conversation="c", content="hi")
            await client.frame("done")
        await r.committer.flush()
        store.spoil = lambda rows: [*rows[:3], *rows[2:]]
        async with connected(r) as client:
            with capture_logs() as lines:
                await client.ask("open", conversation="c", after=0)
                await anyio.sleep(0.3)
            assert not client.wire.frames
            assert [line["event"] for line in lines] == ["history_unavailable"]
            reply = await client.ask("delete", conversation="c")
            assert reply["outcome"] == "deleted"


async def test_nothing_is_deleted_that_the_store_could_not_let_go() -> None:
    store = FaultyStore()
    async with rig(endless(), store) as r, connected(r) as client:
        await streaming(client)
        store.failing = True
        client.say("configure", id="k", conversation="c", config={})
        await anyio.sleep(STALL_SECONDS / 10)
        with anyio.fail_after(SOON_SECONDS):
            reply = await client.ask("delete", id="d", conversation="c")
        assert reply["error"]["code"] == "store_unavailable"
        store.failing = False
        await r.committer.flush()
        gate = store.gate = anyio.Event()
        for id_ in ("e", "e"):
            with anyio.fail_after(SOON_SECONDS):
                reply = await client.ask("delete", id=id_, conversation="c")
            assert reply["error"]["code"] == "store_unavailable", "gone, but not stored"
        with anyio.fail_after(SOON_SECONDS):
            reply = await client.ask("interrupt", conversation="c")
        assert reply["error"]["code"] == "store_unavailable"
        gate.set()
        await r.committer.flush()
        reply = await client.ask("delete", id="e", conversation="c")
        assert (reply["outcome"], reply["duplicate"]) == ("deleted", True)
        await client.ask("open", conversation="c")
        assert (await client.ask("delete", id="d", conversation="c"))["ok"]
