"""A client machine with both its ends in the test's hands."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from protocol.backoff import Backoff
from protocol.client.events import ClientEvent
from protocol.client.machine import ClientProtocol
from protocol.content import Limits, ServerInfo, TextProof, Timing
from protocol.control import Welcome
from protocol.events import DeltaEvent

LIMITS = Limits(
    frame_bytes=4096, conversations=8, active_turns=8, queued=8, pending_tools=8,
    tool_output_bytes=1024, idempotency_s=3600,
)  # fmt: skip
WELCOME = Welcome(
    protocol=1, connection="w1", heartbeat_ms=20_000,
    server=ServerInfo(name="double", version="1"), models=["m"], limits=LIMITS,
    features=[],
)  # fmt: skip
PROOF = TextProof(bytes=0, crc32=0)
TIMING = Timing(queue_ms=0, total_ms=0)
AnyEvent = TypeVar("AnyEvent")


class Wire:
    """Feeds a machine and reads what it says; `now` moves only by hand."""

    def __init__(self, random: Callable[[], float] | None = None) -> None:
        self.now = 100.0
        self.jitter = 0.5
        random = random or (lambda: self.jitter)
        self.client = ClientProtocol(
            prefix="me", random=random, backoff=Backoff(random=random)
        )

    def connect(self) -> None:
        """Opens a transport and says welcome; hello is taken off."""
        if self.client.phase == "offline":
            self.advance_to_timer()
        self.client.connected(self.now)
        assert self.sent()[0]["type"] == "hello"
        self.receive(WELCOME)

    def receive(self, frame: Struct | bytes) -> None:
        data = frame if isinstance(frame, bytes) else msgspec.json.encode(frame)
        self.client.received(data, self.now)

    def receive_json(self, **members: Any) -> None:
        self.client.received(msgspec.json.encode(members), self.now)

    def open(self, conversation: str = "c", **members: Any) -> None:
        """Opens a conversation that is new to the server."""
        self.client.open(conversation)
        opening = self.sent()[-1]
        self.verdict(opening["id"], conversation=conversation, **members)
        self.events()

    def verdict(self, re: str, outcome: str = "replay", **members: Any) -> None:
        given = {"conversation": "c", "epoch": "e1", "head": 0, "oldest": 1} | members
        self.receive_json(type="reply", re=re, ok=True, outcome=outcome, **given)

    def refuse(self, re: str, code: str, *, retryable: bool = False) -> None:
        error = {"code": code, "message": "no", "retryable": retryable}
        self.receive_json(type="reply", re=re, ok=False, error=error)

    def delta(self, seq: int, text: str = "x", first: int | None = None) -> None:
        self.receive(
            DeltaEvent(conversation="c", turn=1, seq=seq, text=text, first=first)
        )

    def sent(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(frame) for frame in self.client.data_to_send()]

    def events(self) -> list[ClientEvent]:
        return self.client.events()

    def only(self, kind: type[AnyEvent]) -> AnyEvent:
        """The one event of a kind among those that are due."""
        found = [event for event in self.events() if isinstance(event, kind)]
        assert len(found) == 1, found
        return found[0]

    def advance_to_timer(self) -> None:
        due = self.client.next_timer()
        assert due is not None
        self.now = max(self.now, due)
        self.client.timer(self.now)
