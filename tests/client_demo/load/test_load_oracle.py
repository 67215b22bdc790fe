"""The oracle finds each kind of fault, and nothing in a log without one."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_demo.load.comparison import compare
from client_demo.load.violations import KINDS
from protocol.control import CaughtUp, ToolRequest
from protocol.events import LogEvent
from protocol.merge import merge
from tests.client_demo.load.log import Heard, event, hear, opened, proof, turn

GOOD = [*turn(1, "a", "bc", "d"), *turn(8, "e", "é", send="m2")]
CALL = event(
    "tool_call", 3, turn=2, call="k", name="t", arguments={}, batch=0, index=0,
    deadline_at="2026-01-02T03:04:05.678Z",
)  # fmt: skip
RESULT = event("tool_result", 4, turn=2, call="k", status="ok", output=1, by="me")
START = GOOD[1]


def renumbered(events: list[LogEvent], by: int = 1) -> list[LogEvent]:
    return [msgspec.structs.replace(one, seq=one.seq + by) for one in events]


def replaced(at: int, *events: LogEvent) -> list[LogEvent]:
    return [*GOOD[:at], *events, *GOOD[at + 1 :]]


def text(at: int, text: str) -> LogEvent:
    return msgspec.structs.replace(GOOD[at], text=text)


def test_a_good_log_has_no_fault() -> None:
    assert hear(*GOOD).kinds == []


@given(st.lists(st.booleans(), min_size=len(GOOD), max_size=len(GOOD)))
def test_it_makes_no_difference_how_deltas_were_merged(cuts: list[bool]) -> None:
    heard = Heard()
    heard.oracle.opened(opened(), None)
    batch: list[LogEvent] = []
    for one, cut in zip(GOOD, cuts, strict=True):
        batch.append(one)
        if cut:
            for merged in merge(batch):
                heard.oracle.event(merged)
            batch = []
    for merged in merge(batch):
        heard.oracle.event(merged)
    heard.oracle.finish()
    assert heard.kinds == []
    compare(heard.oracle, hear(*GOOD).oracle, heard.found)
    assert heard.kinds == []


@pytest.mark.parametrize("lost", range(1, len(GOOD)))
def test_every_lost_frame_is_a_gap(lost: int) -> None:
    kinds = hear(*GOOD[:lost], *GOOD[lost + 1 :]).kinds
    assert ("gap" in kinds) or (lost == len(GOOD) - 1 and kinds == ["no_done"])


@pytest.mark.parametrize("twice", range(len(GOOD)))
def test_every_doubled_frame_is_repeated(twice: int) -> None:
    heard = hear(*GOOD[: twice + 1], *GOOD[twice:])
    assert "repeated" in heard.kinds
    assert ("second_done" in heard.kinds) == (GOOD[twice].seq in (7, 13))


def test_frames_that_change_places_are_reordered() -> None:
    heard = hear(*GOOD[:3], GOOD[4], GOOD[3], *GOOD[5:])
    assert heard.kinds[:2] == ["gap", "reordered"]
    assert heard.said[1] == (4, "4 came after 5")


@pytest.mark.parametrize(
    ("kind", "events"),
    [
        ("wrong_text", replaced(3, text(3, "bx"))),
        ("wrong_text", replaced(3, text(3, "b"))),
        ("second_done", [*GOOD, *renumbered(GOOD[-1:])]),
        ("second_usage", [*GOOD[:-2], GOOD[-2], *renumbered(GOOD[-2:])]),
        ("no_usage", [*GOOD[:-2], *renumbered(GOOD[-1:], -1)]),
        ("after_done", [*GOOD, event("delta", 14, turn=9, text="x")]),
        ("no_start", [GOOD[0], event("skip", 2), *GOOD[2:7]]),
        ("bad_start", [GOOD[0], msgspec.structs.replace(START, turn=7), event("skip", 3)]),
        ("bad_start", [event("skip", 1), *GOOD[1:7]]),
        ("bad_start", [*GOOD[:3], msgspec.structs.replace(START, seq=4)]),
        ("two_turns", [*GOOD[:3], *turn(4, "x", send="m2")]),
        ("no_done", GOOD[:-1]),
        ("message_twice", [*GOOD[:7], *turn(8, "x", send="m1")]),
        ("no_error", [*GOOD[:-1], msgspec.structs.replace(GOOD[-1], status="failed")]),
        ("bad_frame", [*GOOD, event("delta", 14, first=15, turn=9, text="x")]),
    ],
)  # fmt: skip
def test_it_finds_each_fault_of_a_turn(kind: str, events: list[LogEvent]) -> None:
    assert kind in hear(*events).kinds


def test_tool_calls_settle_once() -> None:
    ends = [event("usage", 5, turn=2, input_tokens=1, output_tokens=1, estimated=False,
                  model_calls=2),
            event("done", 6, turn=2, status="completed", text=proof(""),
                  timing={"queue_ms": 0, "total_ms": 1})]  # fmt: skip
    begin = GOOD[:2]
    assert hear(*begin, CALL, RESULT, *ends).kinds == []
    again = renumbered([RESULT, *ends])
    assert hear(*begin, CALL, RESULT, *again).kinds == ["call_settled_twice"]
    early = renumbered(ends, -1)
    assert hear(*begin, CALL, *early).kinds == ["call_unsettled"]
    assert hear(*begin, *renumbered([RESULT, *ends], -1)).kinds == ["call_unknown"]
    shown = hear(*begin, CALL, *renumbered([CALL, RESULT, *ends]))
    assert shown.kinds == ["call_unknown"]


def cut_log(said: str) -> Heard:
    cut = event("cut", 6, turn=2, keep_through=3, by="me", text=proof(said))
    usage, done = turn(1, "a", "bc", "d", text=proof(said), status="interrupted")[-2:]
    return hear(*GOOD[:5], cut, *renumbered([usage, done]))


def test_a_cut_is_held_to_its_proof() -> None:
    assert cut_log("a").kinds == []
    assert cut_log("x").kinds == ["wrong_text", "wrong_text"]


def test_who_cut_an_answer_that_had_ended_is_held_to_the_cut() -> None:
    for kept, faults in (("a", []), ("x", ["wrong_text"])):
        rest = event("skip", 4, first=4)
        cut = event("cut", 8, turn=2, keep_through=3, by="me", text=proof(kept))
        assert hear(*GOOD[:3], rest, *GOOD[4:7], cut).kinds == faults


def test_no_text_comes_after_the_reply_to_an_interrupt() -> None:
    heard = Heard()
    heard.oracle.opened(opened(), None)
    for one in GOOD[:3]:
        heard.oracle.event(one)
    heard.oracle.interrupted(2)
    heard.oracle.event(GOOD[3])
    assert heard.kinds == ["text_after_interrupt"]
    heard.oracle.opened(opened("replay", head=4), 4)
    heard.oracle.event(GOOD[4])
    assert len(heard.kinds) == 1, "another connection was promised nothing"


def resumed(*, after: int, **members: object) -> Heard:
    heard = Heard()
    heard.oracle.opened(opened(), None)
    for one in GOOD[:after]:
        heard.oracle.event(one)
    usual = {"outcome": "replay", "head": len(GOOD)}
    heard.oracle.opened(opened(**usual | members), after)
    return heard


def test_a_resume_with_a_hole_is_a_gap() -> None:
    heard = resumed(after=4)
    for one in GOOD[5:]:
        heard.oracle.event(one)
    assert heard.kinds[0] == "gap"
    whole = resumed(after=4)
    for one in GOOD[4:]:
        whole.oracle.event(one)
    whole.oracle.finish()
    assert whole.kinds == []


def test_a_resume_that_begins_too_early_repeats() -> None:
    heard = resumed(after=4)
    heard.oracle.event(GOOD[3])
    assert heard.kinds == ["repeated"]


def test_what_was_seen_must_not_be_taken_back() -> None:
    assert resumed(after=4, head=3).kinds == ["head_behind"]
    assert resumed(after=4, epoch="f").kinds == ["log_reset"]
    assert resumed(after=4, outcome="reset", reason="expired").kinds == ["log_reset"]


def test_after_a_reset_the_new_log_is_held_to_the_same() -> None:
    heard = resumed(after=4, outcome="reset", reason="epoch_changed", epoch="f")
    for one in GOOD:
        heard.oracle.event(one)
    heard.oracle.finish()
    assert heard.kinds == ["log_reset"]


def test_caught_up_comes_after_all_that_it_speaks_of() -> None:
    heard = resumed(after=4)
    heard.oracle.caught_up(CaughtUp(conversation="c", seq=4))
    heard.oracle.caught_up(CaughtUp(conversation="c", seq=6))
    assert heard.kinds == ["early_caught_up"]


def test_accepted_messages_are_in_the_log() -> None:
    heard = Heard()
    heard.oracle.opened(opened(), None)
    for send in ("m1", "m3"):
        heard.oracle.accepted(send)
    for one in GOOD:
        heard.oracle.event(one)
    heard.oracle.finish()
    assert heard.kinds == ["message_lost"]
    assert heard.said[0][1] == "the message of m3 never came"


def test_a_tool_is_asked_for_once() -> None:
    heard = Heard()
    request = ToolRequest(
        conversation="c", turn=2, call="k", name="t", arguments={}, deadline_ms=9,
        redelivered=False,
    )  # fmt: skip
    heard.oracle.opened(opened(), None)
    heard.oracle.requested(request)
    heard.oracle.requested(msgspec.structs.replace(request, redelivered=True))
    assert heard.kinds == []
    heard.oracle.requested(request)
    assert heard.kinds == ["request_twice"]


@pytest.mark.parametrize(
    ("again", "kinds"),
    [
        (GOOD, []),
        (GOOD[:-1], ["reread_differs"]),
        ([*GOOD, event("config", 14, config={})], ["tail_lost"]),
        (
            replaced(0, msgspec.structs.replace(GOOD[0], content="ho")),
            ["reread_differs"],
        ),
        (replaced(4, text(4, "D")), ["reread_differs"]),
        (replaced(4, event("config", 5, config={})), ["reread_differs"] * 2),
        (replaced(7, event("skip", 8)), ["reread_differs"]),
    ],
)
def test_a_log_reads_the_same_again(again: list[LogEvent], kinds: list[str]) -> None:
    live, second = hear(*GOOD), hear(*again)
    live.kinds.clear()
    compare(live.oracle, second.oracle, live.found)
    assert live.kinds == kinds


def test_text_skipped_after_an_interrupt_may_be_there_again() -> None:
    live = hear(*GOOD[:4], event("skip", 5), *GOOD[5:])
    assert live.kinds == ["wrong_text"], "its proof is of the whole text here"
    live.kinds.clear()
    compare(live.oracle, hear(*GOOD).oracle, live.found)
    assert live.kinds == ["reread_differs"], "nor may the text itself be another"


def test_every_kind_has_its_meaning() -> None:
    assert all(meaning.endswith(".") for meaning in KINDS.values())
