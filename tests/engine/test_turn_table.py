"""The turn machine: every input in every phase."""

from collections.abc import Callable

import pytest

from tests.engine.machine import (
    FORBIDDEN,
    OVERLOADED,
    PHASES,
    asks,
    call_id,
    machine,
    weather,
    words,
)
from wsserver.engine.actions import Action
from wsserver.engine.model import CallFragment, Finished, Reasoning, Text
from wsserver.engine.turn import Turn

NOW = 1.0


def connected(turn: Turn) -> list[Action]:
    turn.connected(NOW)
    return []


def detached(turn: Turn) -> list[Action]:
    turn.detached(0.0, NOW)
    return turn.time(NOW)


def finish(end: Finished) -> Callable[[Turn], list[Action]]:
    return lambda turn: turn.finished(end, NOW, NOW, 0.5)


INPUTS: dict[str, Callable[[Turn], list[Action]]] = {
    "connected": connected,
    "nothing": lambda turn: turn.feed([], NOW),
    "text": lambda turn: turn.feed([Text("a")], NOW),
    "thought": lambda turn: turn.feed([Reasoning("a"), Reasoning("b")], NOW),
    "fragment": lambda turn: turn.feed([CallFragment(0, "weather", "{")], NOW),
    "stop": finish(Finished(reason="stop")),
    "length": finish(Finished(reason="length")),
    "filter": finish(Finished(reason="content_filter")),
    "cut short": finish(Finished(reason="incomplete")),
    "no calls": finish(Finished(reason="tool_calls")),
    "calls": finish(asks()),
    "bad call": finish(asks(weather(arguments="{", valid=False))),
    "error": finish(Finished(reason="error", failure=FORBIDDEN)),
    "overload": finish(Finished(reason="error", failure=OVERLOADED)),
    "unsaid": finish(Finished(reason="error")),
    "refused": lambda turn: turn.refused(FORBIDDEN, NOW, 0.5),
    "busy": lambda turn: turn.refused(OVERLOADED, NOW, 0.5),
    "result": lambda turn: turn.tool_result(call_id(), "ok", 1, "alice", NOW)[1],
    "interrupt": lambda turn: turn.stop(reason="by_client", by="alice", now=NOW),
    "shutdown": lambda turn: turn.stop(reason="server_shutdown", by="server", now=NOW),
    "failure": lambda turn: turn.fail(FORBIDDEN, NOW),
    "abandoned": detached,
    "11 s": lambda turn: turn.time(11.0),
    "31 s": lambda turn: turn.time(31.0),
    "61 s": lambda turn: turn.time(61.0),
    "121 s": lambda turn: turn.time(121.0),
    "601 s": lambda turn: turn.time(601.0),
}

IN_CALL = """
nothing   | = |
text      | streaming | delta
thought   | streaming | reasoning
fragment  | streaming | tool_delta
stop      | ended | usage done:completed
length    | ended | usage done:incomplete/max_output_tokens
filter    | ended | usage done:incomplete/content_filter
cut short | ended | usage done:incomplete/upstream_truncated
no calls  | ended | usage done:completed
calls     | waiting_tools | tool_call ask
bad call  | connecting | tool_result:invalid call
error     | ended | usage error:upstream_auth done:failed
unsaid    | ended | usage error:upstream_error done:failed
refused   | ended | usage error:upstream_auth done:failed
result    | = |
interrupt | stopping | close
shutdown  | stopping | close
failure   | stopping | close
abandoned | stopping | close
601 s     | stopping | close
"""

BEFORE_TOKEN = (
    IN_CALL
    + """
overload  | retry_wait |
busy      | retry_wait |
11 s      | = | waiting:{phase}
31 s      | = | waiting:{phase}
61 s      | stopping | close
121 s     | stopping | close
"""
)

TABLES = {
    "due": """
interrupt | stopping | close
shutdown  | stopping | close
failure   | stopping | close
abandoned | stopping | close
11 s      | = | waiting:connecting
31 s      | = | waiting:connecting
61 s      | stopping | close
121 s     | stopping | close
601 s     | stopping | close
""",
    "connecting": BEFORE_TOKEN + "connected | waiting_first_token |",
    "waiting_first_token": BEFORE_TOKEN,
    "streaming": IN_CALL
    + """
overload  | ended | usage error:upstream_unavailable done:failed
busy      | ended | usage error:upstream_unavailable done:failed
31 s      | stopping | close
61 s      | stopping | close
121 s     | stopping | close
""",
    "retry_wait": """
interrupt | ended | usage done:interrupted/by_client
shutdown  | ended | usage done:incomplete/server_shutdown
failure   | ended | usage error:upstream_auth done:failed
abandoned | ended | usage done:interrupted/abandoned
11 s      | connecting | call
31 s      | connecting | call
61 s      | connecting | call
121 s     | connecting | call
601 s     | ended | usage done:incomplete/turn_timeout
""",
    "waiting_tools": """
result    | connecting | tool_result:ok call
interrupt | ended | tool_result:cancelled usage done:interrupted/by_client
shutdown  | ended | tool_result:cancelled usage done:incomplete/server_shutdown
failure   | ended | tool_result:cancelled usage error:upstream_auth done:failed
abandoned | ended | tool_result:cancelled usage done:interrupted/abandoned
121 s     | connecting | tool_result:timeout call
601 s     | connecting | tool_result:timeout call
""",
    "stopping": """
busy      | ended | usage done:interrupted/by_client
refused   | ended | usage done:interrupted/by_client
11 s      | ended | usage done:interrupted/by_client
31 s      | ended | usage done:interrupted/by_client
61 s      | ended | usage done:interrupted/by_client
121 s     | ended | usage done:interrupted/by_client
601 s     | ended | usage done:interrupted/by_client
""",
    "ended": "",
}


def expected(phase: str, given: str) -> tuple[str, str]:
    """Returns the phase after an input, and what is done; else nothing happens."""
    same = "connecting" if phase == "due" else phase
    for line in TABLES[phase].format(phase=same).splitlines():
        if line.partition("|")[0].strip() == given:
            _, after, done = (cell.strip() for cell in line.split("|"))
            return (same if after == "=" else after), done
    return same, ""


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("phase", PHASES)
def test_every_input_in_every_phase(phase: str, given: str) -> None:
    turn = machine()
    PHASES[phase](turn)
    actions = INPUTS[given](turn)
    assert (turn.phase, words(actions)) == expected(phase, given)


def test_every_line_of_the_tables_is_used() -> None:
    given = {
        line.partition("|")[0].strip()
        for table in TABLES.values()
        for line in table.splitlines()
        if line
    }
    assert given <= set(INPUTS)


@pytest.mark.parametrize(
    ("given", "end"),
    [
        ("interrupt", "usage done:interrupted/by_client"),
        ("shutdown", "usage done:incomplete/server_shutdown"),
        ("failure", "usage error:upstream_auth done:failed"),
        ("abandoned", "usage done:interrupted/abandoned"),
        ("31 s", "usage done:incomplete/upstream_stalled"),
        ("601 s", "usage done:incomplete/turn_timeout"),
    ],
)
def test_a_stopped_turn_ends_when_its_model_call_is_closed(
    given: str, end: str
) -> None:
    turn = machine()
    PHASES["streaming"](turn)
    INPUTS[given](turn)
    for other in INPUTS:
        if other not in ("refused", "busy") and not other.endswith(" s"):
            assert INPUTS[other](turn) == [], "what comes while it stops is ignored"
    assert words(turn.closed(2.0)) == end
    assert turn.closed(3.0) == []
