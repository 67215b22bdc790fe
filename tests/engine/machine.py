"""Turn machines brought into each phase, and their actions in short words."""

from collections.abc import Callable
from typing import Any

from protocol.content import Tool
from wsserver.engine.actions import (
    Action,
    Append,
    AppendDone,
    AppendText,
    AskTool,
    CallModel,
    CloseModel,
    ShowWaiting,
)
from wsserver.engine.limits import TurnLimits
from wsserver.engine.model import Call, Failure, Finished, Text
from wsserver.engine.turn import Turn

TURN = 7
TOOLS = {name: Tool(name=name) for name in ("weather", "clock")}
OVERLOADED = Failure(code="upstream_unavailable", message="full", retryable=True)
FORBIDDEN = Failure(code="upstream_auth", message="no", retryable=False)


def machine(**members: Any) -> Turn:
    return Turn(
        **{
            "turn": TURN,
            "tools": TOOLS,
            "limits": TurnLimits(),
            "accepted_at": 0.0,
            "now": 0.0,
            **members,
        }
    )


def weather(number: int = 0, **members: Any) -> Call:
    made = {"name": "weather", "arguments": "{}", "valid": True, **members}
    return Call(upstream_id=f"up{number}", **made)


def asks(*calls: Call) -> Finished:
    return Finished(reason="tool_calls", calls=calls or (weather(),))


def call_id(number: int = 0) -> str:
    return f"call_{TURN}.{number}"


def due(turn: Turn) -> None:
    assert turn.phase == "connecting"


def connecting(turn: Turn) -> None:
    turn.called(30, 0.0)


def waiting_first_token(turn: Turn) -> None:
    connecting(turn)
    turn.connected(0.0)


def streaming(turn: Turn) -> None:
    waiting_first_token(turn)
    turn.feed([Text("so ")], 0.0)


def retry_wait(turn: Turn) -> None:
    connecting(turn)
    turn.refused(OVERLOADED, 0.0, 0.5)


def waiting_tools(turn: Turn) -> None:
    streaming(turn)
    turn.finished(asks(), 0.0, 0.0, 0.5)


def stopping(turn: Turn) -> None:
    streaming(turn)
    turn.stop(reason="by_client", by="alice", now=0.0)


def ended(turn: Turn) -> None:
    streaming(turn)
    turn.finished(Finished(reason="stop"), 0.0, 0.0, 0.5)


PHASES: dict[str, Callable[[Turn], None]] = {
    made.__name__: made
    for made in (
        due, connecting, waiting_first_token, streaming, retry_wait, waiting_tools,
        stopping, ended,
    )
}  # fmt: skip


def word(action: Action) -> str:
    match action:
        case AppendText(kind=kind):
            said = kind
        case Append(event=event, members=members):
            tag = str(event.__struct_config__.tag)
            detail = members.get("status") or members.get("code")
            said = f"{tag}:{detail}" if detail else tag
        case AppendDone(members=members):
            reason = members["reason"]
            said = f"done:{members['status']}" + (f"/{reason}" if reason else "")
        case CallModel():
            said = "call"
        case CloseModel():
            said = "close"
        case AskTool():
            said = "ask"
        case ShowWaiting(phase=phase):
            said = f"waiting:{phase}"
    return said


def words(actions: list[Action]) -> str:
    return " ".join(map(word, actions))
