"""The benchmark's clients count the same, however the bytes are split."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.clients.sse import SseChat
from tests.bench.clients.tally import Answer, Tally
from tests.bench.clients.websocket import WebSocketCounter
from tests.bench.wheel import TICK_SECONDS, Wheel

UPGRADE = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
PLAIN = b'data: {"text":" token"}\n\n' * 4 + b"data: [DONE]\n\n"
STAMPED = b'data: {"text":"@0000000000000007"}\n\n' * 4 + b"data: [DONE]\n\n"


def frame(payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        return bytes((0x81, size)) + payload
    if size < 65_536:
        return bytes((0x81, 126)) + size.to_bytes(2, "big") + payload
    return bytes((0x81, 127)) + size.to_bytes(8, "big") + payload


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    bounds = [0, *sorted(cut % len(data) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(bounds) if a < b]


@given(
    st.lists(st.sampled_from([0, 1, 125, 126, 70_000]), max_size=5),
    st.lists(st.integers(0, 100_000), max_size=9),
)
def test_frames_come_whole(sizes: list[int], cuts: list[int]) -> None:
    payloads = [bytes([65 + n]) * size for n, size in enumerate(sizes)]
    opened: list[bool] = []
    seen: list[bytes] = []
    counter = WebSocketCounter("/", lambda _: opened.append(True))
    counter.on_frame = seen.append
    for piece in pieces(UPGRADE + b"".join(map(frame, payloads)), cuts):
        counter.data_received(piece)
    assert opened == [True]
    assert seen == payloads


@pytest.mark.parametrize("body", [PLAIN, STAMPED], ids=["plain", "stamped"])
@given(cuts=st.lists(st.integers(0, 1000), max_size=9))
def test_tokens_are_counted_once(body: bytes, cuts: list[int]) -> None:
    tally = Tally(1, stamped=body is STAMPED)
    chat = SseChat("", Answer(tally))
    for piece in pieces(body, cuts):
        chat.data_received(piece)
    assert tally.tokens == 4
    assert len(tally.delays_us) == (4 if body is STAMPED else 0)
    assert (tally.started, tally.ended) == (1, 1)


@given(st.lists(st.floats(0, 1), max_size=20), st.lists(st.floats(0, 1), max_size=9))
def test_a_stream_is_due_once_and_not_too_early(
    times: list[float], looks: list[float]
) -> None:
    wheel: Wheel[float] = Wheel()
    for at in times:
        wheel.add(at, at)
    found: list[float] = []
    for now in [*sorted(looks), 1 + 2 * TICK_SECONDS]:
        due = wheel.due(now)
        assert all(at < now + TICK_SECONDS for at in due)
        found += due
    assert sorted(found) == sorted(times)
    assert not wheel
