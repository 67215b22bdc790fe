"""Records of text in a file: what one entry of a conversation looks like there.

A record is its length and a checksum, each of 4 bytes, and then MessagePack: the key
and the epoch of a conversation and the entry. A process that is killed while it writes
may leave a piece of a record, and nobody was told of that one.
"""

import struct
from collections.abc import Iterator
from zlib import crc32

import msgspec
from msgspec import Struct

from wsserver.log.entry import Entry

Record = tuple[str, str, Entry]
"""Key, epoch, entry."""

_FRAME = struct.Struct("<II")
_BEGIN = b"\x93"  # of an array of three, as each record is

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


class Label(Struct, frozen=True, gc=False):
    """What a conversation's records begin with, made once."""

    bytes: bytes
    crc: int


def label(key: str, epoch: str) -> Label:
    """Returns what records of a conversation begin with."""
    begin = _BEGIN + _encode(key) + _encode(epoch)
    return Label(begin, crc32(begin))


def record(start: Label, entry: bytes) -> bytes:
    """Returns the record of one entry in MessagePack."""
    prefix = start.bytes
    frame = _FRAME.pack(len(prefix) + len(entry), crc32(entry, start.crc))
    return b"%b%b%b" % (frame, prefix, entry)


def records(content: bytes) -> Iterator[tuple[Record, int]]:
    """Yields records and where they end, up to the first that is not whole."""
    at = 0
    while (record := _record_at(content, at)) is not None:
        yield record
        at = record[1]


def _record_at(content: bytes, at: int) -> tuple[Record, int] | None:
    begin = at + _FRAME.size
    if begin > len(content):
        return None
    length, crc = _FRAME.unpack_from(content, at)
    record = memoryview(content)[begin : begin + length]
    if not length or crc32(record) != crc:
        return None
    try:
        return _decode(record), begin + length
    except msgspec.DecodeError:
        return None


def has_records_behind(content: bytes, end: int) -> bool:
    """Whether there is a record anywhere behind the last of those that are whole.

    A process that was killed while it copied one has left nothing behind it.
    """
    at = content.find(_BEGIN, end)
    while at != -1:
        if at >= _FRAME.size and _record_at(content, at - _FRAME.size) is not None:
            return True
        at = content.find(_BEGIN, at + 1)
    return False
