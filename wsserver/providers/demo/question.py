"""What a demo model understands of a request: the part it reacts to."""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

from msgspec import Struct

from wsserver.engine.model import ModelRequest
from wsserver.providers.demo.options import DemoOptions
from wsserver.providers.demo.tokens import message_text


class ToolOutput(Struct, frozen=True, kw_only=True):
    """A tool's result as it stands in the prompt."""

    name: str
    text: str


class Question(Struct, frozen=True, kw_only=True):
    """The end of a conversation, as a demo model sees it.

    Attributes:
        text: The text of the last user message; empty when there is none.
        outputs: Tool results after that message, in order.
        rounds: How often the model has called tools since that message.
        tools: The request's tools; none where its `tool_choice` forbids them.
        tool_choice: As in the request.
        response_schema: As in the request.
        options: What was asked of the demo model as such.
        seed: Depends on the text, on the number of messages and on the option
            of the same name.
    """

    text: str
    outputs: tuple[ToolOutput, ...]
    rounds: int
    tools: Sequence[dict[str, Any]]
    tool_choice: Any
    response_schema: dict[str, Any] | None
    options: DemoOptions
    seed: int


def read_question(request: ModelRequest, options: DemoOptions) -> Question:
    """Reads a request from its end back to the last user message."""
    outputs: list[tuple[str, str]] = []
    names: dict[str, str] = {}
    rounds = 0
    text = ""
    for message in reversed(request.messages):
        match message["role"]:
            case "user":
                text = message_text(message)
                break
            case "tool":
                outputs.append((message["tool_call_id"], message_text(message)))
            case "assistant" if calls := message.get("tool_calls"):
                rounds += 1
                names.update((call["id"], call["function"]["name"]) for call in calls)
            case _:
                pass
    seed = crc32(text.encode()) + len(request.messages) + options.seed
    return Question(
        text=text,
        outputs=tuple(
            ToolOutput(name=names.get(call, "tool"), text=output)
            for call, output in reversed(outputs)
        ),
        rounds=rounds,
        tools=() if request.tool_choice == "none" else request.tools,
        tool_choice=request.tool_choice,
        response_schema=request.response_schema,
        options=options,
        seed=seed & 0xFFFF_FFFF,
    )
