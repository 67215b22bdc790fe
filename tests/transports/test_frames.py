from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from wsserver.transports.frames import text_frames, text_header

SIZES = st.one_of(st.integers(0, 200), st.integers(65_500, 65_600), st.just(2**20))


def as_websockets_does(payload: bytes) -> bytes:
    return Frame(Opcode.TEXT, payload).serialize(mask=False)


@given(SIZES)
def test_a_header_is_that_of_the_rfc(size: int) -> None:
    assert text_header(size) + bytes(size) == as_websockets_does(bytes(size))


@given(st.lists(SIZES, max_size=4))
def test_frames_stand_one_behind_the_other(sizes: list[int]) -> None:
    payloads = [bytes(size) for size in sizes]
    assert text_frames(payloads) == b"".join(map(as_websockets_does, payloads))
