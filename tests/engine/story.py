"""A log told entry by entry, without the log."""

import re
import zlib
from typing import Any

import msgspec
import orjson

from protocol.content import TextProof, Timing
from protocol.events import (
    CutEvent,
    DoneEvent,
    Event,
    InvalidCall,
    MessageEvent,
    StartEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
)
from tests.fakes.strict_messages import find_fault
from wsserver.engine.prompt import Message, PromptFold
from wsserver.log.entry import Entry, text_entry

AT = "2026-01-02T03:04:05.678Z"


class Story:
    """Entries of one conversation, numbered from 1."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.turn = 0

    @property
    def head(self) -> int:
        return len(self.entries)

    def add(self, event: type[Event], **members: Any) -> int:
        seq = self.head + 1
        made = event(conversation="c", seq=seq, **members)
        kind = str(event.__struct_config__.tag)
        body = msgspec.json.encode(made)
        self.entries.append(Entry(kind, seq, seq, members.get("turn", 0), body))
        return seq

    def message(self, content: Any = "hi", steers: int | None = None) -> int:
        members = {"id": f"s{self.head}", "role": "user", "by": "alice", "at": AT}
        return self.add(MessageEvent, content=content, steers=steers, **members)

    def start(self, message: int) -> int:
        self.turn = self.head + 1
        members = {"model": "m", "request_id": "r", "at": AT}
        return self.add(StartEvent, turn=self.turn, message=message, **members)

    def ask(self, content: Any = "hi") -> int:
        """A message, and its turn."""
        return self.start(self.message(content))

    def say(self, *texts: str, kind: str = "delta") -> int:
        for text in texts:
            self.entries.append(text_entry(kind, self.head + 1, self.turn, text))
        return self.head

    def call(self, number: int, batch: int, **members: Any) -> str:
        name = f"call_{self.turn}.{number}"
        given = {"name": "weather", "arguments": {"n": number}, "index": number}
        made = {**given, "upstream_id": f"up{number}", "deadline_at": AT, **members}
        self.add(ToolCallEvent, turn=self.turn, call=name, batch=batch, **made)
        return name

    def result(self, call: str, output: Any, status: str = "ok") -> None:
        members = {"call": call, "status": status, "output": output, "by": "alice"}
        self.add(ToolResultEvent, turn=self.turn, **members)

    def invalid(self, number: int, batch: int, name: str = "weather") -> None:
        invalid = InvalidCall(
            name=name, arguments="{", batch=batch, index=number, upstream_id=f"up{number}"
        )  # fmt: skip
        call = f"call_{self.turn}.{number}"
        members = {"call": call, "status": "invalid", "output": "bad", "by": "server"}
        self.add(ToolResultEvent, turn=self.turn, invalid=invalid, **members)

    def cut(self, through: int, turn: int = 0) -> None:
        turn = turn or self.turn
        kept = "".join(
            entry.text()
            for entry in self.entries[:through]
            if entry.turn == turn and entry.kind == "delta"
        ).encode()
        proof = TextProof(bytes=len(kept), crc32=zlib.crc32(kept))
        self.add(CutEvent, turn=turn, keep_through=through, by="alice", text=proof)

    def done(self, status: Any = "completed", model_calls: int = 1) -> None:
        self.add(
            UsageEvent,
            turn=self.turn,
            input_tokens=1,
            output_tokens=1,
            estimated=False,
            model_calls=model_calls,
        )
        self.add(
            DoneEvent,
            turn=self.turn,
            status=status,
            reason="by_client" if status == "interrupted" else None,
            text=TextProof(bytes=0, crc32=0),
            timing=Timing(queue_ms=0, total_ms=0),
        )

    def prompt(self, *, waiting: tuple[int, ...] = (), **members: Any) -> list[Message]:
        fold = PromptFold()
        fold.waiting = waiting
        fold.add(self.entries)
        given = {"instructions": None, "context_tokens": None, **members}
        return fold.messages(**given)


def check_prompt(messages: list[Message], *, asks: bool = True) -> None:
    """Fails if a strict provider would refuse it; else it may end with an answer."""
    question = [] if asks else [{"role": "user", "content": "next"}]
    assert find_fault([*messages, *question]) is None
    for message in messages:
        for call in message.get("tool_calls", ()):
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["function"]["name"])
            orjson.loads(call["function"]["arguments"])


def short(messages: list[Message]) -> list[str]:
    """Writes messages as `role: content [calls]`."""
    out: list[str] = []
    for message in messages:
        calls = [call["function"]["name"] for call in message.get("tool_calls", ())]
        content = message["content"]
        mark = f" {calls}" if calls else ""
        out.append(f"{message['role']}: {'' if content is None else content}{mark}")
    return out
