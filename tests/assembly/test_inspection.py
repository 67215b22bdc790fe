"""What the server is given of the inspector, by its settings."""

from pathlib import Path

import anyio
import orjson
import pytest

from tests.connections.wire import Wire
from wsserver.assembly.inspection import Inspection
from wsserver.settings import Settings, SettingsError
from wsserver.turns.clock import Clock


def test_with_the_flag_there_is_a_page_for_this_machine() -> None:
    inspection = Inspection(Settings(inspect=True), Clock())
    assert inspection.page == "inspect"
    assert "/inspect" in inspection.files
    assert "/inspect/page.js" in inspection.files
    assert list(inspection.handlers) == ["/inspect/feed"]
    assert inspection.stricter.keys() == {*inspection.files, "/inspect/feed"}
    for admission in inspection.stricter.values():
        assert admission.loopback_only
        assert not admission.allowed_origins


def test_a_recording_alone_serves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"

    async def connected() -> None:
        inspection = Inspection(Settings(record=str(path)), Clock())
        assert (inspection.page, inspection.files, inspection.handlers) == (
            None,
            {},
            {},
        )
        async with inspection.recording(), inspection.tapped("c1", Wire()) as tap:
            tap.write([b'{"type":"pong"}'])

    anyio.run(connected)
    header, *lines = map(orjson.loads, path.read_bytes().splitlines())
    assert header["content"] == "redacted"
    assert [line["kind"] for line in lines] == ["opened", "out", "closed"]


async def test_without_either_frames_go_as_they_went() -> None:
    inspection = Inspection(Settings(), Clock())
    wire = Wire()
    async with inspection.recording(), inspection.tapped("c1", wire) as tapped:
        assert tapped is wire
    assert (inspection.page, inspection.stricter) == (None, {})


async def test_a_file_that_can_not_be_made_is_a_bad_setting(tmp_path: Path) -> None:
    inspection = Inspection(Settings(record=str(tmp_path / "no" / "r")), Clock())
    with pytest.raises(SettingsError, match=r"record: can't make .*No such file"):
        async with inspection.recording():
            pass
