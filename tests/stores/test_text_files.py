"""The files of text: what is in them after whatever happened to the process."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.stores.samples import tokens
from wsserver.log.entry import Entry, text_entry
from wsserver.stores.sqlite import text_files
from wsserver.stores.sqlite.text_files import (
    TextFiles,
    read_text_files,
    remove_text_files,
)
from wsserver.stores.sqlite.text_records import label, record

pytestmark = pytest.mark.usefixtures("each_space")

KEYS = [("a/1", "e1"), ("a/1", "e2"), ("日/🎌", "e1")]

encoded = msgspec.msgpack.encode


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "FILE_BYTES", 2_000)


@contextmanager
def opened() -> Iterator[tuple[Path, TextFiles]]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.db"
        with closing(TextFiles(path)) as files:
            yield path, files


def fill(files: TextFiles, first: int = 1) -> list[Entry]:
    """Appends until there is no more room."""
    taken: list[Entry] = []
    for entry in tokens(first, first + 999):
        if not files.append(record(label(*KEYS[0]), encoded(entry))):
            return taken
        taken.append(entry)
    raise AssertionError("a file is never full")


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.text(max_size=20)), max_size=20))
def test_what_was_appended_is_there_by_conversation(
    appended: list[tuple[tuple[str, str], str]],
) -> None:
    wanted: dict[tuple[str, str], list[Entry]] = {}
    with opened() as (path, files):
        for seq, (key, text) in enumerate(appended, 1):
            entry = text_entry("delta", seq, 1, text)
            assert files.append(record(label(*key), encoded(entry)))
            wanted.setdefault(key, []).append(entry)

        left = read_text_files(path)

        assert left.texts == wanted
        assert (left.at > 0) == bool(appended)


def test_a_file_that_is_full_takes_no_more_and_the_other_does() -> None:
    with opened() as (path, files):
        first = fill(files)
        assert 30 < len(first) < 60
        files.retire()
        second = fill(files, len(first) + 1)
        assert len(second) > 30
        assert read_text_files(path).texts == {KEYS[0]: [*first, *second]}

        files.clear()
        assert read_text_files(path).texts == {KEYS[0]: second}
        files.retire()
        third = fill(files, first[-1].seq + second[-1].seq + 1)
        assert read_text_files(path).texts == {KEYS[0]: [*second, *third]}


def test_order_is_of_numbers_whichever_file_is_older() -> None:
    with opened() as (path, files):
        files.retire()
        first = fill(files)
        files.clear()
        files.retire()
        second = fill(files, len(first) + 1)
        assert read_text_files(path).texts == {KEYS[0]: [*first, *second]}


@pytest.mark.parametrize("power", [False, True])
def test_that_there_are_files_outlives_a_loss_of_power_where_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch, power: bool
) -> None:
    synced: list[bool] = []

    def note(file: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(file).st_mode))

    monkeypatch.setattr(os, "fsync", note)
    with TemporaryDirectory() as folder:
        with closing(TextFiles(Path(folder) / "s.db", power=power)):
            pass
        names = [file.name for file in Path(folder).iterdir()]
    assert len(names) == 2
    assert any(synced) == power, "the folder has their names"


def test_what_is_cleared_is_overwritten() -> None:
    with opened() as (path, files):
        entry = text_entry("delta", 1, 1, "a rather private sentence")
        files.append(record(label(*KEYS[0]), encoded(entry)))
        files.retire()
        files.clear()
        for file in path.parent.iterdir():
            assert not file.read_bytes().strip(b"\0")


def test_a_medium_that_does_not_answer_is_told_and_clears_nothing_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.db"
        with closing(TextFiles(path, power=True)) as files, capture_logs() as lines:
            fill(files)
            files.retire()
            monkeypatch.setattr(os, "fdatasync", broken)
            files.clear()
            assert (read_text_files(path).texts, files.retired) == ({}, False)
    assert lines == [
        {
            "event": "store_text_not_cleared",
            "log_level": "warning",
            "error": "[Errno 5] Input/output error",
        }
    ]


@pytest.mark.parametrize("sync", [False, True])
def test_a_record_may_take_the_last_byte_and_no_more(sync: bool) -> None:
    for beyond in (0, 1):
        with opened() as (_, files):
            append = files.append_and_sync if sync else files.append
            assert append(b"x")
            fits = append(b"x" * (text_files.FILE_BYTES - 1 + beyond))
            assert fits == (not beyond)
            assert files.size == (text_files.FILE_BYTES if fits else 1)


@given(data=st.data())
def test_of_a_file_that_was_damaged_the_whole_records_before_are_read(
    data: st.DataObject,
) -> None:
    with opened() as (path, files):
        taken = fill(files)
        file = Path(f"{path}-text1")
        content = bytearray(file.read_bytes())
        at = data.draw(st.integers(0, files.size - 1))
        if data.draw(st.booleans()):
            content[at] ^= data.draw(st.integers(1, 255))
        else:  # a copy that was not finished
            content[at:] = bytes(len(content) - at)
        file.write_bytes(content)

        got = [e for text in read_text_files(path).texts.values() for e in text]

        assert got == taken[: len(got)]
        before = at * len(taken) // files.size
        assert len(got) >= before - 2


def test_files_are_for_the_user_alone_and_go_when_they_are_removed() -> None:
    with opened() as (path, files):
        files.append(record(label(*KEYS[0]), encoded(tokens(1, 1)[0])))
        found = sorted(path.parent.iterdir())
        assert [file.name for file in found] == ["s.db-text1", "s.db-text2"]
        for file in found:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert file.stat().st_size == text_files.FILE_BYTES
        remove_text_files(path)
        remove_text_files(path)
        assert not list(path.parent.iterdir())
        assert read_text_files(path).texts == {}


def test_files_that_are_there_are_not_taken_for_new_ones() -> None:
    with opened() as (path, _), pytest.raises(FileExistsError):
        TextFiles(path)
