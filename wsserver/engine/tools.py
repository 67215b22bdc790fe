"""The tool calls of a turn: what was asked, until when, what came back."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct, structs

from protocol.content import Tool
from protocol.events import InvalidCall, ToolCallEvent, ToolResultEvent, ToolStatus
from wsserver.engine.actions import Action, Append, AskTool
from wsserver.engine.arguments import fault
from wsserver.engine.deadlines import NEVER
from wsserver.engine.model import Call
from wsserver.engine.moments import timestamp

LEAST_AFTER_REDELIVERY_SECONDS = 30.0
SILENT_FAILURE = "The tool failed without saying why."
"""The output of a tool that gave no reason."""

LONGEST_NAME = 64
LONGEST_ID = 256
INVALID_SHOWN = 2000
"""How many characters of arguments that can't be run are kept."""

Settling = Literal["accepted", "duplicate", "conflict", "late", "cancelled", "unknown"]

_encode = msgspec.json.Encoder(order="sorted").encode


class ToolTimes(Struct, frozen=True, kw_only=True):
    """How long calls may take.

    Attributes:
        default_seconds: For tools that name no timeout of their own.
        ceiling_seconds: For all, whatever they name and however often they say that
            they still run.
    """

    default_seconds: float = 120.0
    ceiling_seconds: float = 86_400.0


EPOCH_CHARACTERS = 6
"""Of the epoch, at the end of a call's id: enough to tell two epochs apart."""


class OpenCall(Struct, kw_only=True):
    """A call that waits for its result.

    Attributes:
        arguments: The JSON text as the model wrote it.
        patience_seconds: How long from a sign of life to the deadline.
        deadline_at: On the turn's monotonic clock.
        ceiling_at: What no progress moves the deadline beyond.
        asked: How often a connection was asked to run it.
    """

    call: str
    name: str
    arguments: Raw
    patience_seconds: float
    deadline_at: float
    ceiling_at: float
    asked: int = 0


class Delivery(Struct, frozen=True, kw_only=True):
    """What a connection is told that is asked to run a call.

    Attributes:
        arguments: The JSON text as the model wrote it.
        left_ms: How long it has from now.
        again: Whether a connection was asked before.
    """

    name: str
    arguments: Raw
    left_ms: int
    again: bool


class Batch:
    """The calls of one model call, and the results of all calls of the turn.

    Attributes:
        open: The calls that wait for their result, in call order.
    """

    def __init__(
        self,
        turn: int,
        tools: Mapping[str, Tool],
        times: ToolTimes,
        max_argument_bytes: int,
        epoch: str = "",
    ) -> None:
        """Opens no call yet.

        Args:
            turn: The turn's number, for the calls' ids.
            tools: What the model was told of, by name.
            times: How long calls may take.
            max_argument_bytes: Of one call, as UTF-8.
            epoch: The log's, for the calls' ids: a result that comes late, when the
                conversation was deleted and made anew, is for no call of the new one.
        """
        self.open: dict[str, OpenCall] = {}
        self._turn = turn
        self._ids_end = f".{epoch[:EPOCH_CHARACTERS]}" if epoch else ""
        self._tools = tools
        self._times = times
        self._max_argument_bytes = max_argument_bytes
        self._count = 0
        self._number = -1
        self._settled: dict[str, tuple[ToolStatus, bytes]] = {}

    def call_id(self, position: int) -> str:
        """Returns the id of the call that the running model call opened there."""
        return f"call_{self._turn}.{self._count + position}{self._ids_end}"

    def ask(self, calls: tuple[Call, ...], now: float, wall: float) -> list[Action]:
        """Opens the calls that can be run and settles those that can't."""
        self._number += 1
        actions: list[Action] = []
        for index, whole in enumerate(calls):
            call = _bounded(whole)
            name = self.call_id(index)
            tool = self._tools.get(call.name)
            wrong = fault(call, tool, self._max_argument_bytes)
            if wrong is not None or tool is None:
                actions.append(self._refuse(name, call, index, wrong))
                continue
            opened = self._open(name, call, tool, now)
            members = {
                "call": name,
                "name": call.name,
                "arguments": opened.arguments,
                "batch": self._number,
                "index": index,
                "deadline_at": timestamp(wall + opened.deadline_at - now),
                "upstream_id": call.upstream_id,
            }
            actions.append(Append(ToolCallEvent, members))
        self._count += len(calls)
        actions += [AskTool(name) for name in self.open]
        return actions

    def settle(
        self, call: str, status: ToolStatus, output: Any, by: str
    ) -> tuple[Settling, list[Action]]:
        """Takes the first result of a call; says what became of any other."""
        if call in self.open:
            del self.open[call]
            self._settled[call] = (status, _encode(output))
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
                same = (first, known) == (status, _encode(output))
                return ("duplicate" if same else "conflict"), []

    def progress(self, call: str, now: float) -> bool:
        """Extends an open call's deadline up to its ceiling; never shortens it."""
        found = self.open.get(call)
        if found is not None:
            wanted = min(now + found.patience_seconds, found.ceiling_at)
            found.deadline_at = max(found.deadline_at, wanted)
        return found is not None

    def deliver(self, call: str, now: float) -> Delivery | None:
        """Counts a delivery of a call; None when it is not open.

        After the first one, leaves it time to be answered.
        """
        found = self.open.get(call)
        if found is None:
            return None
        if found.asked:
            least = now + LEAST_AFTER_REDELIVERY_SECONDS
            found.deadline_at = max(found.deadline_at, least)
        found.asked += 1
        return Delivery(
            name=found.name,
            arguments=found.arguments,
            left_ms=max(0, int((found.deadline_at - now) * 1000)),
            again=found.asked > 1,
        )

    def expire(self, now: float) -> list[Action]:
        """Settles the calls whose deadline has passed."""
        late = [name for name, call in self.open.items() if call.deadline_at <= now]
        return self._settle_all(late, "timeout", "The tool did not answer in time.")

    def cancel(self) -> list[Action]:
        """Settles all open calls as cancelled."""
        note = "The call was cancelled before it gave a result."
        return self._settle_all(list(self.open), "cancelled", note)

    def deadline(self) -> float:
        """Returns the earliest deadline of an open call, infinity for none."""
        return min([call.deadline_at for call in self.open.values()], default=NEVER)

    def _settle_all(
        self, calls: list[str], status: ToolStatus, note: str
    ) -> list[Action]:
        actions: list[Action] = []
        for call in calls:
            actions += self.settle(call, status, note, "server")[1]
        return actions

    def _open(self, name: str, call: Call, tool: Tool, now: float) -> OpenCall:
        match tool.timeout_s:
            case None:
                patience = self._times.ceiling_seconds
            case float() | int():
                patience = min(tool.timeout_s, self._times.ceiling_seconds)
            case _:
                patience = self._times.default_seconds
        opened = OpenCall(
            call=name,
            name=call.name,
            arguments=Raw(call.arguments.strip().encode()),
            patience_seconds=patience,
            deadline_at=now + patience,
            ceiling_at=now + self._times.ceiling_seconds,
        )
        self.open[name] = opened
        return opened

    def _refuse(self, name: str, call: Call, index: int, wrong: str | None) -> Append:
        self._settled[name] = ("invalid", b"")
        members = {
            "call": name,
            "status": "invalid",
            "output": wrong,
            "by": "server",
            "invalid": InvalidCall(
                name=call.name,
                arguments=call.arguments[:INVALID_SHOWN],
                batch=self._number,
                index=index,
                upstream_id=call.upstream_id,
            ),
        }
        return Append(ToolResultEvent, members)


def _bounded(call: Call) -> Call:
    """Cuts a name or an id that no frame should have to carry.

    A name that is cut is no tool's, so the call is refused.
    """
    if len(call.name) <= LONGEST_NAME and len(call.upstream_id) <= LONGEST_ID:
        return call
    name = call.name
    if len(name) > LONGEST_NAME:
        name = name[:LONGEST_NAME] + "…"
    return structs.replace(call, name=name, upstream_id=call.upstream_id[:LONGEST_ID])
