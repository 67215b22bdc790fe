"""The demo models call the request's own tools, and use what they said."""

from typing import Any

import jsonschema_rs
import orjson
import pytest

from tests.fakes.clocks import jumping_time  # noqa: F401 - a fixture
from wsserver.engine.model import CallFragment, Finished, ModelRequest, Text
from wsserver.providers.demo import DemoProvider

provider = DemoProvider()

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "days": {"type": "integer", "minimum": 2, "maximum": 5},
    },
    "required": ["city", "unit"],
    "additionalProperties": False,
}
TIME = {"type": "object", "properties": {"timezone": {"type": "string"}}}


def tool(name: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    function = {"name": name} | ({"parameters": parameters} if parameters else {})
    return {"type": "function", "function": function}


TOOLS = [tool("get_time", TIME), tool("get_weather", WEATHER), tool("noop")]


class Result:
    """What a model call gave, and the messages that it makes."""

    def __init__(self, events: list[Any]) -> None:
        self.text = "".join(event.text for event in events if isinstance(event, Text))
        self.fragments = [event for event in events if isinstance(event, CallFragment)]
        self.finished = events[-1]
        assert isinstance(self.finished, Finished)
        self.calls = self.finished.calls

    def arguments(self) -> list[Any]:
        return [orjson.loads(call.arguments) for call in self.calls]

    def messages(self, *outputs: str) -> list[dict[str, Any]]:
        calls = [
            {
                "id": call.upstream_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in self.calls
        ]
        return [
            {"role": "assistant", "content": self.text, "tool_calls": calls},
            *(
                {"role": "tool", "tool_call_id": call.upstream_id, "content": output}
                for call, output in zip(self.calls, outputs, strict=True)
            ),
        ]


async def ask(
    said: str,
    *later: dict[str, Any],
    model: str = "demo/tools",
    tools: Any = TOOLS,
    tool_choice: Any = None,
    **params: Any,
) -> Result:
    request = ModelRequest(
        model=model,
        messages=[{"role": "user", "content": said}, *later],
        tools=tools,
        tool_choice=tool_choice,
        params=params,
        request_id="r",
    )
    async with provider.stream(request) as batches:
        return Result([event async for batch in batches for event in batch])


async def test_a_mentioned_tool_is_called_with_fitting_arguments():
    result = await ask("What is the weather in Paris?")
    assert result.finished.reason == "tool_calls"
    assert [call.name for call in result.calls] == ["get_weather"]
    (arguments,) = result.arguments()
    assert jsonschema_rs.is_valid(WEATHER, arguments)
    assert arguments["city"] == "Paris"
    assert result.text == "Let me look that up.\n\n"


async def test_two_tools_are_called_in_parallel():
    result = await ask("The time and the weather, please.")
    assert [call.name for call in result.calls] == ["get_time", "get_weather"]
    assert all(call.valid for call in result.calls)
    assert len({call.upstream_id for call in result.calls}) == 2


async def test_two_places_are_two_calls_of_one_tool():
    result = await ask("Is the weather better in New York or Rome?")
    assert [value["city"] for value in result.arguments()] == ["New York", "Rome"]


async def test_a_message_that_names_no_tool_gets_the_first_two():
    result = await ask("Surprise me.")
    assert [call.name for call in result.calls] == ["get_time", "get_weather"]


async def test_a_tool_without_parameters_gets_an_empty_object():
    result = await ask("noop", tools=[tool("noop")])
    assert [call.arguments for call in result.calls] == ["{}"]


async def test_fragments_are_the_arguments_and_open_each_call_first():
    result = await ask("The time and the weather, please.")
    for position, call in enumerate(result.calls):
        pieces = [f for f in result.fragments if f.position == position]
        assert pieces[0].text == ""
        assert {piece.name for piece in pieces} == {call.name}
        assert "".join(piece.text for piece in pieces) == call.arguments
        assert len(pieces) > 2


async def test_tool_choice_is_obeyed():
    none = await ask("The weather!", tool_choice="none")
    assert none.finished.reason == "stop"
    assert not none.calls
    named = {"type": "function", "function": {"name": "get_time"}}
    result = await ask("The weather!", tool_choice=named)
    assert [call.name for call in result.calls] == ["get_time"]
    required = await ask("Hi", model="demo/markdown", tool_choice="required")
    assert len(required.calls) == 2


async def test_the_answer_uses_the_results():
    first = await ask("The time and the weather, please.")
    later = first.messages('{"time":"12:00"}', "sunny, ``not`` cold")
    second = await ask("The time and the weather, please.", *later)
    assert second.finished.reason == "stop"
    assert '- **get_time**: ` {"time":"12:00"} `' in second.text
    assert "- **get_weather**: ``` sunny, ``not`` cold ```" in second.text


async def test_a_long_result_is_shortened():
    first = await ask("The weather in Paris")
    second = await ask("The weather in Paris", *first.messages("x" * 10_000))
    assert len(second.text) < 1000
    assert "…" in second.text


async def test_ids_differ_between_rounds():
    first = await ask("The weather in Paris", demo_tool_rounds=2)
    second = await ask(
        "The weather in Paris", *first.messages("sunny"), demo_tool_rounds=2
    )
    assert second.finished.reason == "tool_calls"
    assert first.calls[0].upstream_id != second.calls[0].upstream_id
    third = await ask(
        "The weather in Paris",
        *first.messages("sunny"),
        *second.messages("still sunny"),
        demo_tool_rounds=2,
    )
    assert third.finished.reason == "stop"
    assert third.text.index("sunny") < third.text.index("still sunny")


async def test_results_of_an_earlier_message_do_not_count():
    first = await ask("The weather in Paris")
    later = [
        *first.messages("sunny"),
        {"role": "assistant", "content": "It is sunny."},
        {"role": "user", "content": "And the weather in Rome?"},
    ]
    again = await ask("The weather in Paris", *later)
    assert [value["city"] for value in again.arguments()] == ["Rome"]


async def test_without_tools_it_says_so():
    result = await ask("The weather in Paris", tools=())
    assert result.finished.reason == "stop"
    assert "this conversation has none" in result.text


async def test_the_default_calls_a_tool_only_when_it_is_mentioned():
    talk = await ask("Tell me a story.", model="demo/markdown")
    assert not talk.calls
    called = await ask("The weather in Paris?", model="demo/markdown")
    assert len(called.calls) == 1
    answered = await ask(
        "The weather in Paris?", *called.messages("rain"), model="demo/markdown"
    )
    assert "rain" in answered.text


async def test_invalid_calls_are_marked_and_then_answered():
    first = await ask("The weather in Paris", model="demo/tools-invalid")
    assert first.finished.reason == "tool_calls"
    assert [call.valid for call in first.calls] == [False]
    with pytest.raises(orjson.JSONDecodeError):
        first.arguments()
    second = await ask(
        "The weather in Paris", *first.messages("invalid"), model="demo/tools-invalid"
    )
    assert second.finished.reason == "stop"


async def test_a_stream_cut_off_in_a_call_is_incomplete():
    result = await ask("The weather in Paris", model="demo/cut-off")
    assert result.finished.reason == "incomplete"
    assert [call.valid for call in result.calls] == [False]


async def test_a_limit_cuts_calls_too():
    whole = await ask("The time and the weather, please.")
    output = whole.finished.usage.output_tokens
    result = await ask("The time and the weather, please.", max_tokens=output - 1)
    assert result.finished.reason == "length"
    assert [call.valid for call in result.calls] == [True, False]
    before = output - len(whole.fragments)
    short = await ask("The time and the weather, please.", max_tokens=before + 1)
    assert [call.arguments for call in short.calls] == [""]
    none = await ask("The time and the weather, please.", max_tokens=before)
    assert not none.calls
