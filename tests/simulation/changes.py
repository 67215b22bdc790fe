"""What a person changes about conversations, and what is sent again much later."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import asdict, replace

from protocol.commands import (
    Command,
    Configure,
    Fork,
    Interrupt,
    Send,
    ToolResult,
)
from protocol.content import Config, Detach, Tool
from protocol.control import Reply
from protocol.fold import ConversationView
from tests.simulation.host import SPACE
from tests.simulation.lives import Life, Lives

NO_MODEL = "none"
TOOLS = [Tool(name="t"), Tool(name="u", timeout_s=5.0)]


def change(chance: random.Random) -> Config:
    """Draws a change of some settings, now and then to a model that is not there."""
    values: dict[str, list[Any]] = {
        "model": [None, "large", "small", "small", "large", NO_MODEL],
        "instructions": [None, "", f"say {chance.randrange(999)}"],
        "tools": [None, TOOLS, TOOLS[:1], TOOLS[1:], []],
        "params": [None, {"temperature": chance.randrange(9) / 8}],
        "detach": [None, Detach(grace_s=0.0), Detach(grace_s=None)],
    }
    names = chance.sample(list(values), chance.randint(1, 3))
    return Config(**{name: chance.choice(values[name]) for name in names})


def through(view: ConversationView, chance: random.Random) -> int:
    """Draws a number to fork at: the end of a turn, within one, between two, or none."""
    ended = [one.turn for one in view.turns.values() if one.status is not None]
    near = view.last + chance.randint(-2, 2)
    anywhere = [0, near, chance.randint(0, view.last)]
    return max(0, chance.choice([*3 * ended[-3:], *anywhere]))


class Repeats:
    """Commands that were replied to and come again, maybe with another content.

    In the same life of the conversation they have no effect, and the first reply
    comes again.
    """

    def __init__(self, lives: Lives, report: Callable[[str], None]) -> None:
        self._lives = lives
        self._report = report
        self._replied_in: dict[str, Life | None] = {}
        self._first: dict[str, Reply] = {}
        self._meant: dict[str, Command] = {}  # as they were applied
        self._under_way: dict[str, Life | None] = {}  # where it was applied before

    def choose(
        self,
        given: Sequence[Command],
        replies: dict[str, list[Reply]],
        chance: random.Random,
        principal: str,
    ) -> Command | None:
        """Returns a command to be given again; None where there is none."""
        done = [
            command
            for command in given
            if isinstance(command, Configure | Send | Interrupt | ToolResult | Fork)
            and any(reply.ok for reply in replies.get(command.id, ()))
        ]
        if not done:
            return None
        command = chance.choice(done[-12:])
        [self._first[command.id]] = replies[command.id]
        life = self._replied_in[command.id]
        known = life is not None and (principal, command.id) in life.receipts
        self._under_way[command.id] = life if known else None
        if isinstance(command, Send) and chance.random() < 0.3:
            return replace(command, content=f"not {command.content}")
        return command

    def replied(
        self, command: Command, reply: Reply, replies: dict[str, list[Reply]]
    ) -> bool:
        """Takes a reply; says whether it is to a command that came again."""
        conversation = getattr(command, "conversation", "")
        life = self._lives.now(f"{SPACE}/{conversation}")
        if command.id not in self._under_way:
            self._replied_in[command.id], self._meant[command.id] = life, command
            return False
        first, applied_in = self._first[command.id], self._under_way.pop(command.id)
        same = life is not None and applied_in is life
        if not same and reply.ok:  # it was applied again, in another life
            self._replied_in[command.id], self._meant[command.id] = life, command
            first = reply
        replies[command.id] = [first]
        if same and not self._fits(command, conversation, first, reply):
            self._report(f"{command} was told {first}, and then {reply}")
        return True

    def _fits(
        self, command: Command, conversation: str, first: Reply, reply: Reply
    ) -> bool:
        changed = command != self._meant[command.id]
        if reply.error is None:
            if first.stored is False:
                return True  # a crash may have taken it back
            if reply.stored is False and self._lives.may_end(conversation):
                return True  # it is of the next one: the deletion is not stored either
            members = {**asdict(reply), "duplicate": first.duplicate, "stored": True}
            same = members == {**asdict(first), "stored": True}
            return same and reply.duplicate is True and not changed
        code = reply.error.code
        if code == "conversation_not_found":  # its deletion is under way
            return self._lives.may_end(conversation)
        return code == "store_unavailable" or (
            code == "idempotency_conflict" and changed
        )
