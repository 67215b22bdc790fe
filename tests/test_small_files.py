"""Files that others write are read in bounds."""

import os
from pathlib import Path
from threading import Thread

import pytest

from wsserver import small_files
from wsserver.settings import SettingsError, load
from wsserver.small_files import read_small


def test_a_file_is_read_up_to_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_files, "MOST_BYTES", 5)
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_small(file) == b"12345"
    file.write_bytes(b"123456")
    with pytest.raises(OSError, match="longer than 5 bytes"):
        read_small(file)


def test_a_pipe_is_read_to_its_end_if_somebody_writes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="a pipe that nobody writes to"):
        read_small(pipe)
    with pipe.open("r+b", buffering=0) as writer:
        read = list[bytes]()
        reader = Thread(target=lambda: read.append(read_small(pipe)), daemon=True)
        reader.start()
        writer.write(b"12345")
        reader.join(0.05)
        assert reader.is_alive(), "whoever writes has not come to the end"
    reader.join(5)
    assert read == [b"12345"]


def test_settings_without_end_are_no_settings() -> None:
    with pytest.raises(SettingsError, match="/dev/zero: longer than 16777216 bytes"):
        load(flags={}, environ={}, config=Path("/dev/zero"))
