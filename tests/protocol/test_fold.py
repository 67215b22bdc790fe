"""A fold shows what the log says, takes everything once, and never guesses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from protocol.content import Config, TextProof, Timing
from protocol.events import (
    ConfigEvent,
    DeltaEvent,
    InvalidCall,
    LogEvent,
    ReasoningEvent,
    RefusalEvent,
    SkipEvent,
    TextEvent,
    ToolDeltaEvent,
    ToolResultEvent,
    first_seq,
)
from protocol.fold import ConversationView, GapError, fold
from protocol.merge import merge
from protocol.text import Text, proof
from tests.protocol.logs import AT, Log, logs, one_turn


@given(events=logs(), data=st.data())
def test_what_comes_twice_changes_nothing(
    events: list[LogEvent], data: st.DataObject
) -> None:
    """A client that resumes, at any number, from frames that were merged anew."""
    view = ConversationView()
    at = data.draw(st.integers(0, len(events)))
    fold(events[:at], view)
    back = data.draw(st.integers(0, at))
    again = merge(events[back:])
    try:
        fold(again, view)
    except GapError as caught:
        # Where a frame's known part can't be told, the cursor still resumes.
        gap = caught
    else:
        assert view == fold(events)
        return
    assert isinstance(gap.event, TextEvent)
    assert first_seq(gap.event) <= gap.last == view.last == at
    assert fold(merge(events[at:]), view) == fold(events)


@given(events=logs(), data=st.data())
def test_any_suffix_of_a_log_can_be_shown(
    events: list[LogEvent], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(events)))
    view = fold(events[at:])
    assert view.last == (len(events) if events[at:] else 0)
    assert view == fold(merge(events[at:]))
    for turn in view.turns.values():
        assert turn.proven is (None if not turn.whole else True)


def test_a_view_shows_messages_and_turns_in_order() -> None:
    log = Log()
    log.add(ConfigEvent, config=Config(model="demo/echo"))
    log.start()
    view = fold(log.events)
    assert view.running is view.turns[3]
    log.of_turn(ReasoningEvent, text="hm")
    log.say("Hell", "o")
    log.usage()
    log.done()
    log.start()
    log.of_turn(RefusalEvent, text="no")
    log.usage()
    log.fail()
    log.done("failed")
    view = fold(log.events)
    first, second = view.turns.values()
    assert view.config.model == "demo/echo"
    assert view.timeline == [log.events[1], first, log.events[8], second]
    assert (first.message, first.model, first.at) == (2, "m", AT)
    assert (first.text, first.reasoning, first.status) == ("Hello", "hm", "completed")
    assert first.timing == Timing(queue_ms=1, total_ms=2)
    assert first.usage is not None
    assert second.error is not None
    assert (second.text, second.refusal, second.status) == ("", "no", "failed")
    assert view.running is None
    assert view.last == len(log.events)


def test_arguments_are_shown_as_they_come_until_the_call_is_complete() -> None:
    log = one_turn("Let me see. ")
    log.of_turn(ToolDeltaEvent, call="k", name="weather", text='{"pla')
    log.of_turn(ToolDeltaEvent, call="k", name="weather", text='ce"')
    call = fold(log.events).turns[2].calls["k"]
    assert (call.name, call.status, call.partial) == (
        "weather",
        "streaming",
        '{"place"',
    )
    assert call.arguments is UNSET
    log.call("k", arguments={"place": "Rome"})
    log.of_turn(ToolDeltaEvent, call="k", name="weather", text="late")
    call = fold(log.events).turns[2].calls["k"]
    assert (call.status, call.partial, call.position) == ("open", "", 12)
    assert call.arguments == {"place": "Rome"}
    log.result("k")
    call = fold(log.events).turns[2].calls["k"]
    assert (call.status, call.output, call.by) == ("ok", 1, "ann")


def test_a_call_that_never_was_complete_is_gone_when_the_turn_ends() -> None:
    log = one_turn()
    log.of_turn(ToolDeltaEvent, call="k", name="weather", text='{"pla')
    log.result("bad", "invalid")
    log.done("incomplete")
    calls = fold(log.events).turns[2].calls
    assert [(one.call, one.name, one.status) for one in calls.values()] == [
        ("bad", None, "invalid")
    ]


def test_a_call_that_could_not_be_run_shows_what_the_model_wrote() -> None:
    log = one_turn()
    wrote = InvalidCall(name="t", arguments='{"a"', batch=2, index=1, upstream_id="u")
    log.of_turn(
        ToolResultEvent, call="k", status="invalid", output="x", by="server",
        invalid=wrote,
    )  # fmt: skip
    call = fold(log.events).turns[2].calls["k"]
    assert (call.name, call.batch, call.index) == ("t", 2, 1)
    assert (call.status, call.partial, call.arguments) == ("invalid", '{"a"', UNSET)


def test_a_cut_drops_the_answer_behind_it_and_nothing_else() -> None:
    log = one_turn("Grüß", "e aus", " Köln")
    log.of_turn(ReasoningEvent, text="thinking")
    log.result("k")
    log.cut(keep_through=4)
    log.of_turn(DeltaEvent, text=" late")
    log.answer[2].pop()
    log.usage()
    log.done("interrupted")
    for events in (log.events, merge(log.events)):
        turn = fold(events).turns[2]
        assert (turn.text, turn.reasoning) == ("Grüße aus", "thinking")
        assert turn.calls["k"].position == len("Grüße aus")
        assert turn.cut is not None
        assert turn.proven is True
    log.cut(keep_through=3)
    turn = fold(log.events).turns[2]
    assert (turn.text, turn.status, turn.proven) == ("Grüß", "interrupted", True)


def test_a_copy_that_differs_is_not_proven() -> None:
    log = one_turn("Hello", " you")
    log.done()
    wrong = [replace(log.events[2], text="hello"), *log.events[3:]]
    assert fold(log.events[:4]).turns[2].proven is None
    assert fold(log.events).turns[2].proven is True
    assert fold([*log.events[:2], *wrong]).turns[2].proven is False
    short = replace(log.events[-1], text=TextProof(bytes=5, crc32=proof("Hello").crc32))
    assert fold([*log.events[:-1], short]).turns[2].proven is False


def test_a_cut_of_a_turn_that_retention_dropped_is_passed_over() -> None:
    log = one_turn("old")
    log.done()
    log.start()
    log.say("new")
    log.cut(keep_through=2, turn=2)
    view = fold(log.events[4:])
    assert list(view.turns) == [6]
    assert view.last == 8


@pytest.mark.parametrize("count", [1, 2, 5])
def test_an_event_after_a_gap_does_not_fit(count: int) -> None:
    log = one_turn("a", "b", "c", "d", "e")
    view = fold(log.events[:2])
    before = fold(log.events[:2])
    event = merge(log.events[2 + count :] or [replace(log.events[-1], seq=9)])[0]
    with pytest.raises(GapError, match="do not fit after 2") as caught:
        view.apply(event)
    assert (caught.value.last, caught.value.event) == (2, event)
    assert view == before
    assert view.apply(log.events[2])


def test_of_text_that_is_known_in_part_the_rest_is_taken() -> None:
    log = one_turn("a", "b", "c", "d")
    merged = merge(log.events[3:])[0]
    view = fold(log.events[:5])
    assert first_seq(merged) == 4
    assert view.apply(merged)
    assert view == fold(log.events)
    assert not view.apply(merged)
    assert view == fold(log.events)


@pytest.mark.parametrize("case", ["inside a frame", "other text", "run was left"])
def test_text_that_can_not_be_told_apart_does_not_fit(case: str) -> None:
    log = one_turn("a", "b", "c")
    if case == "run was left":
        log.add(SkipEvent)
    log.say("d")
    frame = DeltaEvent(conversation="c", seq=9, first=4, turn=2, text="bcdefg")
    view = fold(merge(log.events) if case == "inside a frame" else log.events)
    if case == "other text":
        frame = replace(frame, text="bCdefg")
    last = view.last
    with pytest.raises(GapError):
        view.apply(frame)
    assert view.last == last
    assert view.turns[2].text == "abcd"


def test_what_began_inside_a_frame_is_not_mistaken_for_what_came_after_it() -> None:
    log = one_turn("a", "b", "b", "c")
    view = fold([*merge(log.events[:4]), log.events[4]])
    with pytest.raises(GapError):
        view.apply(DeltaEvent(conversation="c", seq=6, first=4, turn=2, text="bbc"))
    assert view.turns[2].text == "abb"


@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_of_skipped_numbers_that_are_known_in_part_the_rest_is_taken(
    first: int,
) -> None:
    view = fold(one_turn("a").events)
    assert view.last == 3
    assert view.apply(SkipEvent(conversation="c", first=first, seq=7))
    assert view.last == 7


def test_a_copy_is_not_called_wrong_for_what_was_skipped() -> None:
    log = one_turn("Hello", " you")
    log.done()
    *before, word, end = log.events
    skipped = SkipEvent(conversation="c", seq=word.seq)
    assert fold([*before, skipped, end]).turns[2].proven is None, "a `cut` may follow"
    wrong = replace(before[-1], text="hello you")
    assert fold([*before[:-1], wrong, skipped, end]).turns[2].proven is False
    apart = [replace(event, seq=event.seq + 1) for event in (word, end)]
    late = [*before, SkipEvent(conversation="c", seq=word.seq), *apart]
    assert fold(late).turns[2].proven is True, "nothing of the text was skipped"


def test_the_parts_of_an_answer_are_its_text_with_the_calls_between() -> None:
    log = one_turn("Let me see. ")
    log.call("a")
    log.call("b")
    log.say("Done.")
    turn = fold(log.events).turns[2]
    a, b = turn.calls.values()
    assert list(turn.parts()) == ["Let me see. ", a, b, "Done."]
    only = one_turn()
    only.call("a")
    turn = fold(only.events).turns[2]
    assert list(turn.parts()) == list(turn.calls.values())
    assert list(fold(one_turn("a").events).turns[2].parts()) == ["a"]
    assert list(fold(one_turn().events).turns[2].parts()) == []


def test_a_view_is_of_one_conversation() -> None:
    view = fold(one_turn("a").events)
    with pytest.raises(ValueError, match="'d' is not 'c'"):
        view.apply(SkipEvent(conversation="d", seq=view.last + 1))
    assert fold([]) == ConversationView()


def test_text_that_grows_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand deltas cost ten thousand appends; only a reader joins them."""
    events = one_turn(*["a token "] * 10_000).events
    with monkeypatch.context() as patch:
        patch.delattr(Text, "__str__")
        view = fold(events)
    assert view.turns[2].text == "a token " * 10_000
