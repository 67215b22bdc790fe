"""Two sides are the same where the protocol says so, and only there."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from protocol.codec import encode
from tests.protocol.logs import Log, one_turn
from wsserver.operations.replay.sight import Sight
from wsserver.operations.replay.verdict import first_difference, unproven


def log(*pieces: str, status: str = "completed", calls: int = 0) -> Log:
    made = one_turn(*pieces)
    for number in range(calls):
        made.call(f"call_2.{number}")
        made.result(f"call_2.{number}")
    made.done(status)
    return made


def sight(made: Log) -> Sight:
    seen = Sight()
    seen.said("a", {"type": "open", "id": "o"})
    reply = {"type": "reply", "re": "o", "ok": True, "outcome": "created"}
    seen.shown("a", reply | {"conversation": "c", "epoch": "e", "oldest": 1})
    for event in made.events:
        seen.shown("a", orjson.loads(encode(event)))
    return seen


def test_what_is_the_same_is_not_told() -> None:
    one, other = sight(log("Good ", "day", calls=2)), sight(log("Good day", calls=2))
    assert first_difference(one, one, texts=True) is None
    assert first_difference(one, other, texts=True) is None
    assert one.faults == []
    assert unproven(one) is None


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        (
            log("Good day"),
            log("Good evening"),
            "its text was 'Good day', is 'Good evening'",
        ),
        (
            log("Good day"),
            log("Good day", "!"),
            "its text was 'Good day', is 'Good day!'",
        ),
        (
            log("Good day"),
            log("Good day", status="failed"),
            "its status was 'completed'",
        ),
        (log("a", status="interrupted"), log("b", status="interrupted"), "its text"),
        (log("a", calls=1), log("a"), "its calls was [('t', 'ok')], is []"),
        (log("a"), Log(), "the message `m` is not there"),
    ],
)
def test_what_differs_is_told(was: Log, now: Log, told: str) -> None:
    assert told in (first_difference(sight(was), sight(now), texts=True) or "")


def test_a_stopped_text_may_be_longer() -> None:
    short = sight(log("Good", status="interrupted"))
    long = sight(log("Good day", status="interrupted"))
    assert first_difference(short, long, texts=True) is None
    assert first_difference(long, short, texts=True) is None


def test_texts_may_be_left_out() -> None:
    one, other = sight(log("Good day")), sight(log("Good night"))
    assert first_difference(one, other, texts=False) is None


def test_a_message_more_is_told() -> None:
    more = log("Good day")
    more.message("Again")
    told = first_difference(sight(log("Good day")), sight(more), texts=True)
    assert told == "c: the message `m` was not there"


def test_another_message_is_told() -> None:
    one, other = Log(), Log()
    one.message("Hi")
    other.message("Ho")
    told = first_difference(sight(one), sight(other), texts=True)
    assert told == "c: the message `m`: its content was 'Hi', is 'Ho'"


def test_a_text_that_is_not_the_servers_is_told() -> None:
    made = log("Good day")
    frames = [orjson.loads(encode(event)) for event in made.events]
    seen = Sight()
    for frame in frames:
        seen.shown(
            "a", frame | ({"text": "Good evening"} if frame["type"] == "delta" else {})
        )
    assert unproven(seen) == "c: the text of turn 1 is not what the server keeps"


def without(kind: str) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    return lambda frames: [frame for frame in frames if frame["type"] != kind]


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (without("delta"), "`done` with the numbers 5 to 5 does not fit after 2"),
        (lambda frames: [*frames, frames[-1]], "does not fit after 5"),
        (lambda frames: [*frames, frames[2] | {"seq": 6}], "came after its turn"),
    ],
)
def test_a_broken_rule_is_told(
    spoil: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], told: str
) -> None:
    frames = [orjson.loads(encode(event)) for event in log("Good ", "day").events]
    seen = sight(Log())
    for frame in spoil(frames):
        seen.shown("a", frame)
    assert told in seen.faults[0]


def test_events_before_the_reply_are_told() -> None:
    seen = Sight()
    seen.shown("a", orjson.loads(encode(log("x").events[0])))
    assert "came before the reply to `open`" in seen.faults[0]
