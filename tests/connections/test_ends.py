"""How a connection ends, by whom, with which code, and what it leaves behind."""

from typing import Any

import anyio
import msgspec
import pytest
import structlog

from tests.connections.journal import Disk, GatedDisk, numbers, settle, text
from tests.connections.wire import LIMITS, SETTINGS, Client, Wire, connected
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider, says
from wsserver.auth.open import LOCAL, OpenAuthority
from wsserver.connections.connection import Connection
from wsserver.connections.quotas import Quotas
from wsserver.connections.transport import Handshake
from wsserver.log.conversation_log import ConversationLog


class Counts:
    """Counts what connections report."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def connection_opened(self) -> None:
        self.calls.append(("opened",))

    def connection_closed(self, code: int) -> None:
        self.calls.append(("closed", code))

    def frame_error(self, code: str) -> None:
        self.calls.append(("error", code))

    def resume(self, outcome: str, reason: str | None) -> None:
        self.calls.append(("resume", outcome, reason))

    def delivered(self, frames: int, numbers: int) -> None:
        if frames or numbers:
            self.calls.append(("delivered", frames, numbers))


def server(*texts: str, **members: Any) -> Any:
    return rig(ScriptedProvider(says(*(texts or ("Hello",)))), **members)


async def test_what_is_counted() -> None:
    counts = Counts()
    async with server(store=Disk()) as r, connected(r, metrics=counts) as client:
        await client.ask("open", conversation="c")
        client.wire.say(b"{")
        await client.frame("error")
        await client.ask("send", conversation="c", content="hi")
        await client.frame("done")
        await client.ask("open", conversation="c", after=99)
        client.wire.cut(1001)
        await settle()
    assert counts.calls[0] == ("opened",)
    assert counts.calls[-1] == ("closed", 1001)
    assert ("error", "bad_json") in counts.calls
    resumes = [call[1:] for call in counts.calls if call[0] == "resume"]
    assert resumes == [("created", None), ("reset", "seq_ahead")]
    assert sum(call[2] for call in counts.calls if call[0] == "delivered") >= 5


async def test_what_is_delivered_is_counted_in_frames_and_numbers() -> None:
    counts = Counts()
    async with server("one", " two", " three", store=Disk()) as r:
        async with connected(r) as first:
            await first.ask("open", conversation="c")
            await first.ask("send", conversation="c", content="hi")
            last = (await first.frame("done"))["seq"]
        async with connected(r, name="conn2", metrics=counts) as client:
            await client.ask("open", conversation="c", after=1, view="merged")
            events = await client.frames_through(last)
            assert await client.frame() == {
                "type": "caught_up", "conversation": "c", "seq": last
            }  # fmt: skip
        delivered = [call[1:] for call in counts.calls if call[0] == "delivered"]
        assert sum(frames for frames, _ in delivered) == len(events) + 1
        assert sum(numbers for _, numbers in delivered) == last - 1 > len(events)


@pytest.mark.parametrize(("code", "told"), [(None, 1006), (1000, 1000), (1001, 1001)])
async def test_a_client_that_goes(code: int | None, told: int) -> None:
    counts = Counts()
    async with server() as r:
        async with connected(r, metrics=counts) as client:
            await client.ask("open", conversation="c")
            conversation = r.directory.loaded(LOCAL.key("c"))
            assert conversation is not None
            client.wire.cut(code)
        assert counts.calls[-1] == ("closed", told)
        assert conversation._viewers == []
        assert not conversation.log._wakes
        assert client.wire.closed is None, "nobody is there to be told"


async def test_its_turn_goes_on() -> None:
    gate = anyio.Event()
    script = [*says("Hello")[:1], gate, *says(" world")]
    async with rig(ScriptedProvider(script), store=Disk()) as r:
        async with connected(r) as client:
            await client.ask("open", conversation="c")
            await client.ask("send", conversation="c", content="hi")
            await client.frame("delta")
        gate.set()
        async with connected(r, name="conn2") as again:
            await again.ask("open", conversation="c", after=3)
            frames = []
            while not frames or frames[-1]["type"] != "done":
                frames.append(await again.frame())
            assert text(frames) == " world"
            assert frames[-1]["status"] == "completed"


async def test_goaway() -> None:
    async with server() as r, connected(r) as client:
        client.connection.goaway(
            deadline_ms=10_000, reconnect_after_ms=700, reason="restart"
        )
        assert await client.frame() == {
            "type": "goaway",
            "deadline_ms": 10_000,
            "reconnect_after_ms": 700,
            "reason": "restart",
        }
        assert (await client.ask("open", conversation="c"))["ok"], "it goes on"


async def test_closing_sends_what_is_stored_first() -> None:
    async with server(store=Disk()) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        conversation = r.directory.loaded(LOCAL.key("c"))
        assert conversation is not None
        await client.frame("caught_up")
        log = conversation.log
        log.append_text("delta", 1, "last words")
        write = log.take_write()
        log.committed(write)
        await client.connection.close(1012, "restart")
        assert client.wire.closed == (1012, "restart")
        frames = [msgspec.json.decode(frame) for frame in client.wire.frames]
        assert text(frames) == "last words"
        await client.connection.close(1012, "restart")  # again: nothing


async def test_closing_fills_the_way_to_a_slow_client_and_no_more() -> None:
    """What fits is sent with the close; the rest is there for its next connection."""
    async with server(*["x" * 1000] * 300) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        client.wire.stall()
        client.say("send", id="s", conversation="c", content="hi")
        for _ in range(20):
            await settle()
        client.wire.drain(client.wire.buffered_bytes() - 40_000)
        before = client.wire.buffered_bytes()
        assert client.wire.LOW_WATER < before < SETTINGS.high_water_bytes
        client.connection.goaway(deadline_ms=0, reconnect_after_ms=0, reason="now")
        await client.connection.close(1012, "restart")
        assert client.wire.buffered_bytes() > before + 10_000
        client.wire.frames.clear()
        client.wire.flow()
        assert [f for f in client.wire.frames if b"goaway" in f]


async def test_what_is_owed_goes_out_before_the_close_even_to_a_slow_client() -> None:
    async with server(*["x" * 1000] * 300) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        client.wire.stall()
        client.say("send", id="s", conversation="c", content="hi")
        for _ in range(20):
            await settle()
        client.connection.goaway(deadline_ms=0, reconnect_after_ms=0, reason="now")
        await client.connection.close(1012, "restart")
        client.wire.flow()
        assert b"goaway" in client.wire.frames[-1]


async def test_replies_that_waited_leave_no_subscription() -> None:
    disk = GatedDisk()
    async with server(store=disk) as r:
        async with connected(r) as client:
            await client.ask("open", conversation="c")
            gate = disk.hold()
            conversation = r.directory.loaded(LOCAL.key("c"))
            assert conversation is not None
            client.say("configure", id="x", conversation="c", config={})
            await settle()
            assert len(conversation.log._wakes) == 2
        assert not conversation.log._wakes
        gate.set()


async def test_closing_does_not_wait_for_a_client_that_does_not_read() -> None:
    async with server("x" * 1_000_000) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        client.wire.stall()
        client.say("send", id="s", conversation="c", content="hi")
        await settle()
        most = client.wire.most_buffered
        with anyio.fail_after(1):
            await client.connection.close(1012, "restart")
        assert client.wire.most_buffered == most, "no more is put on the heap"


async def test_a_transport_whose_close_hangs_is_dropped() -> None:
    class Stuck(Wire):
        async def close(self, code: int, reason: str) -> None:
            await anyio.sleep_forever()

    async with server() as r:
        wire = Stuck()
        connection = made(r, wire)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.run)
            await settle()
            with anyio.fail_after(4):
                await connection.close(1012, "restart")
        assert wire.aborted


def made(r: Any, wire: Wire, **members: Any) -> Connection:
    return Connection(
        connection="conn9",
        transport=wire,
        handshake=Handshake(peer="test"),
        authority=OpenAuthority(),
        directory=r.directory,
        quotas=Quotas(SETTINGS),
        settings=SETTINGS,
        metrics=members.get("metrics", Counts()),
        alarms=r.services.alarms,
        wall=r.services.clock.wall,
        new_id=r.services.clock.token,
    )


async def test_closed_before_it_ran() -> None:
    async with server() as r:
        wire = Wire()
        connection = made(r, wire)
        await connection.close(1012, "restart")
        with anyio.fail_after(1):
            await connection.run()
        assert wire.closed == (1012, "restart")


async def test_cancelled_from_outside_it_is_dropped_and_leaves_nothing() -> None:
    counts = Counts()
    async with server() as r:
        wire = Wire()
        connection = made(r, wire, metrics=counts)
        client = Client(wire, connection)
        with structlog.testing.capture_logs() as lines:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(connection.run)
                await client.hello()
                await client.ask("open", conversation="c")
                conversation = r.directory.loaded(LOCAL.key("c"))
                tasks.cancel_scope.cancel()
        assert wire.aborted
        assert counts.calls[-1] == ("closed", 1006)
        assert conversation is not None
        assert conversation._viewers == []
        assert not conversation.log._wakes
        assert [line["event"] for line in lines][-1] == "connection_closed"


async def test_the_log_line_says_who_and_how_and_nothing_said() -> None:
    with structlog.testing.capture_logs(
        processors=[structlog.contextvars.merge_contextvars]
    ) as lines:
        async with server() as r, connected(r, name="conn5", hello=False) as client:
            await client.hello(client={"name": "page", "version": "2"})
            await client.ask("open", conversation="c")
            await client.ask("send", conversation="c", content="my secret")
            await client.frame("done")
            await client.connection.close(4601, "drained")
    (line,) = [line for line in lines if line["event"] == "connection_closed"]
    assert line == {
        "event": "connection_closed",
        "log_level": "info",
        "connection": "conn5",
        "code": 4601,
        "reason": "drained",
        "by": "server",
        "peer": "test",
        "client": "page 2",
    }
    assert "secret" not in str(lines)


async def test_a_defect_in_the_writer_ends_the_connection_as_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def defect(*_: Any) -> None:
        raise ZeroDivisionError("secret")

    async with server() as r, connected(r) as client:
        await client.ask("open", conversation="c")
        conversation = r.directory.loaded(LOCAL.key("c"))
        assert conversation is not None
        monkeypatch.setattr(ConversationLog, "read", defect)
        conversation.log.append_text("delta", 1, "x")
        assert (await client.ended())[0] == 1011
        assert conversation._viewers == []


async def test_a_defect_in_leaving_one_conversation_keeps_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def defect(*_: Any) -> None:
        raise ZeroDivisionError("secret")

    counts = Counts()
    async with server() as r:
        wire = Wire()
        connection = made(r, wire, metrics=counts)
        client = Client(wire, connection)
        conversations = []
        with pytest.RaisesGroup(ZeroDivisionError):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(connection.run)
                await client.hello()
                for name in ("a", "b", "c"):
                    await client.ask("open", conversation=name)
                    conversations.append(r.directory.loaded(LOCAL.key(name)))
                monkeypatch.setattr(conversations[1], "detach", defect)
                wire.cut()
        assert [len(found._viewers) for found in conversations] == [0, 1, 0]
        assert counts.calls[-1] == ("closed", 1006)


async def test_server_frames_stay_below_the_limit() -> None:
    async with server(*["x" * 50_000] * 60, store=Disk()) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        await client.ask("send", conversation="c", content="hi")
        await client.frame("done")
        await client.ask("open", conversation="c")
        frames: list[dict[str, Any]] = []
        while not frames or frames[-1]["type"] != "done":
            frames.append(await client.frame())
            assert len(msgspec.json.encode(frames[-1])) < LIMITS.frame_bytes
        assert numbers(frames) == list(range(1, numbers(frames)[-1] + 1))
        assert text(frames) == "x" * 3_000_000
