"""What a model must have been told: the settings of the start, and who said what.

It goes by the log alone, so nothing of another life of the conversation, of what a
fork left behind, or of what was trimmed may be in a prompt.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import UNSET
from msgspec.structs import asdict

from protocol.commands import Command, Configure
from protocol.content import Config
from protocol.control import Reply
from protocol.events import (
    ConfigEvent,
    DoneEvent,
    MessageEvent,
    StartEvent,
    ToolResultEvent,
    UsageEvent,
)
from tests.simulation.changes import NO_MODEL
from tests.simulation.log_oracle import Log, Report
from tests.simulation.model import Model
from wsserver.engine.model import ModelRequest

LATE_SECONDS = 1.0
"""How long a model may say something after its conversation was deleted."""


def check_prompts(log: Log, model: Model, report: Report) -> None:
    """Checks every call of a model that was made for a log."""
    wrong = partial(_say, log.name, report)
    config, turns = Config(), _turns(log)
    for event in log.events:
        if isinstance(event, ConfigEvent):
            config = event.config
        elif isinstance(event, ToolResultEvent):
            _check_output(event, log, wrong)
        elif isinstance(event, StartEvent) and event.seq > log.base:
            _check_turn(event, config, log, turns, model, wrong)
    for seq, steered in turns.joined():
        request_id = turns.starts[steered].request_id
        asked = [m["content"] for p in model.prompts[request_id] for m in p]
        if turns.messages[seq].content not in asked:
            wrong(f"{turns.messages[seq]} reached no model")


def _check_turn(
    start: StartEvent,
    config: Config,
    log: Log,
    turns: "_Turns",
    model: Model,
    wrong: Report,
) -> None:
    if start.model != (config.model or "test"):
        wrong(f"turn {start.turn} asked {start.model} under {config}")
    places = [log.first, *sorted(end + 1 for end in log.life.ends)]
    for request in model.requests[start.request_id]:
        _check_settings(start, request, config, wrong)
        users = [m["content"] for m in request.messages if m["role"] == "user"]
        if not any(turns.tell(start.turn, users, place) for place in places):
            wrong(f"turn {start.turn} was told {users}")
    ended, said = log.life.ended_at, model.said_at.get(start.request_id, 0.0)
    if ended is not None and said > ended + LATE_SECONDS:
        wrong(f"turn {start.turn} went on after its conversation was deleted")


def _say(name: str, report: Report, what: str) -> None:
    report(f"prompts of {name}: {what}")


def _check_settings(
    start: StartEvent, request: ModelRequest, config: Config, wrong: Report
) -> None:
    said = [m["content"] for m in request.messages if m["role"] == "system"]
    tools = [tool["function"]["name"] for tool in request.tools]
    told = (said, tools, request.params, request.model)
    meant = (
        [config.instructions] if config.instructions else [],
        [tool.name for tool in config.tools or ()],
        config.params or {},
        start.model,
    )
    if told != meant:
        wrong(f"turn {start.turn} was asked with {told}, not with {meant}")


def _check_output(event: ToolResultEvent, log: Log, wrong: Report) -> None:
    if event.seq > log.base and isinstance(event.output, dict):
        epoch = event.output.get("epoch")
        if epoch != log.life.epoch:
            wrong(f"a result of the epoch {epoch} came into {log.life.epoch}: {event}")


class _Turns:
    """The turns of a log, by what the users said."""

    def __init__(self, ended: bool) -> None:
        self.ended = ended
        self.messages: dict[int, MessageEvent] = {}
        self.starts: dict[int, StartEvent] = {}
        self.withdrawn: set[int] = set()
        self.own: set[int] = set()

    def tell(self, turn: int, users: Sequence[Any], place: int) -> bool:
        """Whether a turn may have been told this, while the log began at a place."""
        own = self.messages.get(self.starts[turn].message)
        if own is None:
            return False
        said = [*self._before(turn, place), (own.content, True)]
        said += [(m.content, False) for m in self.messages.values() if m.steers == turn]
        told = list(users)
        for content, surely in said:
            if told and told[0] == content:
                del told[0]
            elif surely:
                return False
        return not told

    def _before(self, turn: int, place: int) -> list[tuple[Any, bool]]:
        """Returns what users said in the turns before one, and whether it must be told.

        Of what wanted to join a turn and was deleted, nobody knows whether it did.
        """
        said: list[tuple[Any, bool]] = []
        for number, start in self.starts.items():
            known = min(number, start.message) >= place
            if number >= turn or number in self.withdrawn or not known:
                continue
            said.append((self.messages[start.message].content, True))
            said += [
                (message.content, not self.ended)
                for seq, message in self.messages.items()
                if message.steers == number and seq not in self.own
            ]
        return said

    def joined(self) -> list[tuple[int, int]]:
        """Returns messages without a turn of their own, and what they steered."""
        if self.ended:
            return []
        return [
            (seq, message.steers)
            for seq, message in self.messages.items()
            if seq not in self.own and message.steers in self.starts
        ]


def _turns(log: Log) -> _Turns:
    turns = _Turns(log.life.ended_at is not None)
    calls: dict[int, int] = {}
    for event in log.events:
        match event:
            case MessageEvent():
                turns.messages[event.seq] = event
            case StartEvent():
                turns.starts[event.turn] = event
                turns.own.add(event.message)
            case UsageEvent():
                calls[event.turn] = event.model_calls
            case DoneEvent() if event.status == "interrupted" and not calls[event.turn]:
                turns.withdrawn.add(event.turn)
            case _:
                pass
    return turns


def check_settings(
    logs: Sequence[Log],
    given: Sequence[Command],
    replies: Mapping[str, list[Reply]],
    report: Callable[[str], None],
) -> None:
    """Checks that each `configure` had effect as it says, and once."""
    told: dict[tuple[str, int], list[Configure]] = {}
    for command in given:
        if isinstance(command, Configure):
            reply = replies[command.id][0]
            if reply.seq:
                told.setdefault((command.conversation, reply.seq), []).append(command)
            bad = reply.error is not None and reply.error.code == "bad_model"
            if bad and command.config.model == NO_MODEL:
                continue
            if bad or (reply.ok and command.config.model == NO_MODEL):
                report(f"{command} was told {reply}")
    several = [log.name for log in logs]
    for log in logs:
        config, own = Config(), 0
        for event in log.events:
            if not isinstance(event, ConfigEvent):
                continue
            own += event.seq > log.base
            commands = told.get((log.name, event.seq), [])
            changed = [_changed(config, command.config) for command in commands]
            first = own == 1 and config == Config()  # made with it, or a fork's
            once = several.count(log.name) == 1 and event.seq > log.base
            if once and not first and event.config not in changed:
                report(f"{log.name} was configured by nobody: {event}")
            config = event.config


def _changed(config: Config, change: Config) -> Config:
    members = asdict(config)
    for name, value in asdict(change).items():
        if value is None:
            members[name] = UNSET
        elif value is not UNSET:
            members[name] = value
    return Config(**members)
