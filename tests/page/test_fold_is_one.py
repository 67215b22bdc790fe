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

from protocol.codec import encode
from protocol.events import LogEvent
from protocol.fold import ConversationView, fold
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


@settings(max_examples=200, deadline=None)
@given(seen())
def test_both_folds_show_the_same(
    in_javascript: Callable[[list[LogEvent]], Any], events: list[LogEvent]
) -> None:
    assert in_javascript(events) == _shown(fold(events))


def _shown(view: ConversationView) -> dict[str, Any]:
    messages = [entry.seq for entry in view.timeline if not isinstance(entry, TurnView)]
    return {
        "turns": [_turn(turn) for turn in view.turns.values()],
        "messages": messages,
        "model": None if view.config.model is UNSET else view.config.model,
        "running": view.running.turn if view.running else None,
    }


def _turn(turn: TurnView) -> dict[str, Any]:
    calls = [call for call in turn.calls.values() if call.status != "streaming"]
    return {
        "turn": turn.turn,
        "whole": turn.whole,
        "message": turn.message,
        "model": turn.model or "",
        "text": turn.text,
        "reasoning": turn.reasoning,
        "refusal": turn.refusal,
        "calls": sorted([one.call, one.name or "tool", one.status] for one in calls),
        "status": turn.status,
        "failed": turn.error is not None,
        "proven": turn.proven,
    }
