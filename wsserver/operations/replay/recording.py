"""Reads a recording: what `wsserver serve --record` and the inspector's page write."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from wsserver.inspector.records import (
    VERSION,
    Header,
    Record,
    decode_header,
    decode_record,
)

_REMEDY = "name what `wsserver serve --record FILE` wrote"


class RecordingError(Exception):
    """The file is no recording that can be used; one line that says why."""


class Recording(Struct, frozen=True, kw_only=True):
    """A whole recording.

    Attributes:
        header: Its first line.
        records: The others, each with its number in the file.
    """

    header: Header
    records: tuple[tuple[int, Record], ...]

    @property
    def redacted(self) -> bool:
        """Whether lengths stand in the place of texts."""
        return self.header.content == "redacted"


def read_recording(path: Path) -> Recording:
    """Reads a file.

    Raises:
        RecordingError: It can't be read, or is no recording of this version.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}; {_REMEDY}") from None
    return parse_recording(data, str(path))


def parse_recording(data: bytes, path: str = "recording") -> Recording:
    """Reads what is in a file.

    Raises:
        RecordingError: It is no recording of this version; names `path`.
    """
    head, *rest = data.splitlines() or [b""]
    try:
        header = decode_header(head)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise RecordingError(
            f"{path}: line 1 is no recording's header: {error}; {_REMEDY}"
        ) from None
    if header.recording != VERSION:
        raise RecordingError(
            f"{path}: version {header.recording} of the format; this is for"
            f" version {VERSION}"
        )
    return Recording(header=header, records=tuple(_records(path, rest)))


def _records(path: str, lines: list[bytes]) -> Iterator[tuple[int, Record]]:
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        try:
            yield number, decode_record(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise RecordingError(f"{path}: line {number}: {error}") from None
