"""Looks at every frame on a link while it is handed over, and trusts nobody.

The client machine heals many faults of a server by opening again; this sees the
faults themselves.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from tests.simulation.disk import Disk

Report = Callable[[str], None]

_DURABLE = {
    "started", "queued", "steering", "interrupted", "dequeued", "accepted", "configured"
}  # fmt: skip
_TEXT = {"delta", "reasoning", "tool_delta"}


class _Attached:
    """What was sent of one conversation since it was opened."""

    def __init__(self, last: int, head: int, *, gathers: bool) -> None:
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
        disk: The durable store; None where the store forgets.
        trimmed: Up to which number logs were trimmed, by key.
        report: Told of what is wrong.
        trace: Takes every frame that the server hands over.
    """

    def __init__(
        self,
        name: str,
        space: str,
        principal: str,
        disk: Disk | None,
        trimmed: Mapping[str, int],
        report: Report,
        trace: list[bytes] | None = None,
    ) -> None:
        self.heard_count: Counter[str] = Counter()
        self.replied: Counter[str] = Counter()
        self._name = name
        self._space = space
        self.principal = principal
        self._disk = disk
        self._trimmed = trimmed
        self._report = report
        self._trace = trace
        self._commands: dict[str, dict[str, Any]] = {}
        self._attached: dict[str, _Attached] = {}

    def heard(self, data: bytes) -> None:
        """The server takes a frame in."""
        frame = orjson.loads(data)
        if "id" in frame:
            self.heard_count[frame["id"]] += 1
            self._commands[frame["id"]] = frame

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
        if command["type"] == "open":
            after = command.get("after", reply["oldest"] - 1)
            if outcome != "replay":
                after = reply["oldest"] - 1
            gathers = command.get("max_delay_ms") is not None
            self._attached[conversation] = _Attached(
                after, reply["head"], gathers=gathers
            )
            self._stored(conversation, reply["head"])
            if outcome == "reset" and not (
                reply["reason"] == "expired"
                and self._lost(conversation, command["after"])
            ):
                self._wrong(f"a log that lost nothing was reset: {reply}")
            return
        if command["type"] == "close":
            self._attached.pop(conversation, None)
            return
        repeated = reply.get("duplicate", False)  # what it left is replayed here
        stored = reply.get("stored", True)  # else what stays may come after the reply
        stopped = outcome == "interrupted" and stored and not repeated
        if stopped and conversation in self._attached:
            self._attached[conversation].stopped.add(reply["turn"])
        disk = self._disk
        if disk is not None and outcome in _DURABLE and stored:
            self._stored(conversation, reply.get("seq", 0))
            if (
                self._space,
                conversation,
                self.principal,
                re,
            ) not in disk.receipts_kept:
                self._wrong(f"a reply left before its effect was stored: {reply}")

    def _caught_up(self, frame: dict[str, Any]) -> None:
        conversation, seq = frame["conversation"], frame["seq"]
        attached = self._attached.get(conversation)
        if attached is not None and attached.last < seq:
            lost = self._lost(conversation, attached.last)
            attached.caught_up &= not lost  # what is gone may be told a second time
            attached.last = seq if lost else attached.last
        if attached is None or attached.caught_up or attached.last != seq:
            self._wrong(f"not caught up, or twice: {frame}")
            return
        attached.caught_up = True
        if attached.last < attached.head and not attached.gathers:
            self._wrong(f"caught up before the head: {frame}")

    def _tool_request(self, frame: dict[str, Any]) -> None:
        key = f"{self._space}/{frame['conversation']}"
        if self._disk is not None and (key, frame["call"]) not in self._disk.calls:
            self._wrong(f"a tool was asked for before its call was stored: {frame}")
        if frame["conversation"] not in self._attached:
            self._wrong(f"a tool was asked of who did not open: {frame}")

    def _heads(self, heads: dict[str, int]) -> None:
        for conversation, head in heads.items():
            self._stored(conversation, head)

    def _event(self, event: dict[str, Any]) -> None:
        conversation, seq = event["conversation"], event["seq"]
        attached = self._attached.get(conversation)
        if attached is None:
            self._wrong(f"an event of what is not open: {event}")
            return
        first, following = event.get("first", seq), attached.last + 1
        if first != following and not (
            first > following and self._lost(conversation, attached.last)
        ):
            self._wrong(f"not the number after {attached.last}: {event}")
        attached.last = seq
        self._stored(conversation, seq)
        if event["type"] in _TEXT and event["turn"] in attached.stopped:
            self._wrong(f"text after the reply to an interrupt: {event}")

    def _lost(self, conversation: str, after: int) -> bool:
        """Whether what comes after a number was trimmed."""
        return after < self._trimmed.get(f"{self._space}/{conversation}", 0)

    def _stored(self, conversation: str, seq: int) -> None:
        disk = self._disk
        key = f"{self._space}/{conversation}"
        if disk is not None and disk.heads.get(key, 0) < seq:
            self._wrong(
                f"{conversation} {seq} was seen and {disk.heads.get(key, 0)} is stored"
            )
