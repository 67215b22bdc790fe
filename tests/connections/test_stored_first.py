"""What a crash could take back has not left: replies, requests, what was made."""

import anyio

from tests.connections.journal import Disk, GatedDisk, Journal, desk, settle
from tests.connections.wire import Client, connected
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider
from wsserver.connections.gates import Held


async def replies_to(client: Client, *ids: str) -> list[str]:
    """Returns which of the commands have been replied to by now."""
    await settle()
    return [
        re
        for re in ids
        if any(b'"re":"%b"' % re.encode() in f for f in client.wire.frames)
    ]


async def test_a_conversation_is_stored_before_its_open_is_answered() -> None:
    disk = GatedDisk()
    async with rig(ScriptedProvider([]), disk) as r, connected(r) as client:
        gate = disk.hold()
        client.say("open", id="o", conversation="c")
        early = await replies_to(client, "o")
        async with connected(r, name="conn2") as other:
            other.say("open", id="o", conversation="c")
            early += await replies_to(other, "o")
            gate.set()
            assert early == []
            assert (await client.frame("reply"))["outcome"] == "created"
            assert (await other.frame("reply"))["outcome"] == "replay"


async def test_a_send_that_was_taken_back_stays_so() -> None:
    disk = GatedDisk()
    waiting = ScriptedProvider([anyio.Event()])
    async with rig(waiting, disk) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        await client.ask("send", conversation="c", content="1")
        await client.ask("send", id="2", conversation="c", content="2")
        gate = disk.hold()
        client.say("interrupt", id="i", conversation="c", send="2")
        early = await replies_to(client, "i")
        gate.set()
        assert early == [], "no number says so, yet it counts"
        assert (await client.frame("reply"))["outcome"] == "dequeued"


async def test_a_connection_that_closed_is_not_asked_to_run_a_tool() -> None:
    journal = Journal(Disk())
    async with desk() as d:
        view = d.view(journal)
        journal.say("a")
        request = Held(frame=b'{"type":"tool"}', changes=1, view=view)
        d.writer.gates.hold(journal.log, request)
        view.close()
        await journal.commit()
        await settle()
        assert [f for f in d.got() if f["type"] == "tool"] == []


async def test_a_view_that_starves_is_fetched_for_once() -> None:
    disk = Disk()
    journal = await Journal(disk).told("a", "b")
    again = await journal.forgotten()
    held = disk.slow[again.log.key] = anyio.Event()
    async with desk() as d:
        view = d.view(again)
        await settle()
        for _ in range(3):
            view.wake()
            await settle()
        held.set()
        await settle()
        assert len(disk.reads) == 1
        assert [f["seq"] for f in d.got() if "text" in f] == [2]
