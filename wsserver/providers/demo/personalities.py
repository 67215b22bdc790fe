"""The demo models by name: what each is for, how fast it talks, what it says."""

import math
from collections.abc import Callable
from types import MappingProxyType

from msgspec import Struct, json

from wsserver.engine.model import (
    Failure,
    FinishReason,
    Reasoning,
    Refusal,
    Text,
)
from wsserver.providers.demo import texts
from wsserver.providers.demo.answer import Answer
from wsserver.providers.demo.markdown import markdown
from wsserver.providers.demo.playback import Pace
from wsserver.providers.demo.prose import (
    FAST_TOKENS,
    LONG_TOKENS,
    VARIANTS,
    prose_events,
)
from wsserver.providers.demo.question import Question
from wsserver.providers.demo.sample import sample
from wsserver.providers.demo.tokens import (
    fixed_text_events,
    split_tokens,
    split_words,
    text_events,
)
from wsserver.providers.demo.tool_calls import (
    ToolUse,
    call_tools,
    choose_tools,
    mentioned_tools,
    report_outputs,
)

DEFAULT_NAME = "markdown"

_LIVELY = Pace(first_token_seconds=0.25, tokens_per_second=60)
_SLOW = Pace(first_token_seconds=1.0, tokens_per_second=4)
_FLAT_OUT = Pace(first_token_seconds=0, tokens_per_second=math.inf)
_SLOW_TOKENS = 120


class Personality(Struct, frozen=True, kw_only=True):
    """One demo model.

    Attributes:
        description: One line for the list of models.
        pace: Unless the options say otherwise.
        answer: What it says to a question.
        unavailable: Why it never even begins; None for a model that does.
    """

    description: str
    pace: Pace = _LIVELY
    answer: Callable[[Question], Answer]
    unavailable: Failure | None = None


def says(text: str, reason: FinishReason | None = "stop") -> Callable[..., Answer]:
    """Returns a personality's answer that is always the same text."""

    def answer(question: Question) -> Answer:
        return Answer(events=fixed_text_events(text), reason=reason)

    return answer


def prose(tokens: int) -> Callable[[Question], Answer]:
    """Returns an answer of so many tokens, unless the options say otherwise."""

    def answer(question: Question) -> Answer:
        wanted = question.options.tokens or tokens
        return Answer(events=prose_events(wanted, question.seed % VARIANTS))

    return answer


def default(question: Question) -> Answer:
    """Talks; but answers as the request has it where it names tools or a schema."""
    if question.response_schema is not None:
        return fitting_json(question)
    asked = question.tool_choice not in (None, "auto", "none")
    if asked or question.outputs or mentioned_tools(question):
        return tools(question)
    return markdown(question)


def tools(question: Question) -> Answer:
    """Calls one or two tools, then answers with what they said."""
    uses = choose_tools(question)
    if uses and question.rounds < question.options.tool_rounds:
        return call_tools(question, uses, "" if question.rounds else texts.LOOKING_UP)
    if question.outputs:
        return report_outputs(question.outputs)
    return Answer(events=fixed_text_events(texts.NO_TOOLS))


def invalid_tools(question: Question) -> Answer:
    """Does as `tools`, but no call it makes is JSON."""
    uses = choose_tools(question)
    if not uses or question.rounds >= question.options.tool_rounds:
        return tools(question)
    broken = [
        ToolUse(name=use.name, arguments=use.arguments[:-1] + ",") for use in uses
    ]
    return call_tools(question, broken, "")


def cut_off(question: Question) -> Answer:
    """Breaks off inside the arguments of a call, or inside a word."""
    called = tools(question)
    if not called.call_ids:
        return says(texts.CUT_OFF, "incomplete")(question)
    return Answer(
        events=called.events[:-1],
        reason="incomplete",
        call_ids=called.call_ids,
        elastic=False,
    )


def fitting_json(question: Question) -> Answer:
    """Answers with JSON that fits the response schema, or with any object."""
    if question.response_schema is None:
        value = {"answer": "JSON, as asked for", "question": question.text}
    else:
        value = sample(question.response_schema)
    text = json.format(json.encode(value), indent=2).decode()
    return Answer(events=text_events(text), elastic=False)


def reasoning(question: Question) -> Answer:
    """Thinks aloud, then answers."""
    thoughts = tuple(map(Reasoning, split_tokens(texts.THOUGHTS)))
    return Answer(events=thoughts + fixed_text_events(texts.CONCLUSION))


def refusal(question: Question) -> Answer:
    """Refuses, on the channel that is for that."""
    return Answer(events=tuple(map(Refusal, split_tokens(texts.REFUSAL))))


def echo(question: Question) -> Answer:
    """Repeats the message word by word."""
    return Answer(events=tuple(map(Text, split_words(question.text))))


def failing_late(question: Question) -> Answer:
    """Says something, then fails."""
    return Answer(
        events=fixed_text_events(texts.BROKEN),
        reason="error",
        failure=Failure(
            code="upstream_error",
            message=texts.FAILED_LATE,
            retryable=True,
            upstream_code="demo",
        ),
    )


def nothing(reason: FinishReason | None) -> Callable[..., Answer]:
    """Returns a personality's answer that has no token."""

    def answer(question: Question) -> Answer:
        return Answer(events=(), reason=reason)

    return answer


PERSONALITIES = MappingProxyType(
    {
        "markdown": Personality(
            description="Markdown that reacts to the message; calls tools it names",
            answer=default,
        ),
        "long": Personality(
            description=f"about {LONG_TOKENS:,} tokens of prose",
            answer=prose(LONG_TOKENS),
        ),
        "slow": Personality(
            description="a few tokens a second, after a while",
            pace=_SLOW,
            answer=prose(_SLOW_TOKENS),
        ),
        "fast": Personality(
            description="prose as fast as it goes",
            pace=_FLAT_OUT,
            answer=prose(FAST_TOKENS),
        ),
        "chinese": Personality(
            description="an answer in Chinese", answer=says(texts.CHINESE)
        ),
        "emoji": Personality(
            description="families, flags and skin tones, split over deltas",
            answer=says(texts.EMOJI),
        ),
        "tools": Personality(
            description="calls one or two tools, then answers with what they said",
            answer=tools,
        ),
        "tools-invalid": Personality(
            description="calls tools with arguments that are not JSON",
            answer=invalid_tools,
        ),
        "reasoning": Personality(
            description="thinks aloud before it answers", answer=reasoning
        ),
        "refusal": Personality(description="refuses to answer", answer=refusal),
        "echo": Personality(
            description="repeats the message word by word", answer=echo
        ),
        "json": Personality(
            description="JSON that fits the response schema", answer=fitting_json
        ),
        "length": Personality(
            description="ends at a limit on its tokens",
            answer=says(texts.LENGTH, "length"),
        ),
        "filtered": Personality(
            description="is ended by a content filter",
            answer=says(texts.FILTERED, "content_filter"),
        ),
        "empty": Personality(
            description="an answer without a token", answer=nothing("stop")
        ),
        "cut-off": Personality(
            description="breaks off inside a tool call or a word", answer=cut_off
        ),
        "stalling": Personality(
            description="some text, then silence", answer=says(texts.STALLING, None)
        ),
        "silent": Personality(description="never says a token", answer=nothing(None)),
        "failing": Personality(
            description="unavailable, like an upstream that answers 503",
            answer=nothing("stop"),
            unavailable=Failure(
                code="upstream_unavailable",
                message=texts.UNAVAILABLE,
                retryable=True,
                upstream_code="503",
            ),
        ),
        "failing-midway": Personality(
            description="some text, then the stream breaks off",
            answer=says(texts.BROKEN, "incomplete"),
        ),
        "failing-late": Personality(
            description="some text, then an error", answer=failing_late
        ),
    }
)
