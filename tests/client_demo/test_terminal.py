"""`chat` against a scripted server: history, signals, what happens to the network."""

import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio.lowlevel
import pytest

from tests.client_demo.double import Double, double
from tests.client_demo.keys import Keys, both


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server() -> AsyncGenerator[Double]:
    async with double() as made:
        yield made


async def test_chat_shows_history_answers_and_times(
    server: Double, tmp_path: Path
) -> None:
    keys = Keys(tmp_path)

    async def serve() -> None:
        await keys.until(">")
        keys.type("hello")
        await server.answer("c", "Some *words*.\n\nAnd ", "more.\x1b[2J")
        await keys.until("first token 20 ms")
        keys.end()

    assert await both(keys.run(server.url, conversation="c"), serve) == 0
    assert "Some words.\n\nAnd more.[2J\n" in keys.shown
    again = Keys(tmp_path)

    async def leave() -> None:
        await again.until("> hello")
        again.type("/quit")

    assert await both(again.run(server.url), leave) == 0
    assert "And more.[2J" in again.shown


async def test_what_was_deleted_elsewhere_is_said(
    server: Double, tmp_path: Path
) -> None:
    keys = Keys(tmp_path)

    async def serve() -> None:
        await keys.until(">")
        keys.type("hello")
        await server.begin()
        await server.delete("c")
        await keys.until("It was deleted. /new begins another one")
        keys.type("/new")
        await server.peer.reply(await server.peer.command("close"), "closed")
        await keys.until("conversation c-")
        keys.end()

    assert await both(keys.run(server.url, conversation="c"), serve) == 0


async def test_what_was_deleted_since_the_last_time_is_said_and_a_new_one_begun(
    server: Double, tmp_path: Path
) -> None:
    first = Keys(tmp_path)

    async def answer_once() -> None:
        await first.until(">")
        first.type("Of old")
        await server.answer("c", "Yes.")
        await first.until("first token")
        first.type("/new")
        await server.peer.reply(await server.peer.command("close"), "closed")
        await first.until("conversation c-")
        first.end()

    assert await both(first.run(server.url, conversation="c"), answer_once) == 0
    (newer,) = set(server.logs) - {"c"}
    server.logs.clear()
    again = Keys(tmp_path)

    async def look() -> None:
        await again.until_new(f"{newer}: The server no longer has this conversation")
        await again.until_new("conversation c-")
        again.type("/list")
        await again.until_new("Of old")
        again.type("/switch c")
        await again.until_new("Of old: The server no longer has this conversation")
        again.type("/list")
        again.type("/where")
        await again.until_new("number 0")
        again.end()

    assert await both(again.run(server.url), look) == 0
    assert "Of old" not in again.shown.partition("Of old: ")[2], "it is listed no more"
    assert not {"c", newer} & set(server.logs)
    assert len(server.logs) == 1


async def test_a_log_that_began_anew_is_said(server: Double, tmp_path: Path) -> None:
    for server.epoch, says in (("e1", "conversation c"), ("e2", "not the one from")):
        keys = Keys(tmp_path)

        async def leave(keys: Keys = keys, says: str = says) -> None:
            await keys.until(says)
            keys.end()

        assert await both(keys.run(server.url, conversation="c"), leave) == 0


async def test_a_name_that_is_asked_for_is_begun_again(
    server: Double, tmp_path: Path
) -> None:
    for says in ("conversation c", "A new one begins:"):
        keys = Keys(tmp_path)

        async def leave(keys: Keys = keys, says: str = says) -> None:
            await keys.until(says)
            keys.end()

        assert await both(keys.run(server.url, conversation="c"), leave) == 0
        assert set(server.logs) == {"c"}
        server.logs.clear()


async def test_after_a_delete_the_newest_that_is_there_is_shown(
    server: Double, tmp_path: Path
) -> None:
    keys = Keys(tmp_path)

    async def serve() -> None:
        await keys.until_new("conversation a")
        for name in ("b", "d"):
            keys.type(f"/switch {name}")
            await server.peer.reply(await server.peer.command("close"), "closed")
            await keys.until_new(f"conversation {name}")
        del server.logs["b"]
        keys.type("/delete")
        await keys.until_new("delete d for good? Then say /delete yes")
        keys.type("/delete b")
        await keys.until_new("say /delete, which deletes the conversation that is open")
        keys.type("/delete yes")
        await server.peer.reply(await server.peer.command("delete"), "deleted")
        await keys.until_new("conversation a")
        keys.end()

    assert await both(keys.run(server.url, conversation="a"), serve) == 0
    assert "b" not in server.logs


async def test_ctrl_c_stops_the_answer_and_then_leaves(
    server: Double, tmp_path: Path
) -> None:
    keys = Keys(tmp_path)

    async def serve() -> None:
        await keys.until(">")
        keys.type("hello")
        turn = await server.begin()
        await server.say("c", turn, "half\n\n", "way\n")
        await keys.until("half")
        signal.raise_signal(signal.SIGINT)
        interrupt = await server.peer.command("interrupt")
        assert interrupt["turn"] == turn
        await server.peer.reply(interrupt, "interrupted", turn=turn)
        await server.done("c", turn, status="interrupted", reason="by_client")
        await keys.until("interrupted (by_client)")
        await keys.until(">")
        while keys.terminal._busy is not None:
            await anyio.lowlevel.checkpoint()
        signal.raise_signal(signal.SIGINT)

    assert await both(keys.run(server.url, conversation="c"), serve) == 0


async def test_chat_shows_what_happens(server: Double, tmp_path: Path) -> None:
    keys = Keys(tmp_path)

    async def serve() -> None:
        await keys.until(">")
        keys.type("hello")
        turn = await server.begin()
        await server.peer.send(
            type="waiting", conversation="c", turn=turn, phase="waiting_first_token",
            elapsed_ms=10_000,
        )  # fmt: skip
        await server.event("c", "reasoning", turn=turn, text="hm")
        await server.event(
            "c", "tool_call", turn=turn, call="k", name="clock", arguments={"z": 1},
            batch=0, index=0, deadline_at="2026-01-01T00:00:00.000Z",
        )  # fmt: skip
        await server.event(
            "c", "tool_result", turn=turn, call="k", status="ok", output="noon", by="me"
        )
        await server.peer.send(
            type="goaway", deadline_ms=1, reconnect_after_ms=0, reason="restart"
        )
        await keys.until("the server restarts; the connection is made again by itself")
        await server.peer.close(4601)
        await server.connection(2)
        await keys.until("connected again")
        await server.event(
            "c", "error", turn=turn, code="internal", message="sorry", retryable=True
        )
        await server.done("c", turn, status="failed")
        await keys.until("failed (None)")
        keys.type("again")
        await server.peer.refuse(await server.peer.command("send"), "queue_full")
        await keys.until("queue_full: because")
        keys.end()

    assert await both(keys.run(server.url, conversation="c"), serve) == 0
    for said in ("calls clock {'z': 1}", "ok: noon", "internal: sorry"):
        assert said in keys.shown


async def test_a_second_ctrl_c_waits_for_nobody(server: Double, tmp_path: Path) -> None:
    keys = Keys(tmp_path)

    async def serve() -> None:
        await keys.until(">")
        keys.type("hello")
        await server.say("c", await server.begin(), "half\n\n", "way\n")
        await keys.until("half")
        keys.interrupt()
        await server.peer.command("interrupt")
        keys.interrupt()
        await keys.until_new("the stop is on its way")
        await keys.until_new("\n>")
        keys.type("/where")
        await keys.until_new("epoch e1 · number 4 · connected")
        keys.end()

    assert await both(keys.run(server.url, conversation="c"), serve) == 0


async def test_ctrl_c_gives_up_a_command(server: Double, tmp_path: Path) -> None:
    keys = Keys(tmp_path)

    async def serve() -> None:
        await keys.until_new("\n>")
        keys.type("/delete yes")
        await (await server.connection(1)).command("delete")
        keys.interrupt()
        await keys.until_new("given up")
        await keys.until_new("\n>")
        keys.type("/switch other")
        await server.peer.reply(await server.peer.command("close"), "closed")
        await keys.until_new("conversation other")
        keys.end()

    assert await both(keys.run(server.url, conversation="c"), serve) == 0


async def test_no_server_and_no_memory(tmp_path: Path) -> None:
    async with double() as server:
        pass
    keys = Keys(tmp_path)
    assert await keys.run(server.url)() == 4
    assert "no connection" in keys.shown
    assert "lost" not in keys.shown
    (tmp_path / "chat.json").write_text("?")
    assert await keys.run(server.url)() == 1
    assert "move it away" in keys.shown
