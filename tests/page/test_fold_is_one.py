"""The page's fold and the Python fold show the same of any log, however merged."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from protocol.codec import encode
from protocol.events import LogEvent, first_seq
from protocol.fold import ConversationView, GapError, fold
from protocol.view import TurnView
from tests.protocol.logs import logs, merged_somehow

SCRIPT = Path(__file__).parent / "fold_logs.mjs"

pytestmark = [pytest.mark.node, pytest.mark.timeout(60)]


@st.composite
def seen(draw: st.DrawFn) -> list[LogEvent]:
    """What a client may get: a log from any point on, merged anyhow."""
    events = draw(logs())
    start = draw(st.integers(0, len(events)))
    return draw(merged_somehow(events[start:]))


@pytest.fixture(scope="module")
def in_javascript() -> Iterator[Callable[[list[LogEvent]], Any]]:
    """Folds a log with the page's code, in a Node that stays."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    with subprocess.Popen(  # noqa: S603
        [node, str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        into, out = process.stdin, process.stdout
        assert into is not None
        assert out is not None

        def shown(events: list[LogEvent]) -> Any:
            into.write(b"[" + b",".join(map(encode, events)) + b"]\n")
            into.flush()
            return orjson.loads(out.readline())

        yield shown
        into.close()
        assert process.wait(10) == 0


@st.composite
def misdelivered(draw: st.DrawFn) -> list[LogEvent]:
    """The same with what a network may make of it: twice, in part, never, another's."""
    whole = draw(logs())
    events = draw(merged_somehow(whole))
    again = draw(merged_somehow(whole))
    out: list[LogEvent] = []
    for event in events:
        match draw(st.integers(0, 9)):
            case 0:
                pass
            case 1 if again:
                out += [event, draw(st.sampled_from(again))]
            case 2:
                out += [replace(event, conversation="d"), event, event]
            case _:
                out.append(event)
    return out + again


@settings(max_examples=200, deadline=None)
@given(seen())
def test_both_folds_show_the_same(
    in_javascript: Callable[[list[LogEvent]], Any], events: list[LogEvent]
) -> None:
    view = fold(events)
    expected = _shown(view, [True] * len(events))
    assert in_javascript(events) == expected


@settings(max_examples=200, deadline=None)
@given(misdelivered())
def test_both_folds_refuse_the_same(
    in_javascript: Callable[[list[LogEvent]], Any], events: list[LogEvent]
) -> None:
    first = first_seq(events[0]) if events else 1
    view = ConversationView(last=first - 1)
    taken = [_take(view, event) for event in events]
    assert in_javascript(events) == _shown(view, taken)


def _take(view: ConversationView, event: LogEvent) -> bool | str:
    try:
        return view.apply(event)
    except GapError:
        return "gap"
    except ValueError:
        return "another"


def _shown(view: ConversationView, taken: list[bool | str]) -> dict[str, Any]:
    messages = [entry.seq for entry in view.timeline if not isinstance(entry, TurnView)]
    return {
        "turns": [_turn(turn) for turn in view.turns.values()],
        "messages": messages,
        "model": None if view.config.model is UNSET else view.config.model,
        "running": view.running.turn if view.running else None,
        "last": view.last,
        "taken": taken,
    }


def _turn(turn: TurnView) -> dict[str, Any]:
    return {
        "turn": turn.turn,
        "whole": turn.whole,
        "message": turn.message,
        "model": turn.model or "",
        "text": turn.text,
        "reasoning": turn.reasoning,
        "refusal": turn.refusal,
        "at": turn.at,
        "calls": [
            [
                one.call,
                one.name or "tool",
                one.status,
                one.partial,
                one.batch,
                one.index,
            ]
            for one in turn.calls.values()
        ],
        "status": turn.status,
        "failed": turn.error is not None,
        "proven": turn.proven,
    }
