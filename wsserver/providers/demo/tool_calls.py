"""Which tools a demo model calls, with which arguments, and what it says of them."""

import re
from typing import Any

from msgspec import Struct, json

from wsserver.engine.model import CallFragment
from wsserver.providers.demo.answer import Answer
from wsserver.providers.demo.question import Question, ToolOutput
from wsserver.providers.demo.sample import sample
from wsserver.providers.demo.tokens import (
    fixed_text_events,
    split_tokens,
    text_events,
)

MAX_CALLS = 2
_QUOTED_OUTPUT = 400
_WORD_LENGTH = 4
_PLACE = re.compile(r"\b(?:in|for|at|of|and|or)\s+([A-Z][\w'-]*(?: [A-Z][\w'-]*)*)")
_PLACE_NAMES = ("city", "location", "place", "town")
_TEXT_NAMES = ("query", "text", "message", "question", "prompt", "input")
_DEFAULT_PLACE = "Paris"


class ToolUse(Struct, frozen=True, kw_only=True):
    """One call that a demo model decided on; `arguments` is JSON text."""

    name: str
    arguments: str


def mentioned_tools(question: Question) -> list[dict[str, Any]]:
    """Returns the functions that the message names, by any word of their name.

    `get_weather` is named by "weather", but not by "get": too short to mean anything.
    """
    said = set(re.findall(r"\w+", question.text.lower()))
    return [
        function
        for function in _functions(question)
        if said
        & {word for word in _words(function["name"]) if len(word) >= _WORD_LENGTH}
    ]


def choose_tools(question: Question) -> list[ToolUse]:
    """Decides on one or two calls, in parallel.

    The tool that `tool_choice` names; else those that the message mentions; else the
    first ones. One tool is called twice when the message names two places.
    """
    functions = _chosen_functions(question)[:MAX_CALLS]
    places = _PLACE.findall(question.text)[:MAX_CALLS] or [_DEFAULT_PLACE]
    if len(functions) == 1 and len(places) > 1:
        uses = [_use(functions[0], question, place) for place in places]
        return uses if uses[0] != uses[1] else uses[:1]
    return [_use(function, question, places[0]) for function in functions]


def call_tools(question: Question, uses: list[ToolUse], lead: str) -> Answer:
    """Returns the answer that says `lead` and makes the calls."""
    fragments = [
        CallFragment(position, use.name, piece)
        for position, use in enumerate(uses)
        for piece in ("", *split_tokens(use.arguments))
    ]
    return Answer(
        events=(*fixed_text_events(lead), *fragments),
        reason="tool_calls",
        call_ids=tuple(
            f"call_{question.seed:08x}_{position}" for position in range(len(uses))
        ),
        elastic=False,
    )


def report_outputs(outputs: tuple[ToolOutput, ...]) -> Answer:
    """Returns the answer that tells what the tools said."""
    count = "One tool" if len(outputs) == 1 else f"{len(outputs)} tools"
    lines = [f"{count} answered:\n"]
    lines += [f"\n- **{output.name}**: {_quoted(output.text)}" for output in outputs]
    lines.append("\n\nThat is all I know, and all of it came from the tools.\n")
    return Answer(events=text_events("".join(lines)))


def _functions(question: Question) -> list[dict[str, Any]]:
    return [tool["function"] for tool in question.tools if "function" in tool]


def _chosen_functions(question: Question) -> list[dict[str, Any]]:
    functions = _functions(question)
    match question.tool_choice:
        case {"function": {"name": str(name)}}:
            return [function for function in functions if function["name"] == name]
        case _:
            return mentioned_tools(question) or functions


def _use(function: dict[str, Any], question: Question, place: str) -> ToolUse:
    def hint(name: str) -> str | None:
        words = _words(name)
        if any(word in _PLACE_NAMES for word in words):
            return place
        if any(word in _TEXT_NAMES for word in words):
            return question.text
        return None

    arguments = sample(function.get("parameters") or {"type": "object"}, hint)
    return ToolUse(name=function["name"], arguments=json.encode(arguments).decode())


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def _quoted(output: str) -> str:
    """Puts a tool's output into one line of code that it cannot break out of."""
    line = " ".join(output.split())
    if len(line) > _QUOTED_OUTPUT:
        line = f"{line[:_QUOTED_OUTPUT]}…"
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{fence} {line or '(nothing)'} {fence}"
