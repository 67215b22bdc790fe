"""Numbers that no frame may hold: what is said of them."""

import pytest

from protocol.codec import decode_command
from protocol.frame_error import FrameError

FRAME = (
    '{"type":"configure","id":"a","conversation":"c","config":{"params":{"seed":%s}}}'
)


@pytest.mark.parametrize(
    ("number", "param", "message"),
    [
        *(
            (
                number,
                "$.config.params.seed",
                (
                    "An integer here is beyond 64 bits; send a smaller one, or send it as"
                    " a string."
                ),
            )
            for number in (str(10**30), "9" * 400)
        ),
        *(
            (
                number,
                "$.config.params[*]",
                (
                    "`config.params[*]` holds a number too large to be read; send a smaller"
                    " one, or send it as a string."
                ),
            )
            for number in ("9" * 5000, "1e999")
        ),
    ],
    ids=range(4),
)
def test_what_is_wrong_with_a_number(number: str, param: str, message: str) -> None:
    text = FRAME % number
    with pytest.raises(FrameError) as caught:
        decode_command(text, max_bytes=10_000)
    error = caught.value
    assert (error.param, error.message) == (param, message)
