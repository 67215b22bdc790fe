"""Whatever comes in, `decode_command` returns a command or raises a `FrameError`."""

# Writes what other clients may: NaN, halves of pairs, integers of any length.
from json import dumps  # noqa: TID251
from typing import Any, get_args

from hypothesis import example, given
from hypothesis import strategies as st

from protocol.codec import decode_command, encode
from protocol.codes import ERRORS
from protocol.commands import ClientFrame
from protocol.frame_error import FrameError
from tests.protocol.texts import any_text, whole_text

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(whole_text, inner),
    max_leaves=8,
)
members = st.sampled_from(
    [name for frame in get_args(ClientFrame) for name in frame.__struct_fields__]
)


def attempt(data: str | bytes) -> None:
    """Decodes; whatever came out, a command or an error, can go on the wire."""
    try:
        read = decode_command(data, max_bytes=2_000)
    except FrameError as caught:
        error = caught
    else:
        assert decode_command(encode(read), max_bytes=10_000) == read
        return
    assert error.code in ERRORS
    assert error.message
    encode(error.body())


@given(any_text | st.binary())
@example("\\ud800")
def test_no_input_raises_anything_else(data: str | bytes) -> None:
    attempt(data)


@given(
    st.sampled_from(sorted({str(f.__struct_config__.tag) for f in get_args(ClientFrame)})),
    st.dictionaries(members, json_values),
)  # fmt: skip
def test_no_members_raise_anything_else(
    kind: str, given_members: dict[str, Any]
) -> None:
    attempt(dumps({"type": kind, **given_members}))
    attempt(dumps({"type": kind, **given_members}, ensure_ascii=False))


@given(data=st.data())
def test_no_damage_to_a_good_frame_raises_anything_else(
    data: st.DataObject, client_frames: list[str]
) -> None:
    raw = bytearray(data.draw(st.sampled_from(client_frames)).encode())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place : place + data.draw(st.integers(0, 3))] = data.draw(
        st.binary(max_size=3) | st.sampled_from([b'"', b"[", b"{}", b"null", b"\\u", b"9" * 25])
    )  # fmt: skip
    attempt(bytes(raw))
