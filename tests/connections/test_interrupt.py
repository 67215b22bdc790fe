"""What an interrupt lets through on the connection that sent it."""

from typing import Any

import anyio
from msgspec import convert

from protocol.events import LogEvent
from protocol.fold import ConversationView
from tests.connections.journal import Disk, numbers, settle, text
from tests.connections.wire import Client, connected
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider, says
from wsserver.engine.model import Call, CallFragment, Finished, Reasoning, Text

TOOLS = {"tools": [{"name": "t"}]}


def endless(*texts: str) -> ScriptedProvider:
    """Says the texts and then nothing, for as long as it may."""
    return ScriptedProvider([*says(*texts)[:-1], anyio.Event()])


async def started(client: Client, **members: Any) -> None:
    await client.ask("open", conversation="c", **members)
    await client.ask("send", conversation="c", content="hi")


async def test_after_the_reply_there_is_no_text_of_the_turn() -> None:
    gate = anyio.Event()
    script = [[Text("seen")], gate, [Reasoning("hm"), Text("unseen")], anyio.Event()]
    async with rig(ScriptedProvider(script)) as r, connected(r) as client:
        await started(client)
        assert (await client.frame("delta"))["text"] == "seen"
        client.wire.stall()
        gate.set()
        client.say("ping")  # fills the way, so that what comes now is not sent yet
        await settle()
        client.say("interrupt", id="i", conversation="c", keep="none")
        await settle()
        client.wire.flow()
        assert (await client.frame("reply"))["outcome"] == "interrupted"
        frames: list[dict[str, Any]] = []
        while not frames or frames[-1]["type"] != "done":
            frames.append(await client.frame())
        assert text(frames) == ""
        assert frames[-1]["text"]["bytes"] == 0


async def test_a_client_far_behind_gets_no_text_after_the_reply() -> None:
    words = ["x" * 1000] * 300
    async with rig(endless(*words)) as r, connected(r) as client:
        client.wire.stall()
        client.say("open", id="o", conversation="c")
        client.say("send", id="s", conversation="c", content="hi")
        for _ in range(40):
            await settle()
        client.say("interrupt", id="i", conversation="c")
        await settle()
        client.wire.flow()
        before: list[dict[str, Any]] = []
        while not before or before[-1].get("re") != "i":
            before.append(await client.frame())
        reply = before[-1]
        assert reply["outcome"] == "interrupted"
        after = await client.frames_through(305)
        assert 0 < len(text(before)) < 300_000
        assert text(after) == ""
        got = numbers([f for f in before + after if "seq" in f])
        assert got == list(range(1, got[-1] + 1))
        sent = max(f["seq"] for f in before if f["type"] == "delta")
        assert reply["keep_through"] == sent, "`sent` is the default"
        cut = next(f for f in after if f["type"] == "cut")
        assert (cut["keep_through"], cut["text"]["bytes"]) == (
            sent,
            len(text(before)),
        )


async def test_an_answer_that_had_ended_is_cut_for_a_client_far_behind_too() -> None:
    words = ["x" * 1000] * 300
    async with rig(ScriptedProvider(says(*words))) as r, connected(r) as client:
        client.wire.stall()
        client.say("open", id="o", conversation="c")
        client.say("send", id="s", conversation="c", content="hi")
        for _ in range(40):
            await settle()
        client.say("interrupt", id="i", conversation="c", seen_seq=3)
        await settle()
        client.wire.flow()
        before: list[dict[str, Any]] = []
        while not before or before[-1].get("re") != "i":
            before.append(await client.frame())
        reply = before[-1]
        assert (reply["outcome"], reply["keep_through"]) == ("already_finished", 3)
        after = await client.frames_through(305)
        assert len(text(before)) < 300_000
        assert text(after) == ""
        got = numbers([f for f in before + after if "seq" in f])
        assert got == list(range(1, got[-1] + 1))
        view = ConversationView()
        for frame in before + after:
            if "seq" in frame and frame["type"] not in ("reply", "caught_up"):
                view.apply(convert(frame, LogEvent))
                proven = view.turns[2].proven if 2 in view.turns else None
                assert proven is not False, "nobody has to open it again"
        assert view.turns[2].proven
        ends = [f for f in after if f["type"] in ("done", "cut")]
        assert [f.get("status") for f in ends] == ["completed", None]


async def test_turns_that_ended_are_cut_in_any_order() -> None:
    words = ["x" * 1000] * 100
    async with rig(ScriptedProvider(says(*words))) as r, connected(r) as client:
        client.wire.stall()
        client.say("open", id="o", conversation="c")
        for number in range(3):
            client.say("send", id=f"s{number}", conversation="c", content="hi")
            for _ in range(40):
                await settle()
        starts = [2, 106, 210]
        for turn in (starts[2], starts[1], starts[0]):
            client.say(
                "interrupt", id=f"i{turn}", conversation="c", turn=turn, seen_seq=0
            )
            await settle()
        client.wire.flow()
        before: list[dict[str, Any]] = []
        while not before or before[-1].get("re") != f"i{starts[0]}":
            before.append(await client.frame())
        replies = [f for f in before if f.get("outcome") == "already_finished"]
        assert [reply["turn"] for reply in replies] == starts[::-1]
        assert text(await client.frames_through(315)) == ""


async def test_all_that_was_generated_comes_before_the_reply() -> None:
    words = ["x" * 1000] * 300
    async with (
        rig(endless(*words), store=Disk()) as r,
        connected(r) as client,
    ):
        client.wire.stall()
        client.say("open", id="o", conversation="c")
        client.say("send", id="s", conversation="c", content="hi")
        for _ in range(40):
            await settle()
        client.say("interrupt", id="i", conversation="c", keep="generated")
        await settle()
        client.wire.flow()
        before: list[dict[str, Any]] = []
        while not before or before[-1].get("re") != "i":
            before.append(await client.frame())
        assert text(before) == "x" * 300_000
        assert before[-1]["keep_through"] == 302
        assert text(await client.frames_through(304)) == ""


async def test_other_viewers_still_get_the_text_and_the_cut() -> None:
    async with (
        rig(endless("Hello", " world")) as r,
        connected(r) as client,
        connected(r, name="conn2") as other,
    ):
        await other.ask("open", conversation="c")
        other.wire.stall()
        await started(client)
        await client.frame("delta")
        await settle()
        await client.ask("interrupt", conversation="c", keep="none")
        await settle()
        other.wire.flow()
        frames: list[dict[str, Any]] = []
        while not frames or frames[-1]["type"] != "done":
            frames.append(await other.frame())
        assert text(frames) == "Hello world"
        assert [f["type"] for f in frames][-3:] == ["cut", "usage", "done"]


def calls() -> ScriptedProvider:
    call = Call(upstream_id="u1", name="t", arguments="{}", valid=True)
    return ScriptedProvider(
        [
            [CallFragment(position=0, name="t", text="{}")],
            [Finished(reason="tool_calls", calls=[call])],
        ],
        says("done"),
    )


async def test_opening_again_asks_for_an_open_call_once_more() -> None:
    async with rig(calls()) as r, connected(r) as client:
        await client.ask("open", conversation="c", config=TOOLS, handles=["t"])
        await client.ask("send", conversation="c", content="hi")
        request = await client.frame("tool_request")
        assert request["redelivered"] is False
        await client.ask("open", conversation="c", handles=["t"])
        again = await client.frame("tool_request")
        assert (again["call"], again["redelivered"]) == (request["call"], True)
        await settle()
        assert not [f for f in client.wire.frames if b"tool_request" in f]
        reply = await client.ask(
            "tool_result", conversation="c", call=request["call"], output=1
        )
        assert reply["outcome"] == "accepted"
        assert (await client.frame("done"))["status"] == "completed"


async def test_opening_again_to_run_a_tool_asks_once_for_what_nobody_was_asked_for() -> (
    None
):
    async with rig(calls()) as r, connected(r) as client:
        await client.ask("open", conversation="c", config=TOOLS)
        await client.ask("send", conversation="c", content="hi")
        await client.frame("tool_call")
        await client.ask("open", conversation="c", handles=["t"])
        assert (await client.frame("tool_request"))["redelivered"] is False
        await settle()
        assert not [f for f in client.wire.frames if b"tool_request" in f]


async def test_an_open_call_goes_to_the_next_connection() -> None:
    async with rig(calls(), store=Disk()) as r:
        async with connected(r) as client:
            await client.ask("open", conversation="c", config=TOOLS, handles=["t"])
            await client.ask("send", conversation="c", content="hi")
            request = await client.frame("tool_request")
        async with connected(r, name="conn2") as other:
            reply = await other.ask("open", conversation="c", handles=["t"])
            assert reply["turn"] == request["turn"]
            again = await other.frame("tool_request")
            assert (again["call"], again["redelivered"]) == (request["call"], True)


async def test_a_turn_that_only_the_store_holds_is_cut_in_its_order() -> None:
    disk = Disk()
    async with rig(ScriptedProvider(says("Hello")), disk) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        turns: list[int] = []
        for _ in range(4):
            reply = await client.ask("send", conversation="c", content="hi")
            turns.append(reply["turn"])
            await client.frame("done")
        await r.committer.flush()
        held = disk.slow["local/c"] = anyio.Event()
        client.say("interrupt", id="i", conversation="c", turn=turns[0], seen_seq=1)
        client.say("configure", id="k", conversation="c", config={})
        assert (await client.ask("open", conversation="d"))["ok"], "others go on"
        held.set()
        reply = await client.frame("reply")
        assert (reply["re"], reply["outcome"]) == ("i", "already_finished")
        assert reply["keep_through"] == turns[0]
        assert (await client.frame("reply"))["re"] == "k"
        await client.ask("open", conversation="c")
        frames = [await client.frame()]
        while frames[-1]["type"] != "caught_up":
            frames.append(await client.frame())
        after = [f["type"] for f in frames][-3:]
        assert after == ["cut", "config", "caught_up"]


async def test_an_answer_leaves_before_the_loop_turns() -> None:
    """However long a turn of the loop takes, as it does under load."""
    async with rig(endless("x")) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        await settle()
        client.wire.call_soon = lambda callback: None  # type: ignore[method-assign]
        assert (await client.ask("interrupt", conversation="c"))["ok"]
        client.say("ping")
        assert (await client.frame())["type"] == "pong"
