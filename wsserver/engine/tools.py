"""The open tool calls of a turn: what was asked, until when, what came back."""

from typing import Any, Literal

import orjson
from msgspec import Struct

from protocol.content import Tool
from protocol.events import InvalidCall, ToolCallEvent, ToolResultEvent, ToolStatus
from wsserver.engine.actions import Action, Append, AskTool
from wsserver.engine.deadlines import NEVER
from wsserver.engine.model import Call
from wsserver.engine.moments import timestamp

LEAST_AFTER_REDELIVERY_SECONDS = 30.0

Settling = Literal["accepted", "duplicate", "conflict", "late", "cancelled", "unknown"]


class ToolTimes(Struct, frozen=True, kw_only=True):
    """How long calls may take, in seconds."""

    default: float = 120.0
    ceiling: float = 86_400.0


class OpenCall(Struct, kw_only=True):
    """A call that waits for its result.

    Attributes:
        patience: How long from a sign of life to the deadline, in seconds.
        deadline: On the turn's monotonic clock.
        ceiling: What no progress moves the deadline beyond.
    """

    call: str
    name: str
    arguments: Any
    patience: float
    deadline: float
    ceiling: float
    asked: int = 0


class Batch:
    """The calls of one model call, and the results of all calls of the turn."""

    def __init__(self, turn: int, times: ToolTimes) -> None:
        self._turn = turn
        self._times = times
        self._count = 0
        self._number = -1
        self._settled: dict[str, tuple[ToolStatus, bytes]] = {}
        self.open: dict[str, OpenCall] = {}

    def call_id(self, position: int) -> str:
        """Returns the id of the call that the running model call opened there."""
        return f"call_{self._turn}.{self._count + position}"

    def ask(
        self,
        calls: tuple[Call, ...],
        tools: dict[str, Tool],
        now: float,
        wall: float,
        max_bytes: int,
    ) -> list[Action]:
        """Opens the calls that can be run and settles those that can't."""
        self._number += 1
        actions: list[Action] = []
        for index, call in enumerate(calls):
            name = self.call_id(index)
            fault = _fault(call, max_bytes)
            if fault is not None:
                actions.append(self._refuse(name, call, index, fault))
                continue
            opened = self._open(name, call, tools.get(call.name), now)
            actions.append(
                Append(
                    ToolCallEvent,
                    {
                        "call": name,
                        "name": call.name,
                        "arguments": opened.arguments,
                        "batch": self._number,
                        "index": index,
                        "deadline_at": timestamp(wall + opened.deadline - now),
                        "upstream_id": call.upstream_id,
                    },
                )
            )
        self._count += len(calls)
        actions += [AskTool(name) for name in self.open]
        return actions

    def settle(
        self, call: str, status: ToolStatus, output: Any, by: str
    ) -> tuple[Settling, list[Action]]:
        """Takes the first result of a call; says what became of any other."""
        encoded = orjson.dumps(output, option=orjson.OPT_SORT_KEYS)
        if call in self.open:
            del self.open[call]
            self._settled[call] = (status, encoded)
            members = {"call": call, "status": status, "output": output, "by": by}
            return "accepted", [Append(ToolResultEvent, members)]
        if call not in self._settled:
            return "unknown", []
        first, known = self._settled[call]
        match first:
            case "timeout":
                return "late", []
            case "cancelled":
                return "cancelled", []
            case "invalid":
                return "unknown", []
            case "ok" | "error":
                same = (first, known) == (status, encoded)
                return ("duplicate" if same else "conflict"), []

    def progress(self, call: str, now: float) -> bool:
        """Extends an open call's deadline up to its ceiling."""
        found = self.open.get(call)
        if found is not None:
            wanted = max(found.deadline, now + found.patience)
            found.deadline = min(wanted, found.ceiling)
        return found is not None

    def redelivered(self, call: str, now: float) -> OpenCall:
        """Counts one more delivery, and leaves it time to be answered."""
        found = self.open[call]
        if found.asked:
            least = now + LEAST_AFTER_REDELIVERY_SECONDS
            found.deadline = max(found.deadline, least)
        found.asked += 1
        return found

    def expire(self, now: float) -> list[Action]:
        """Settles the calls whose deadline has passed."""
        late = [name for name, call in self.open.items() if call.deadline <= now]
        actions: list[Action] = []
        for name in late:
            note = "The tool did not answer in time."
            actions += self.settle(name, "timeout", note, "server")[1]
        return actions

    def cancel(self) -> list[Action]:
        """Settles all open calls as cancelled."""
        actions: list[Action] = []
        for name in list(self.open):
            note = "The call was cancelled before it gave a result."
            actions += self.settle(name, "cancelled", note, "server")[1]
        return actions

    def deadline(self) -> float:
        """Returns the earliest deadline of an open call, infinity for none."""
        return min((call.deadline for call in self.open.values()), default=NEVER)

    def _open(self, name: str, call: Call, tool: Tool | None, now: float) -> OpenCall:
        patience: float | None = self._times.default
        if tool is not None and tool.timeout_s is None:
            patience = self._times.ceiling
        elif tool is not None and isinstance(tool.timeout_s, int | float):
            patience = min(tool.timeout_s, self._times.ceiling)
        opened = OpenCall(
            call=name,
            name=call.name,
            arguments=orjson.loads(call.arguments),
            patience=patience,
            deadline=now + patience,
            ceiling=now + self._times.ceiling,
        )
        self.open[name] = opened
        return opened

    def _refuse(self, name: str, call: Call, index: int, fault: str) -> Append:
        self._settled[name] = ("invalid", b"")
        invalid = InvalidCall(
            name=call.name,
            arguments=call.arguments[:2000],
            batch=self._number,
            index=index,
            upstream_id=call.upstream_id,
        )
        members = {"call": name, "status": "invalid", "output": fault, "by": "server"}
        return Append(ToolResultEvent, members | {"invalid": invalid})


def _fault(call: Call, max_bytes: int) -> str | None:
    """Says, for the model, why a call can't be run; None when it can."""
    if not call.name:
        return "The call names no tool; it was not run."
    if not call.valid:
        return "The arguments are not valid JSON; the tool was not run."
    if len(call.arguments.encode()) > max_bytes:
        return f"The arguments are longer than {max_bytes} bytes; the tool was not run."
    return None
