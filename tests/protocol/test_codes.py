"""What a client should do after a close."""

import pytest

from protocol.codes import Advice, CloseCode, advice


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (1000, "stop"),
        (1001, "back_off"),
        (1003, "stop"),
        (1006, "back_off"),
        (1007, "stop"),
        (1009, "back_off"),
        (1011, "back_off"),
        (1012, "back_off"),
        (1013, "back_off"),
        (4399, "back_off"),
        (4400, "stop"),
        (4499, "stop"),
        (4500, "back_off"),
        (4599, "back_off"),
        (4600, "reconnect_now"),
        (4699, "reconnect_now"),
        (4700, "back_off"),
    ],
)
def test_a_code_says_whether_to_come_back(code: int, wanted: Advice) -> None:
    assert advice(code) == wanted


def test_our_own_codes_say_it_by_their_range() -> None:
    wanted = {44: "stop", 45: "back_off", 46: "reconnect_now"}
    for code in CloseCode:
        if code >= 4000:
            assert advice(code) == wanted[code // 100]
