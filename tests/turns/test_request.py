"""The request that settings and prompt make."""

from typing import Any

import pytest

from protocol.content import Config, NamedTool, Tool
from tests.engine.story import Story
from tests.fakes.scripted import ScriptedProvider
from wsserver.engine.model import ModelRequest
from wsserver.engine.prompt import PromptFold
from wsserver.turns.request import model_request
from wsserver.turns.services import Target

TOOL = Tool(name="weather", description="It is.", parameters={"type": "object"})


def request(target: dict[str, Any] | None = None, **members: Any) -> ModelRequest:
    story = Story()
    story.ask()
    fold = PromptFold()
    fold.add(story.entries)
    made = Target(provider=ScriptedProvider(), model="upstream-name", **(target or {}))
    return model_request(Config(**members), made, fold, "req_1")


def test_the_least() -> None:
    made = request()
    assert (made.model, made.request_id) == ("upstream-name", "req_1")
    assert made.messages == [{"role": "user", "content": "hi"}]
    assert (list(made.tools), made.tool_choice, made.params) == ([], None, {})
    assert made.response_schema is None


def test_tools_are_told_in_the_shape_of_the_chat_api() -> None:
    made = request(tools=[TOOL, Tool(name="any")])
    functions = [tool["function"] for tool in made.tools]
    assert {tool["type"] for tool in made.tools} == {"function"}
    assert functions == [
        {
            "name": "weather",
            "description": "It is.",
            "parameters": {"type": "object"},
        },
        {
            "name": "any",
            "description": "",
            "parameters": {"type": "object", "properties": {}},
        },
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ("none", "none"),
        (
            NamedTool(name="weather"),
            {"type": "function", "function": {"name": "weather"}},
        ),
        (None, None),
    ],
)
def test_a_choice_of_tools_is_told_where_there_are_tools(given: Any, told: Any) -> None:
    assert request(tools=[TOOL], tool_choice=given).tool_choice == told
    assert request(tool_choice=given).tool_choice is None
    assert request(tools=[], tool_choice=given).tool_choice is None


def test_what_the_conversation_says_goes_before_what_the_target_says() -> None:
    target = {"params": {"temperature": 0, "seed": 1}}
    made = request(target, params={"temperature": 1, "top_p": 0.5})
    assert made.params == {"temperature": 1, "seed": 1, "top_p": 0.5}


def test_instructions_and_schema() -> None:
    schema = {"type": "object"}
    made = request(instructions="be brief", response_schema=schema)
    assert made.messages[0] == {"role": "system", "content": "be brief"}
    assert made.response_schema == schema
    assert request(instructions="", response_schema={}).response_schema is None
