"""Where a JSON text is deep, found without decoding it."""

import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.codec import decode_command
from protocol.frame_error import FrameError
from protocol.nesting import deep_member

NAMES = st.text(alphabet='[]{}\\":, é', max_size=6)
VALUES = st.recursive(
    st.none() | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


def height(value: Any) -> int:
    match value:
        case dict():
            return 1 + max(map(height, value.values()), default=0)
        case list():
            return 1 + max(map(height, value), default=0)
        case _:
            return 0


@given(st.dictionaries(NAMES, VALUES), st.integers(1, 6), st.booleans())
def test_the_first_member_that_is_too_deep(
    members: dict[str, Any], limit: int, spaced: bool
) -> None:
    text = orjson.dumps(members, option=orjson.OPT_INDENT_2 if spaced else 0).decode()
    deep = [name for name, value in members.items() if height(value) >= limit]
    spelled = orjson.dumps(deep[0]).decode()[1:-1] if deep else None
    assert deep_member(text, limit) == spelled


@pytest.mark.parametrize("deepest", [100, 5_000])
@pytest.mark.parametrize("name", ["x", "a b", 'q"\\\\', "n" * 10_000])
def test_a_command_is_told_which_member_it_is(name: str, deepest: int) -> None:
    lists = "[" * deepest + "]" * deepest
    key = orjson.dumps(name).decode()
    text = f'{{"type":"close","id":"a","conversation":"c","y":[[]],{key}:{lists}}}'
    with pytest.raises(FrameError) as caught:
        decode_command(text, max_bytes=100_000)
    error = caught.value
    assert (error.code, error.re) == ("bad_frame", "a")
    assert error.param is not None
    assert error.param.startswith(f"$.{key[1:-1]}"[:100])
    assert len(error.param) <= 200
    assert len(error.message) < 400


def test_it_is_found_in_little_time() -> None:
    lists = "[" * 5_000 + "]" * 5_000
    for many in ("[]," * 80_000, '"[{",' * 40_000):
        text = f'{{"a":[{many}[]],"z":{lists}}}'
        began = time.process_time()
        assert deep_member(text, 64) == "z"
        assert time.process_time() - began < 0.1
