"""Answers that come compressed though that was not asked for."""

import gzip
import zlib
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.replies import text_events
from tests.fakes.upstream import Reply
from tests.providers.upstream_rig import Rig, rig
from wsserver.engine.model import Finished, Text
from wsserver.providers.http.unpacking import Unpacker, UnreadableError

EVENTS = b"".join(text_events("so", " far"))
WHOLE = ("so far", "stop", None)


def bare(data: bytes, level: int = -1) -> bytes:
    packer = zlib.compressobj(level, wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("gzip", zlib.compress),
    ("deflate", zlib.compress),
    ("deflate", lambda data: zlib.compress(data, 0)),
    ("deflate", gzip.compress),
    ("deflate", bare),
    ("deflate", lambda data: bare(data, 0)),
    ("deflate", lambda data: bare(data, 9)),
]


async def outcome(
    it: Rig, body: bytes, encoding: str, write_bytes: int = 40
) -> tuple[str, str, str | None]:
    """Returns the text, the reason and the failure's message."""
    headers = {"Content-Encoding": encoding}
    reply = Reply(body=body, headers=headers, write_bytes=write_bytes)
    events = await it.call(reply)
    last = events[-1]
    assert isinstance(last, Finished)
    text = "".join(one.text for one in events if isinstance(one, Text))
    if last.failure is None:
        return text, last.reason, None
    assert last.failure.code == "upstream_error"
    return text, last.reason, last.failure.message


@given(
    st.sampled_from(PACKERS),
    st.lists(st.binary(min_size=1), min_size=1, max_size=3),
    st.lists(st.integers(0, 200)),
)
def test_whatever_it_is_and_wherever_reads_end(
    packer: tuple[str, Callable[[bytes], bytes]], members: list[bytes], cuts: list[int]
) -> None:
    encoding, pack = packer
    body = b"".join(map(pack, members))
    unpacker = Unpacker(encoding.encode())
    edges = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    pieces = [unpacker.feed(body[start:end]) for start, end in pairwise(edges)]
    assert b"".join(pieces) == b"".join(members)


async def test_it_is_read_as_any_other() -> None:
    async with rig() as it:
        for encoding, pack in PACKERS:
            assert await outcome(it, pack(EVENTS), encoding) == WHOLE
        error = b'{"error": {"message": "busy"}}'
        headers = {"Content-Encoding": "deflate"}
        refused = Reply(status=400, body=bare(error), headers=headers)
        assert (await it.refusal(refused)).message == "busy"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", b"no gzip"),
        ("gzip", bare(EVENTS)),
        ("gzip", EVENTS),
        ("deflate", b"\xff\xff no deflate"),
        ("deflate", EVENTS),
    ],
)
async def test_what_is_compressed_badly_is_an_error(encoding: str, body: bytes) -> None:
    async with rig() as it:
        _, reason, message = await outcome(it, body, encoding)
    assert (reason, message) == ("error", "The upstream's answer is compressed badly.")


async def test_what_came_before_it_went_bad_is_kept() -> None:
    head = zlib.compressobj()
    packed = head.compress(EVENTS[: EVENTS.index(b" far")])
    packed += head.flush(zlib.Z_SYNC_FLUSH)
    async with rig() as it:
        body = packed + b"\xff" * 80
        text, reason, _ = await outcome(it, body, "deflate", len(packed))
    assert (text, reason) == ("so", "error")


async def test_an_answer_that_was_whole_before_it_went_bad_is_whole() -> None:
    whole = EVENTS[: EVENTS.index(b"data: [DONE]")]
    async with rig() as it:
        for bad in (b"\xff" * 80, b"\0" * 8, b"\n"):
            for write_bytes in (40, 10_000):  # in reads of their own, or in the same
                body = gzip.compress(whole) + bad
                assert await outcome(it, body, "gzip", write_bytes) == WHOLE


async def test_what_unpacks_to_far_too_much_is_an_error() -> None:
    body = gzip.compress(b"data: " + b" " * (64 << 20) + b"\n\n")
    async with rig() as it:
        headers = {"Content-Encoding": "gzip"}
        events = await it.call(Reply(body=body, headers=headers))
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.failure is not None
    assert last.failure.message == "The upstream's answer unpacks to far too much."
    assert not last.failure.retryable


def test_a_byte_alone_is_waited_with() -> None:
    unpacker = Unpacker(b"deflate")
    body = bare(b"x")
    assert unpacker.feed(body[:1]) == b""
    assert unpacker.feed(b"") == b""
    assert unpacker.feed(body[1:]) == b"x"
    with pytest.raises(UnreadableError):
        Unpacker(b"deflate").feed(b"\xff\xff")
