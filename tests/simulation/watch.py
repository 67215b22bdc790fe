"""Looks at every frame on a link while it is handed over, and trusts nobody.

The client machine heals many faults of a server by opening again; this sees the
faults themselves.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import orjson

from tests.simulation.lives import Asked, Life, Lives

Report = Callable[[str], None]

_DURABLE = {
    "started", "queued", "steering", "interrupted", "dequeued", "accepted", "configured"
}  # fmt: skip
_TEXT = {"delta", "reasoning", "tool_delta"}


class _Attached:
    """What was sent of one conversation since it was opened."""

    def __init__(self, epoch: str, last: int, head: int, *, gathers: bool) -> None:
        self.epoch = epoch
        self.last = last
        self.head = head
        self.gathers = gathers  # then the end of the newest text may come later
        self.caught_up = False
        self.stopped: set[int] = set()


class Watch:
    """Checks one connection.

    Args:
        name: Of the connection, for reports.
        space: What the store's keys begin with.
        principal: Whose connection it is.
        lives: What was stored.
        durable: Whether that has to be before anybody hears of it.
        oldest: Returns the first number that the server keeps of a conversation.
        report: Told of what is wrong.
        trace: Takes every frame that the server hands over.
    """

    def __init__(
        self,
        name: str,
        space: str,
        principal: str,
        lives: Lives,
        durable: bool,
        oldest: Callable[[str], int],
        report: Report,
        trace: list[bytes] | None = None,
    ) -> None:
        self.heard_count: Counter[str] = Counter()
        self.replied: Counter[str] = Counter()
        self._name = name
        self._space = space
        self.principal = principal
        self._lives = lives
        self._durable = durable
        self._oldest = oldest
        self._report = report
        self._trace = trace
        self._commands: dict[str, dict[str, Any]] = {}
        self._attached: dict[str, _Attached] = {}
        self._deletes: dict[str, Life | None] = {}  # what there was when it came last

    def heard(self, data: bytes) -> None:
        """The server takes a frame in."""
        frame = orjson.loads(data)
        if "id" not in frame:
            return
        self.heard_count[frame["id"]] += 1
        self._commands[frame["id"]] = frame
        life = self._lives.now(self._key(frame["conversation"]))
        if frame["type"] in ("open", "send"):
            self._lives.woken.add(self._key(frame["conversation"]))
        elif frame["type"] == "delete":
            self._lives.deletes.add(frame["conversation"])
            self._lives.deleting.setdefault(frame["id"], []).append(life)
            self._deletes[frame["id"]] = life
        elif frame["type"] == "fork":
            head = life.head if life else 0
            asked = Asked(at=anyio.current_time(), life=life, head=head)
            self._lives.asked.setdefault(frame["id"], asked)

    def sent(self, frames: Sequence[bytes]) -> None:
        """The server hands frames over."""
        if self._trace is not None:
            self._trace += frames
        for data in frames:
            frame = orjson.loads(data)
            kind = frame["type"]
            if kind == "reply":
                self._reply(frame)
            elif kind == "caught_up":
                self._caught_up(frame)
            elif kind == "tool_request":
                self._tool_request(frame)
            elif kind == "ping":
                self._heads(frame["heads"])
            elif kind == "error" and "gone" in frame:
                self._gone(frame)
            elif kind == "error" and "conversation" not in frame:
                self._wrong(f"an error that no command caused: {frame}")
            elif "seq" in frame:
                self._event(frame)

    def unanswered(self) -> list[str]:
        """Returns the ids of commands that got no reply."""
        return list((self.heard_count - self.replied).elements())

    def _wrong(self, what: str) -> None:
        self._report(f"{self._name}: {what}")

    def _reply(self, reply: dict[str, Any]) -> None:
        re = reply["re"]
        self.replied[re] += 1
        if self.replied[re] > self.heard_count[re]:
            self._wrong(f"more replies than commands: {reply}")
        if not reply["ok"]:
            return
        command = self._commands[re]
        conversation, outcome = command["conversation"], reply["outcome"]
        match command["type"]:
            case "open":
                self._opened(command, reply)
            case "close":
                self._attached.pop(conversation, None)
            case "delete":
                if reply.get("duplicate"):
                    # What has the name since may be open, and stays so. It may have come
                    # first on a connection that was lost.
                    meant = self._lives.deleting[re]
                else:
                    meant = [self._deletes[re]]
                    self._attached.pop(conversation, None)
                if all(life is not None and life.ended_at is None for life in meant):
                    self._wrong(f"it was not deleted before {reply}")
            case "fork":
                key = self._key(reply["conversation"])
                if self._durable and not self._lives.of(key):
                    self._wrong(f"a fork was not stored before {reply}")
            case _:
                self._applied(conversation, outcome, reply)

    def _opened(self, command: dict[str, Any], reply: dict[str, Any]) -> None:
        conversation, oldest = command["conversation"], reply["oldest"]
        after = command.get("after", oldest - 1)
        expired = after < oldest - 1
        moved = command.get("epoch") not in (None, reply["epoch"])
        if reply["outcome"] == "reset":
            legit = {"expired": expired and not moved, "epoch_changed": moved}
            if not legit.get(reply["reason"], False):
                self._wrong(f"there was no reason for a reset: {command}, {reply}")
            after = oldest - 1
        elif moved or not oldest - 1 <= after <= reply["head"]:
            self._wrong(f"there was a reason for a reset: {command}, {reply}")
        elif reply["outcome"] == "created" and "after" in command:
            self._wrong(f"who resumes has made a conversation: {command}, {reply}")
        gathers = command.get("max_delay_ms") is not None
        self._attached[conversation] = _Attached(
            reply["epoch"], after, reply["head"], gathers=gathers
        )
        life = self._life(conversation)
        if life is not None and not life.begins(oldest):
            self._wrong(f"a log begins inside of a turn: {reply}")
        self._stored(conversation, reply["head"])

    def _applied(self, conversation: str, outcome: str, reply: dict[str, Any]) -> None:
        repeated = reply.get("duplicate", False)  # what it left is replayed here
        stored = reply.get("stored", True)  # else what stays may come after the reply
        stopped = outcome == "interrupted" and stored and not repeated
        if stopped and conversation in self._attached:
            self._attached[conversation].stopped.add(reply["turn"])
        if not (self._durable and outcome in _DURABLE and stored):
            return
        receipt, seq = (self.principal, reply["re"]), reply.get("seq", 0)
        if not any(
            receipt in life.receipts and life.head >= seq
            for life in self._lives.of(self._key(conversation))
        ):
            self._wrong(f"a reply left before its effect was stored: {reply}")

    def _gone(self, frame: dict[str, Any]) -> None:
        conversation = frame["gone"]
        if self._attached.pop(conversation, None) is None:
            self._wrong(f"it was not open: {frame}")
        if conversation not in self._lives.deletes:
            self._wrong(f"nobody has deleted it: {frame}")

    def _caught_up(self, frame: dict[str, Any]) -> None:
        conversation, seq = frame["conversation"], frame["seq"]
        attached = self._attached.get(conversation)
        if attached is not None and (
            attached.last < seq < self._oldest(self._key(conversation))
        ):  # what lacks was trimmed: that is told even where the replay was over
            attached.last, attached.caught_up = seq, False
        if attached is None or attached.caught_up or attached.last != seq:
            self._wrong(f"not caught up, or twice: {frame}")
            return
        attached.caught_up = True
        if attached.last < attached.head and not attached.gathers:
            self._wrong(f"caught up before the head: {frame}")

    def _tool_request(self, frame: dict[str, Any]) -> None:
        conversation = frame["conversation"]
        if conversation not in self._attached:
            self._wrong(f"a tool was asked of who did not open: {frame}")
            return
        life = self._life(conversation)
        if self._durable and (life is None or frame["call"] not in life.calls):
            self._wrong(f"a tool was asked for before its call was stored: {frame}")

    def _heads(self, heads: dict[str, int]) -> None:
        for conversation, head in heads.items():
            self._stored(conversation, head)

    def _event(self, event: dict[str, Any]) -> None:
        conversation, seq = event["conversation"], event["seq"]
        attached = self._attached.get(conversation)
        if attached is None:
            self._wrong(f"an event of what is not open: {event}")
            return
        first, due = event.get("first", seq), attached.last + 1
        if first != due and not due < first <= self._oldest(self._key(conversation)):
            self._wrong(f"not the number after {attached.last}: {event}")
        attached.last = seq
        self._stored(conversation, seq)
        life = self._life(conversation)
        if life is not None and life.ended_at is not None:
            self._wrong(f"its conversation was deleted: {event}")
        if event["type"] in _TEXT and event["turn"] in attached.stopped:
            self._wrong(f"text after the reply to an interrupt: {event}")

    def _stored(self, conversation: str, seq: int) -> None:
        """Checks what is told of an open conversation."""
        life = self._life(conversation)
        head = 0 if life is None else life.head
        if self._durable and (life is None or head < seq):
            self._wrong(f"{conversation} {seq} was seen and {head} is stored")

    def _life(self, conversation: str) -> Life | None:
        """Returns the life that is open here."""
        attached = self._attached[conversation]
        return self._lives.epoch(self._key(conversation), attached.epoch)

    def _key(self, conversation: str) -> str:
        return f"{self._space}/{conversation}"
