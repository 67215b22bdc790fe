"""What becomes of the output of a tool that the server runs."""

import math
from datetime import datetime, tzinfo
from math import inf, nan
from typing import Any, NoReturn

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.events import ToolCallEvent, ToolResultEvent
from tests.fakes.rig import done, events, rig
from tests.fakes.scripted import ScriptedProvider, says
from tests.turns.served import (
    FakeTools,
    Panic,
    begun,
    calling,
    gives,
    named,
    raises,
    results,
)
from wsserver.engine.server_tools import ToolError
from wsserver.engine.tools import SILENT_FAILURE
from wsserver.turns.served_calls import ServedCalls, fitted


class UnsayableError(Exception):
    """Fails where it should say what is wrong."""

    def __str__(self) -> str:
        raise AttributeError("detail")


class Nowhere(tzinfo):
    """Fails where it should say how far away it is."""

    def utcoffset(self, _: datetime | None) -> NoReturn:
        raise LookupError("a fault of the output")


async def test_t08_a_failing_call_leaves_the_others_their_results() -> None:
    tools = FakeTools(
        a=gives("one"), b=raises(ToolError("no such city")), c=gives("three")
    )
    provider = ScriptedProvider(calling("a", "b", "c"), says("ok"))
    async with rig(provider) as r:
        conversation, _ = await begun(r, tools, *named("a", "b", "c"))
        await done(conversation)
        log = await events(conversation)
        made = [event.call for event in log if isinstance(event, ToolCallEvent)]
        by_call = {e.call: e for e in log if isinstance(e, ToolResultEvent)}
        assert len(by_call) == 3
        assert [by_call[call].status for call in made] == ["ok", "error", "ok"]
        told = [m["content"] for m in provider.requests[1].messages[-3:]]
        assert told == ["one", "no such city", "three"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ToolError(""), "The tool failed without saying why."),
        (ValueError(), "The tool failed without saying why."),
        (ValueError("no such city"), "no such city"),
        (
            ExceptionGroup("two things", [ValueError("x")]),
            "two things (1 sub-exception)",
        ),
        (ToolError("half \ud83d"), "half ?"),
        (UnsayableError(), SILENT_FAILURE),
        (Panic("index out of bounds"), "index out of bounds"),
        (SystemExit(2), "2"),
        (BaseExceptionGroup("one thing", [Panic()]), "one thing (1 sub-exception)"),
    ],
    ids=repr,
)
async def test_t09_an_error_has_its_call_and_a_text(
    error: BaseException, said: str
) -> None:
    provider = ScriptedProvider(calling("bad"), says("ok"))
    async with rig(provider) as r:
        conversation, _ = await begun(r, FakeTools(bad=raises(error)), *named("bad"))
        assert (await done(conversation)).status == "completed"
        (result,) = await results(conversation)
        assert (result.status, result.output) == ("error", said)
        assert result.call in [
            e.call for e in await events(conversation) if isinstance(e, ToolCallEvent)
        ]


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("text", "text"),
        (7, "7"),
        (None, "null"),
        ([1, "a"], '[1,"a"]'),
        ({"a": True}, '{"a":true}'),
        (2**70, str(2**70)),
        ({"a": [None, "null"]}, '{"a":[null,"null"]}'),
        ("", "(no output)"),
    ],
    ids=repr,
)
async def test_t12_any_json_reaches_the_model_as_text(output: Any, told: str) -> None:
    provider = ScriptedProvider(calling("tool"), says("ok"))
    async with rig(provider) as r:
        tools = FakeTools(tool=gives(output))
        conversation, _ = await begun(r, tools, *named("tool"))
        await done(conversation)
        (result,) = await results(conversation)
        assert (result.status, result.output) == ("ok", output)
        assert provider.requests[1].messages[-1]["content"] == told


@pytest.mark.parametrize(
    "output",
    [
        object(),
        {"a": {None: 1}},
        {"a": "\ud800"},
        nan,
        {"a": [None, (1.5, -inf)]},
        [inf] * 100_000,
    ],
    ids=["o", "key", "half", "nan", "inf", "long"],
)
async def test_t10_what_is_no_json_becomes_an_error(output: Any) -> None:
    provider = ScriptedProvider(calling("tool"), says("ok"))
    async with rig(provider) as r:
        tools = FakeTools(tool=gives(output))
        conversation, _ = await begun(r, tools, *named("tool"))
        assert (await done(conversation)).status == "completed"
        (result,) = await results(conversation)
        assert result.status == "error"
        assert "can't be written as JSON" in result.output
        assert "0x" not in result.output


async def test_an_output_that_fails_as_it_is_written_fails_the_call() -> None:
    provider = ScriptedProvider(calling("tool"), says("ok"))
    async with rig(provider) as r:
        tools = FakeTools(tool=gives(datetime(2026, 1, 1, tzinfo=Nowhere())))
        conversation, _ = await begun(r, tools, *named("tool"))
        assert (await done(conversation)).status == "completed"
        (result,) = await results(conversation)
        assert (result.status, result.output) == ("error", "a fault of the output")


async def test_a_defect_of_ours_fails_the_call_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> NoReturn:
        raise RuntimeError("a defect")

    monkeypatch.setattr(ServedCalls, "_result", broken)
    provider = ScriptedProvider(calling("tool"), says("ok"))
    async with rig(provider) as r:
        conversation, _ = await begun(r, FakeTools(tool=gives("")), *named("tool"))
        assert (await done(conversation)).status == "completed"
        (result,) = await results(conversation)
        assert (result.status, result.output) == ("error", SILENT_FAILURE)


async def test_t06_a_huge_output_is_cut_with_a_notice() -> None:
    text = "abc\n" * 500_000
    provider = ScriptedProvider(calling("tool"), says("ok"))
    async with rig(provider) as r:
        tools = FakeTools(tool=gives(text))
        conversation, _ = await begun(r, tools, *named("tool"))
        assert (await done(conversation)).status == "completed"
        (result,) = await results(conversation)
        limit = r.services.limits.tool_output_bytes
        assert result.status == "ok"
        assert limit - 20 <= len(orjson.dumps(result.output)) <= limit
        assert result.output.endswith(f"of its {len(text)} characters.]")
        told = provider.requests[1].messages[-1]["content"]
        assert told == result.output


@given(
    st.one_of(
        st.text(max_size=400),
        st.lists(st.text(max_size=20), max_size=30),
        st.dictionaries(st.text(max_size=9), st.floats(), max_size=30),
    ),
    st.integers(150, 500),
)
def test_an_output_fits_or_is_cut(output: Any, limit: int) -> None:
    status, shown = fitted(output, limit)
    assert status in ("ok", "error")
    if status == "ok":
        assert len(msgspec.json.encode(shown)) <= limit
    if isinstance(output, str) and len(msgspec.json.encode(shown)) < limit - 120:
        assert shown == output.encode(errors="replace").decode()


def test_what_the_tool_has_as_json_already_is_taken_as_it_is() -> None:
    body = msgspec.Raw(b'{"next": null}')
    assert fitted({"body": body}, 1000) == ("ok", {"body": {"next": None}})
    assert fitted([body, math.inf], 1000)[0] == "error"


def test_an_output_that_is_nested_too_deep_is_an_error() -> None:
    output: list[Any] = []
    for _ in range(100):
        output = [output]
    assert fitted(output, 1000)[0] == "error"
    for _ in range(100_000):
        output = [output]
    assert fitted(output, 1000)[0] == "error"
