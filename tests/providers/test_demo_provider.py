"""The demo models say what their descriptions promise, and always the same."""

from collections.abc import Sequence
from typing import Any

import anyio
import jsonschema_rs
import orjson
import pytest

from tests.fakes.clocks import jumping_time  # noqa: F401 - a fixture
from wsserver.engine.model import (
    CallFragment,
    Finished,
    ModelEvent,
    ModelRequest,
    Reasoning,
    Refusal,
    Text,
    UpstreamError,
    Usage,
)
from wsserver.providers.demo import DEFAULT_MODEL, DemoProvider

NEVER_ENDING = ("demo/stalling", "demo/silent")
provider = DemoProvider()


def ask(model: str, content: Any = "Tell me something.", **members: Any):
    messages = [{"role": "user", "content": content}]
    return ModelRequest(
        **{"model": model, "messages": messages, "request_id": "r", **members}
    )


async def collect(request: ModelRequest) -> list[ModelEvent]:
    events: list[ModelEvent] = []
    async with provider.stream(request) as batches:
        async for batch in batches:
            events += batch
    return events


def joined(events: Sequence[ModelEvent], kind: type = Text) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


def ending(events: Sequence[ModelEvent]) -> Finished:
    assert not any(isinstance(event, Finished) for event in events[:-1])
    last = events[-1]
    assert isinstance(last, Finished)
    return last


ENDINGS = [
    ("demo/markdown", "stop", Text),
    ("demo/long", "stop", Text),
    ("demo/slow", "stop", Text),
    ("demo/fast", "stop", Text),
    ("demo/chinese", "stop", Text),
    ("demo/emoji", "stop", Text),
    ("demo/tools", "stop", Text),
    ("demo/tools-invalid", "stop", Text),
    ("demo/reasoning", "stop", Text),
    ("demo/refusal", "stop", Refusal),
    ("demo/echo", "stop", Text),
    ("demo/json", "stop", Text),
    ("demo/length", "length", Text),
    ("demo/filtered", "content_filter", Text),
    ("demo/empty", "stop", None),
    ("demo/cut-off", "incomplete", Text),
    ("demo/failing-midway", "incomplete", Text),
    ("demo/failing-late", "error", Text),
]


@pytest.mark.parametrize(("model", "reason", "kind"), ENDINGS)
async def test_each_model_ends_as_it_says(model: str, reason: str, kind: type | None):
    events = await collect(ask(model))
    assert ending(events).reason == reason
    assert bool(joined(events, kind)) if kind else len(events) == 1
    assert not any(isinstance(event, Text) and not event.text for event in events)


def test_each_model_is_listed_and_tested():
    tested = {model for model, _, _ in ENDINGS} | {*NEVER_ENDING, "demo/failing"}
    assert set(provider.models()) == tested
    assert next(iter(provider.models())) == DEFAULT_MODEL
    assert all(provider.accepts(model) for model in tested)
    assert not any("\n" in line for line in provider.models().values())


@pytest.mark.parametrize("model", [model for model, _, _ in ENDINGS])
async def test_the_same_request_has_the_same_answer(model: str):
    assert await collect(ask(model)) == await collect(ask(model))


async def test_usage_counts_each_token_once():
    for model, reason, _ in ENDINGS:
        events = await collect(ask(model, "12345"))
        if reason in ("incomplete", "error"):
            assert ending(events).usage is None
            continue
        thoughts = sum(isinstance(event, Reasoning) for event in events)
        assert ending(events).usage == Usage(
            input_tokens=6,
            output_tokens=len(events) - 1,
            reasoning_tokens=thoughts or None,
        )


async def test_the_default_reacts_to_the_message():
    text = joined(await collect(ask(DEFAULT_MODEL, "Why is *the* sky blue?")))
    assert text.startswith("# Why is \\*the\\* sky blue?\n\nGood question.")
    for part in ("\n## ", "\n1. ", "\n| ", "\n```sh\n", "\n> "):
        assert part in text
    greeting = joined(await collect(ask(DEFAULT_MODEL, "Hello there")))
    assert "Hello!" in greeting
    assert "You said nothing" in joined(await collect(ask(DEFAULT_MODEL, " ")))
    code = joined(await collect(ask(DEFAULT_MODEL, "```py\nprint()\n```")))
    assert "I see code" in code


async def test_a_heading_is_one_short_line():
    text = joined(await collect(ask(DEFAULT_MODEL, "word\n" * 1000)))
    heading, _, _ = text.partition("\n\n")
    assert len(heading) < 80
    assert "\n" not in heading


async def test_the_default_keeps_to_a_schema():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    for model in (DEFAULT_MODEL, "demo/json"):
        events = await collect(ask(model, response_schema=schema))
        value = orjson.loads(joined(events))
        assert jsonschema_rs.is_valid(schema, value)
        assert set(value) == {"n"}


async def test_json_without_a_schema_is_an_object():
    events = await collect(ask("demo/json", 'a "quoted" word'))
    assert orjson.loads(joined(events))["question"] == 'a "quoted" word'


async def test_echo_repeats_parts_and_strings_word_by_word():
    for content in ("one  two\nthree ", [{"type": "text", "text": "one  two\nthree "}]):
        events = await collect(ask("demo/echo", content))
        words = [event.text for event in events if isinstance(event, Text)]
        assert words == ["one", "  two", "\nthree", " "]


async def test_reasoning_comes_first_and_is_no_answer():
    events = await collect(ask("demo/reasoning"))
    kinds = [type(event) for event in events[:-1]]
    assert set(kinds) == {Reasoning, Text}
    assert kinds.index(Text) == kinds.count(Reasoning)


async def test_emoji_are_split_inside_a_grapheme():
    events = await collect(ask("demo/emoji"))
    pieces = [event.text for event in events if isinstance(event, Text)]
    assert "\u200d" in pieces
    assert "👨‍👩‍👧‍👦" in "".join(pieces)


async def test_a_late_failure_says_why():
    failure = ending(await collect(ask("demo/failing-late"))).failure
    assert failure is not None
    assert failure.code == "upstream_error"


async def test_failing_fails_before_the_stream_begins():
    with pytest.raises(UpstreamError) as caught:
        await collect(ask("demo/failing"))
    assert caught.value.failure.code == "upstream_unavailable"
    assert caught.value.failure.retryable


@pytest.mark.parametrize("model", NEVER_ENDING)
async def test_silence_lasts_forever_and_ends_with_the_context(model: str):
    events: list[ModelEvent] = []
    with anyio.move_on_after(100_000) as scope:
        async with provider.stream(ask(model)) as batches:
            async for batch in batches:
                assert batch
                events += batch
    assert scope.cancelled_caught
    assert bool(events) == (model == "demo/stalling")
    assert all(isinstance(event, Text) for event in events)


@pytest.mark.parametrize("model", ["demo/nobody", "demo/", "gpt-4", "demo/fast:x"])
async def test_an_unknown_name_is_refused(model: str):
    assert not provider.accepts(model)
    with pytest.raises(UpstreamError) as caught:
        await collect(ask(model))
    assert caught.value.failure.code == "upstream_error"
    assert not caught.value.failure.retryable
    if ":" not in model:
        assert "demo/markdown" in caught.value.failure.message


async def test_a_name_without_its_prefix_is_understood():
    assert ending(await collect(ask("fast"))).reason == "stop"


async def test_leaving_early_leaves_nothing_behind():
    async with provider.stream(ask("demo/long")) as batches:
        async for _ in batches:
            break
    with pytest.raises(StopAsyncIteration):
        await anext(batches)


async def test_a_prompt_without_a_user_message_is_answered():
    request = ask(DEFAULT_MODEL, messages=[{"role": "system", "content": "Be kind."}])
    assert "You said nothing" in joined(await collect(request))


async def test_calls_are_not_part_of_the_text():
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    events = await collect(ask("demo/tools", tools=[tool]))
    assert "{" not in joined(events)
    assert joined(events, CallFragment) == "{}"
