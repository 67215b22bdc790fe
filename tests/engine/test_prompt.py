"""The prompt: what stands where, what is left out."""

from itertools import chain
from typing import Any

import msgspec
import orjson
import pytest

from protocol.content import ImagePart, ImageUrl, TextPart
from tests.engine.story import Story, check_prompt, short
from wsserver.engine.prompt import BYTES_PER_TOKEN


def test_turns_in_order_with_instructions_before() -> None:
    story = Story()
    story.ask("one")
    story.say("1", " and")
    story.say("secret", kind="reasoning")
    story.say(" more")
    story.done()
    story.ask("two")
    prompt = story.prompt(instructions="be brief")
    assert short(prompt) == [
        "system: be brief", "user: one", "assistant: 1 and more", "user: two",
    ]  # fmt: skip
    check_prompt(prompt)


def test_parts_reach_the_model_as_parts() -> None:
    story = Story()
    image = ImagePart(image_url=ImageUrl(url="https://example.org/x.png"))
    story.ask([TextPart(text="what is this?"), image])
    assert story.prompt()[0]["content"] == [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}},
    ]


def test_a_message_without_text_does_not_spoil_the_conversation() -> None:
    story = Story()
    story.ask("")
    assert short(story.prompt()) == ["user: (empty message)"]
    check_prompt(story.prompt())


def test_a_message_stands_where_its_turn_began() -> None:
    story = Story()
    story.ask("one")
    story.say("1")
    second = story.message("two")
    story.say("!")
    third = story.message("three")
    story.done()
    story.start(second)
    story.say("2")
    assert short(story.prompt()) == [
        "user: one", "assistant: 1!", "user: two", "assistant: 2",
    ]  # fmt: skip
    story.done()
    story.start(third)
    assert short(story.prompt())[-1] == "user: three"
    check_prompt(story.prompt())


def test_a_turn_that_showed_nothing_leaves_its_message_alone() -> None:
    story = Story()
    story.ask("one")
    story.say("only thought", kind="reasoning")
    story.done("interrupted")
    story.ask("two")
    assert short(story.prompt()) == ["user: one", "user: two"]


@pytest.mark.parametrize(
    ("status", "model_calls", "stays"),
    [
        ("interrupted", 0, False),
        ("interrupted", 1, True),
        ("failed", 0, True),
        ("incomplete", 1, True),
    ],
)
def test_a_message_that_was_taken_back_leaves_nothing(
    status: str, model_calls: int, stays: bool
) -> None:
    story = Story()
    story.ask("one")
    story.done(status, model_calls)
    story.ask("two")
    wanted = ["user: one", "user: two"] if stays else ["user: two"]
    assert short(story.prompt()) == wanted


def test_a_refusal_is_what_was_said_unless_there_was_an_answer() -> None:
    story = Story()
    story.ask("one")
    story.say("I can", " not.", kind="refusal")
    story.done()
    story.ask("two")
    story.say("Well, ")
    story.say("no.", kind="refusal")
    assert short(story.prompt())[1::2] == ["assistant: I can not.", "assistant: Well, "]


def test_calls_and_results_stand_in_pairs_in_call_order() -> None:
    story = Story()
    story.ask()
    story.say("Let me see.")
    calls = [story.call(n, 0) for n in range(3)]
    for n in (2, 0, 1):
        story.result(calls[n], f"r{n}")
    story.say("Now this.")
    story.result(story.call(3, 1), {"sky": "clear"})
    story.say("It is clear.")
    prompt = story.prompt()
    assert short(prompt) == [
        "user: hi",
        "assistant: Let me see. ['weather', 'weather', 'weather']",
        "tool: r0", "tool: r1", "tool: r2",
        "assistant: Now this. ['weather']",
        'tool: {"sky":"clear"}',
        "assistant: It is clear.",
    ]  # fmt: skip
    check_prompt(prompt, asks=False)


def test_calls_without_text_between_are_rounds_of_their_own() -> None:
    story = Story()
    story.ask()
    for batch in range(3):
        story.result(story.call(batch, batch), f"r{batch}")
    assert short(story.prompt())[1:] == [
        "assistant:  ['weather']", "tool: r0",
        "assistant:  ['weather']", "tool: r1",
        "assistant:  ['weather']", "tool: r2",
    ]  # fmt: skip
    check_prompt(story.prompt())


def test_an_open_call_has_a_note_for_a_result() -> None:
    story = Story()
    story.ask()
    story.result(story.call(0, 0), "r0")
    story.call(1, 0)
    prompt = story.prompt()
    assert short(prompt)[-2:] == ["tool: r0", "tool: The call was cancelled."]
    check_prompt(prompt)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("weather", "weather"),
        ("", "unknown"),
        ("no such tool!", "no_such_tool_"),
        ("x" * 99, "x" * 64),
    ],
)
def test_a_call_that_was_not_run_is_told_with_its_fault(name: str, told: str) -> None:
    story = Story()
    story.ask()
    story.invalid(0, 0, name)
    story.result(story.call(1, 0), "r1")
    prompt = story.prompt()
    check_prompt(prompt)
    assert short(prompt)[-2:] == ["tool: bad", "tool: r1"]
    made = prompt[1]["tool_calls"][0]["function"]
    assert made == {"name": told, "arguments": '{"invalid":"{"}'}


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("", "(no output)"),
        ("text", "text"),
        (None, "null"),
        (False, "false"),
        (2**70, str(2**70)),
        ({"b": [1.5]}, '{"b":[1.5]}'),
    ],
)
def test_any_output_reaches_the_model_as_text(output: Any, told: str) -> None:
    story = Story()
    story.ask()
    story.result(story.call(0, 0), output)
    assert story.prompt()[-1]["content"] == told


def test_arguments_stay_as_the_model_wrote_them() -> None:
    story = Story()
    story.ask()
    exact = b'{"n": 123456789012345678901234567890, "x": 1.10}'
    story.call(0, 0, arguments=msgspec.Raw(exact), upstream_id=None)
    made = story.prompt()[1]["tool_calls"][0]
    assert made["function"]["arguments"] == exact.decode()
    assert made["id"] == f"call_{story.turn}.0", "its own id where it had none"


# Cuts


def test_text_is_cut_and_calls_stay() -> None:
    story = Story()
    story.ask()
    first = story.say("one", " two")
    story.result(story.call(0, 0), "r")
    story.say(" three", " four")
    story.cut(first - 1)
    story.done("interrupted")
    story.ask("next")
    assert short(story.prompt()) == [
        "user: hi", "assistant: one ['weather']", "tool: r", "user: next",
    ]  # fmt: skip


def test_a_cut_never_adds_and_the_shortest_counts() -> None:
    story = Story()
    turn = story.ask()
    numbers = [story.say(text) for text in ("a", "b", "c", "d")]
    story.done()
    story.cut(numbers[2], turn)
    story.cut(numbers[0], turn)
    story.cut(numbers[3], turn)
    story.ask("next")
    story.cut(numbers[1], turn)
    assert short(story.prompt()) == ["user: hi", "assistant: a", "user: next"]


def test_a_cut_of_a_turn_that_is_no_longer_kept_is_passed_over() -> None:
    story = Story()
    old = story.ask("old")
    story.say("x")
    story.done()
    kept = story.head
    story.cut(old + 1, old)
    story.ask("new")
    steering = story.message("more", steers=story.turn)
    story.entries = story.entries[kept:]
    assert short(story.prompt()) == ["user: new", "user: more"]
    assert short(story.prompt(waiting=(steering,))) == ["user: new"]


def test_an_id_that_an_upstream_uses_again_stands_once() -> None:
    story = Story()
    story.ask()
    for batch in range(2):
        story.result(story.call(batch, batch, upstream_id="call_0"), f"r{batch}")
    story.done()
    story.ask()
    story.result(story.call(0, 0, upstream_id="call_2_1"), "r2")
    prompt = story.prompt()
    check_prompt(prompt)
    ids = [call["id"] for m in prompt for call in m.get("tool_calls", ())]
    assert ids[0] == "call_0", "as the upstream knows it, where that can be"
    assert len(set(ids)) == 3


# Steering


def test_what_came_before_the_last_result_joins_behind_it() -> None:
    story = Story()
    turn = story.ask()
    story.say("Let me see.")
    first = story.call(0, 0)
    second = story.call(1, 0)
    story.message("also Milan", turn)
    story.result(second, "r1")
    story.message("and Pisa", turn)
    story.result(first, "r0")
    story.say("Done.")
    story.done()
    story.ask("next")
    prompt = story.prompt()
    assert short(prompt) == [
        "user: hi", "assistant: Let me see. ['weather', 'weather']",
        "tool: r0", "tool: r1", "user: also Milan", "user: and Pisa",
        "assistant: Done.", "user: next",
    ]  # fmt: skip
    check_prompt(prompt)


def test_what_came_after_the_last_result_joins_at_the_next_round_or_the_end() -> None:
    story = Story()
    turn = story.ask()
    story.message("before any call", turn)
    story.result(story.call(0, 0), "r0")
    story.message("too late for this call", turn)
    story.say("More.")
    story.result(story.call(1, 1), "r1")
    story.message("at the end", turn)
    prompt = story.prompt()
    assert short(prompt)[1:] == [
        "assistant:  ['weather']", "tool: r0", "user: before any call",
        "assistant: More. ['weather']", "tool: r1", "user: too late for this call",
        "user: at the end",
    ]  # fmt: skip
    check_prompt(prompt)


def test_a_message_that_waits_is_no_part_of_the_prompt() -> None:
    story = Story()
    turn = story.ask()
    joined = story.message("joined", turn)
    waits = story.message("waits", turn)
    story.message("just queued")
    assert short(story.prompt(waiting=(waits,))) == ["user: hi", "user: joined"]
    assert short(story.prompt(waiting=(joined, waits))) == ["user: hi"]


def test_a_message_that_got_a_turn_of_its_own_stands_only_there() -> None:
    story = Story()
    turn = story.ask()
    call = story.call(0, 0)
    late = story.message("late", turn)
    story.result(call, "cancelled", "cancelled")
    story.done("interrupted")
    story.start(late)
    assert short(story.prompt()) == [
        "user: hi", "assistant:  ['weather']", "tool: cancelled", "user: late",
    ]  # fmt: skip


# Length


def test_the_oldest_turns_go_whole() -> None:
    story = Story()
    for number in range(6):
        story.ask(f"q{number} " + "x" * 100)
        story.result(story.call(0, 0), "y" * 100)
        story.say("z" * 100)
        story.done()
    whole = story.prompt(instructions="be brief")
    head, turns = whole[:1], [whole[n : n + 4] for n in range(1, len(whole), 4)]
    sizes = [len(orjson.dumps(turn)) for turn in turns]
    for tokens in range(1200):
        prompt = story.prompt(instructions="be brief", context_tokens=tokens)
        room = tokens * BYTES_PER_TOKEN - len(orjson.dumps(head))
        fit = max(n for n in range(7) if n <= 1 or sum(sizes[6 - n :]) <= room)
        assert prompt == head + list(chain(*turns[6 - fit :]))
    enough = story.prompt(instructions="be brief", context_tokens=10_000)
    assert enough == whole


def test_a_turn_without_its_message_is_left_out() -> None:
    story = Story()
    story.ask("one")
    queued = story.message("two")
    story.say("1")
    story.done()
    trimmed = story.head
    story.start(queued)
    story.say("2")
    story.done()
    story.ask("three")
    story.entries = story.entries[trimmed:]
    prompt = story.prompt()
    assert short(prompt) == ["user: three"]
    check_prompt(prompt)


def test_nothing_is_a_prompt_of_nothing() -> None:
    assert Story().prompt() == []
    assert Story().prompt(context_tokens=5) == []
