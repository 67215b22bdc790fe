"""A recording in a file is whole, private, and never in the way."""

import stat
from pathlib import Path

import anyio
import anyio.lowlevel
import orjson
import pytest

from tests.inspector.recording import recorder
from wsserver.inspector import file as file_module
from wsserver.inspector.file import RecordingFileError, recording_to
from wsserver.inspector.records import Outbound

FRAME = b'{"type":"delta","conversation":"c","seq":3,"turn":2,"text":"Hello"}'


@pytest.fixture
def anyio_backend() -> str:
    """Files need threads, for which trio's clock does not wait."""
    return "asyncio"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_module, "WRITE_SECONDS", 0.001)


async def test_all_that_was_recorded_is_there(tmp_path: Path) -> None:
    path, written = tmp_path / "r.jsonl", recorder()
    async with recording_to(str(path), written):
        written.opened("c1")
        with anyio.fail_after(10):
            while path.read_bytes().count(b"\n") < 2:
                await anyio.lowlevel.checkpoint()
        written.frame(Outbound, "c1", FRAME)
        written.closed("c1", "client", 1000)
    header, *lines = map(orjson.loads, path.read_bytes().splitlines())
    assert header["recording"] == 1
    assert [line["kind"] for line in lines] == ["opened", "out", "closed"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_an_empty_recording_has_its_header(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    async with recording_to(str(path), recorder()):
        pass
    assert path.read_bytes().startswith(b'{"recording":1')


async def test_what_the_ring_dropped_is_said_to_be_lost(tmp_path: Path) -> None:
    path, written = tmp_path / "r.jsonl", recorder(ring_bytes=2_000)
    async with recording_to(str(path), written):
        for _ in range(100):
            written.frame(Outbound, "c1", FRAME)
    _, lost, *lines = map(orjson.loads, path.read_bytes().splitlines())
    assert lost["kind"] == "lost"
    assert lost["lines"] + len(lines) == 100
    assert lost["n"] == lines[0]["n"] - 1


async def test_no_file_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("precious")
    with pytest.raises(RecordingFileError, match="exists"):
        async with recording_to(str(path), recorder()):
            pass
    with pytest.raises(RecordingFileError, match="No such file"):
        async with recording_to(str(tmp_path / "no" / "r"), recorder()):
            pass
    assert path.read_text() == "precious"


async def test_a_full_disk_ends_the_recording_only() -> None:
    path, written = Path("/dev/full"), recorder()
    if not path.exists():
        pytest.skip("no /dev/full here")
    opened = await anyio.open_file(path, "wb", buffering=0)
    failing = file_module._Written(opened, written)
    written.opened("c1")
    with anyio.fail_after(10):
        await failing.keep_up()
        await failing.finish()
    assert opened.wrapped.closed
