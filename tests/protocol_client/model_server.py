"""A server small enough to be right at a glance, for tests of the client machine.

It keeps logs, applies commands once, and serves one connection at a time by a
cursor per conversation. It has no time: the test says when the model speaks.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Struct

from protocol.codec import decode_command, encode
from protocol.commands import (
    ClientFrame,
    Close,
    Command,
    Hello,
    Interrupt,
    Open,
    Send,
    ToolResult,
)
from protocol.control import CaughtUp, Heartbeat, Reply, ToolRequest
from protocol.events import (
    CutEvent,
    DeltaEvent,
    DoneEvent,
    LogEvent,
    MessageEvent,
    StartEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
)
from protocol.merge import merge
from protocol.text import proof
from tests.protocol_client.wire import TIMING, WELCOME

AT = "2026-01-01T00:00:00.000Z"


class Log:
    """One conversation: its events and what waits to be answered."""

    def __init__(self, conversation: str, epoch: str) -> None:
        self.conversation = conversation
        self.epoch = epoch
        self.events: list[LogEvent] = []
        self.receipts: dict[str, Reply] = {}
        self.queue: list[int] = []
        self.turn: int | None = None
        self.answer = ""
        self.call: str | None = None

    def append(self, kind: type[Struct], **members: Any) -> int:
        seq = len(self.events) + 1
        self.events.append(
            kind(conversation=self.conversation, seq=seq, **members)  # pyright: ignore[reportArgumentType]
        )
        return seq

    def begin(self) -> None:
        if self.turn is None and self.queue:
            seq = len(self.events) + 1
            self.append(
                StartEvent, turn=seq, message=self.queue.pop(0), model="m",
                request_id="r", at=AT,
            )  # fmt: skip
            self.turn, self.answer = seq, ""

    def speak(self, text: str) -> None:
        if self.turn is not None and self.call is None:
            self.append(DeltaEvent, turn=self.turn, text=text)
            self.answer += text

    def ask_tool(self) -> None:
        if self.turn is not None and self.call is None:
            self.call = f"{self.epoch}.{len(self.events) + 1}"
            self.append(
                ToolCallEvent, turn=self.turn, call=self.call, name="t", arguments={},
                batch=0, index=0, deadline_at=AT,
            )  # fmt: skip

    def settle(self, output: Any, status: str = "ok") -> None:
        self.append(
            ToolResultEvent, turn=self.turn, call=self.call, status=status,
            output=output, by="me",
        )  # fmt: skip
        self.call = None

    def end(self, status: str = "completed") -> None:
        if self.turn is None:
            return
        if self.call is not None:
            self.settle("", "cancelled")
        if status == "interrupted":
            kept = proof(self.answer)
            self.append(
                CutEvent, turn=self.turn, keep_through=len(self.events), by="me",
                text=kept,
            )  # fmt: skip
        self.append(
            UsageEvent, turn=self.turn, input_tokens=1, output_tokens=1,
            estimated=False, model_calls=1,
        )  # fmt: skip
        self.append(
            DoneEvent, turn=self.turn, status=status, text=proof(self.answer),
            timing=TIMING,
        )  # fmt: skip
        self.turn = None
        self.begin()


class ModelServer:
    """Frames in, frames out; `sent` is what is on its way to the client."""

    def __init__(self) -> None:
        self.logs: dict[str, Log] = {}
        self.sent: list[bytes] = []
        self._greeted = False
        self._positions: dict[str, int] = {}
        self._handles: set[str] = set()
        self._asked: set[str] = set()
        self._epochs = 0

    def cut(self) -> None:
        """The connection is gone, with all that is on its way."""
        self.sent.clear()
        self._greeted = False
        self._positions.clear()
        self._asked.clear()

    def lose(self, conversation: str) -> None:
        """The store lost a conversation and began it anew."""
        self.logs[conversation] = self._new_log(conversation)
        self._positions.pop(conversation, None)

    def receive(self, data: bytes) -> None:
        frame = decode_command(data, max_bytes=1 << 20)
        match frame:
            case Hello():
                self._greeted = True
                self._send(WELCOME)
            case Open():
                self._open(frame)
            case Close():
                self._positions.pop(frame.conversation, None)
                self._send(Reply(re=frame.id, ok=True, outcome="closed"))
            case Command():
                assert self._greeted, "a command came before hello"
                self._apply(frame)
            case _:
                pass

    def pump(self, conversation: str, count: int, *, merged: bool) -> None:
        """Sends up to `count` events after the cursor, and a due tool request."""
        position = self._positions.get(conversation)
        if position is None:
            return
        log = self.logs[conversation]
        batch = log.events[position : position + count]
        self._positions[conversation] = position + len(batch)
        for event in merge(batch) if merged else batch:
            self._send(event)
        if log.call and log.turn and log.call not in self._asked:
            self._asked.add(log.call)
            self._send(
                ToolRequest(
                    conversation=conversation,
                    turn=log.turn,
                    call=log.call,
                    name="t",
                    arguments={},
                    deadline_ms=1000,
                    redelivered=False,
                )
            )

    def forget_requests(self) -> None:
        """Asks for every open call once more."""
        self._asked.clear()

    def heartbeat(self) -> None:
        """Sends a sign of life that names all heads."""
        heads = {name: len(self.logs[name].events) for name in self._positions}
        if self._greeted:
            self._send(Heartbeat(t=1, heads=heads))

    def repeat(self, conversation: str, back: int) -> None:
        """Sends old events once more, as a server with a fault might."""
        position = self._positions.get(conversation)
        if position is not None:
            log = self.logs[conversation]
            for event in log.events[max(0, position - back) : position]:
                self._send(event)

    def _open(self, frame: Open) -> None:
        name = frame.conversation
        assert name is not None
        outcome, reason = "replay", None
        if name not in self.logs:
            assert frame.after is UNSET, "a cursor into nothing"
            self.logs[name] = self._new_log(name)
            outcome = "created"
        log = self.logs[name]
        after = 0 if frame.after is UNSET else frame.after
        if frame.epoch is not None and frame.epoch != log.epoch:
            outcome, reason, after = "reset", "epoch_changed", 0
        elif after > len(log.events):
            outcome, reason, after = "reset", "seq_ahead", 0
        self._positions[name] = after
        if log.call:
            self._asked.discard(log.call)  # who opens anew is asked again
        self._send(
            Reply(
                re=frame.id,
                ok=True,
                outcome=outcome,
                conversation=name,
                epoch=log.epoch,
                head=len(log.events),
                oldest=1,
                reason=reason,
            )
        )
        if after == len(log.events):
            self._send(CaughtUp(conversation=name, seq=after))

    def _apply(self, frame: ClientFrame) -> None:
        assert isinstance(frame, (Send, Interrupt, ToolResult))
        log = self.logs[frame.conversation]
        reply = log.receipts.get(frame.id)
        if reply is not None:
            self._send(msgspec.structs.replace(reply, duplicate=True))
            return
        reply = Reply(re=frame.id, ok=True, outcome=self._outcome(log, frame))
        log.receipts[frame.id] = reply
        self._send(reply)

    def _outcome(self, log: Log, frame: Send | Interrupt | ToolResult) -> str:
        match frame:
            case Send():
                seq = log.append(
                    MessageEvent, id=frame.id, role="user", content=frame.content,
                    by="me", at=AT,
                )  # fmt: skip
                log.queue.append(seq)
                log.begin()
                return "queued" if log.queue else "started"
            case Interrupt():
                if frame.turn != log.turn or log.turn is None:
                    return "already_finished"
                log.end("interrupted")
                return "interrupted"
            case ToolResult():
                if frame.call != log.call:
                    return "late"
                log.settle(frame.output)
                return "accepted"

    def _new_log(self, conversation: str) -> Log:
        self._epochs += 1
        return Log(conversation, f"e{self._epochs}")

    def _send(self, frame: Struct) -> None:
        self.sent.append(encode(frame))
