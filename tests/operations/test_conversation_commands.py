"""`wsserver conversations`, beside a server that runs and after it has ended."""

import struct
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from protocol.codec import decode_server_frame
from protocol.events import LogEvent
from protocol.fold import fold
from tests.fakes.server import server
from tests.fakes.wire import Copy, wire
from tests.operations.conftest import Command
from wsserver.log.entry import text_entry
from wsserver.log.store import Meta, Write
from wsserver.stores.sqlite.store import SqliteStore

STORE = "wsserver/wsserver.db"  # below XDG_STATE_HOME


def events(lines: list[str] | list[dict[str, Any]]) -> list[LogEvent]:
    """Decodes frames; raises unless all of them are events."""
    found: list[LogEvent] = []
    for line in lines:
        frame = decode_server_frame(
            line if isinstance(line, str) else orjson.dumps(line)
        )
        assert isinstance(frame, LogEvent)
        found.append(frame)
    return found


async def talk(url: str) -> Copy:
    """Has a conversation with tools, reasoning and an interrupt; returns its copy."""
    copies: dict[str, Copy] = defaultdict(Copy)
    async with wire(url, copies) as client:
        await client.open(
            "trip", config={"model": "demo/reasoning:tokens_per_second=0"}
        )
        reply = await client.command("send", conversation="trip", content="Hällo")
        await client.done("trip", reply["turn"])
        config = {"model": "demo/long:tokens_per_second=200"}
        await client.command("configure", conversation="trip", config=config)
        reply = await client.command("send", conversation="trip", content="More")
        await client.until(lambda: copies["trip"].texts[reply["turn"]])
        await client.command("interrupt", conversation="trip")
        await client.done("trip", reply["turn"])
    return copies["trip"]


async def test_what_a_client_saw_is_exported_while_the_server_runs_and_after(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-m", "wsserver", "conversations", "export", "trip"]

    async def export() -> bytes:
        environ = {"XDG_STATE_HOME": str(tmp_path), "PATH": "/nowhere"}
        done = await anyio.run_process(command, env=environ)
        assert done.stderr == b""
        return done.stdout

    async with server("--store", "sqlite", folder=tmp_path) as running:
        copy = await talk(running.url)
        beside = await export()
        await running.terminate()
    after = await export()

    seen = fold(events(copy.events))
    assert fold(events(beside.decode().splitlines())) == seen
    assert after == beside
    assert seen.last == copy.last


async def kept(path: Path, *keys: str) -> None:
    path.parent.mkdir(exist_ok=True)
    store = SqliteStore(path, durability="process", boot="b")
    meta = Meta(epoch="e", head=1, oldest=1, live=False, state=b"")
    for number, key in enumerate(keys):
        entry = text_entry("delta", 1, 1, f"SECRET {key}")
        await store.commit([Write(key=key, meta=meta, entries=[entry])], 1.8e9 + number)
    await store.close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with conversations in three spaces; no server has it open."""
    path = tmp_path / STORE
    anyio.run(kept, path, "ann/trip", "ann/work", "bob/trip", "bob/home")
    return path


def test_the_list_ends_with_the_newest(wsserver: Command, store: Path) -> None:
    ran = wsserver("conversations", "list")

    assert (ran.code, ran.err) == (0, "")
    keys = [line.split()[0] for line in ran.lines]
    assert keys == ["CONVERSATION", "ann/trip", "ann/work", "bob/trip", "bob/home"]


def test_a_program_gets_the_list_of_a_space_as_json(
    wsserver: Command, store: Path
) -> None:
    ran = wsserver("conversations", "list", "--json", "--space", "bob")

    assert [orjson.loads(line)["key"] for line in ran.lines] == ["bob/trip", "bob/home"]


def test_one_is_shown(wsserver: Command, store: Path) -> None:
    ran = wsserver("conversations", "show", "home")

    assert ran.code == 0
    assert ran.lines[0].startswith("bob/home  epoch e, events 1-1")
    assert ran.lines[-1] == "    SECRET bob/home"


@pytest.mark.parametrize("command", ["show", "export", "delete"])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("trip", "several spaces have trip; say which: ann/trip, bob/trip"),
        ("cat/trip", "has no conversation cat/trip"),
    ],
)
def test_a_name_that_means_none_or_several_is_an_error_in_one_line(
    wsserver: Command, store: Path, command: str, name: str, says: str
) -> None:
    ran = wsserver("conversations", command, name)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("\n") == 1
    assert says in ran.err


def test_what_is_deleted_is_gone_from_the_files(wsserver: Command, store: Path) -> None:
    ran = wsserver("conversations", "delete", "ann/trip", "home", "--yes")

    assert (ran.code, ran.out) == (0, "deleted ann/trip, bob/home\n")
    rest = wsserver("conversations", "list", "--json")
    keys = [orjson.loads(line)["key"] for line in rest.lines]
    assert keys == ["ann/work", "bob/trip"]
    left = b"".join(path.read_bytes() for path in store.parent.iterdir())
    assert b"SECRET ann/work" in left
    assert b"SECRET ann/trip" not in left
    assert b"SECRET bob/home" not in left


def test_what_sqlite_left_in_unused_bytes_is_gone_too(
    wsserver: Command, store: Path
) -> None:
    """As where a row was moved from one page to another."""
    content = bytearray(store.read_bytes())
    page = next(at for at in range(4096, len(content), 4096) if content[at] == 13)
    cells, begin = struct.unpack_from(">HH", content, page + 3)
    unused = page + 8 + 2 * cells
    assert page + begin - unused > 100
    content[unused : unused + 19] = b" SECRET of somebody"
    store.write_bytes(content)

    assert wsserver("conversations", "delete", "home", "--yes").code == 0

    left = store.read_bytes()
    assert b"SECRET of somebody" not in left
    assert b"SECRET ann/work" in left


def test_nothing_is_deleted_without_a_yes(
    wsserver: Command, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open("/dev/null") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        ran = wsserver("conversations", "delete", "home")

    assert ran.code == 130
    assert "Delete bob/home for good?" in ran.out
    assert "nothing was deleted; --yes deletes without asking\n" in ran.err
    assert wsserver("conversations", "show", "home").code == 0


async def test_deleting_under_a_server_is_refused(tmp_path: Path) -> None:
    async with server("--store", "sqlite", folder=tmp_path) as running:
        await talk(running.url)
        command = [sys.executable, "-m", "wsserver", "conversations", "delete"]
        environ = {"XDG_STATE_HOME": str(tmp_path), "PATH": "/nowhere"}
        done = await anyio.run_process(
            [*command, "trip", "--yes"], env=environ, check=False
        )

    assert done.returncode == 1
    assert done.stdout == b""
    err = done.stderr.decode()
    assert err.count("\n") == 1
    assert f"in use by a server (process {running.pid}): stop it first" in err


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("memory", "the memory store ends with its server"),
        ("sqlite:/nowhere/s.db", "/nowhere/s.db: there is no such file"),
    ],
)
@pytest.mark.parametrize("command", ["list", "show", "export", "delete"])
def test_without_a_store_there_is_nothing_to_look_into(
    wsserver: Command, command: str, flag: str, says: str
) -> None:
    names = [] if command == "list" else ["c"]
    ran = wsserver("conversations", command, *names, "--store", flag)

    assert (ran.code, ran.out) == (1, "")
    assert says in ran.err


def test_a_reader_that_leaves_is_no_fault(store: Path, tmp_path: Path) -> None:
    anyio.run(kept, tmp_path / "many.db", *(f"a/{n:0100}" for n in range(2000)))
    listing = [sys.executable, "-m", "wsserver", "conversations", "list"]
    with subprocess.Popen(  # noqa: S603 - our own command
        [*listing, "--store", f"sqlite:{tmp_path / 'many.db'}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(10) == 0
