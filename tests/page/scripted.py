"""A server of which a test writes every frame, in the place of the page's socket."""

import zlib
from typing import Any

import orjson
from playwright.sync_api import Page, WebSocketRoute

from tests.conformance.judge import frame_of

WELCOME: dict[str, Any] = {
    "type": "welcome",
    "models": ["demo/markdown", "demo/long"],
    "features": ["gathered_text"],
}
NOT_FOUND = {"code": "conversation_not_found", "message": "no", "retryable": False}
DRAINED = 4601


class ScriptedServer:
    """Welcomes, opens what is asked for, and otherwise says what it is told to."""

    def __init__(self, page: Page) -> None:
        self.sockets: list[WebSocketRoute] = []
        self.received: list[dict[str, Any]] = []
        self.conversation = ""
        self.events: list[dict[str, Any]] = []
        self.turn = 0
        self.deleted: set[str] = set()
        page.route_web_socket("**/v1/chat", self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        self.sockets.append(socket)
        socket.on_message(lambda text: self._take(orjson.loads(text)))

    def _take(self, frame: dict[str, Any]) -> None:
        self.received.append(frame)
        if frame["type"] == "hello":
            self.say(WELCOME)
        elif frame["type"] == "open" and frame["conversation"] in self.deleted:
            self.reply(frame, {"ok": False, "error": NOT_FOUND})
        elif frame["type"] == "open":
            self.conversation = frame["conversation"]
            verdict = {
                "outcome": "replay" if self.seq else "created",
                "conversation": self.conversation,
                "epoch": "e",
                "head": self.seq,
                "oldest": 1,
            }
            self.reply(frame, verdict)
            for event in self.events[frame.get("after", 0) :]:
                self.say(event)
            caught_up = {"type": "caught_up", "conversation": self.conversation}
            self.say(caught_up | {"seq": self.seq})

    @property
    def seq(self) -> int:
        """The last number."""
        return len(self.events)

    def drop(self) -> None:
        """Closes the socket; the page dials again at once."""
        self.sockets[-1].close(code=DRAINED)

    def say(self, frame: dict[str, Any]) -> None:
        """Says a frame; what it must have and is not given is as usual."""
        self.sockets[-1].send(orjson.dumps(frame_of(frame)).decode())

    def reply(self, command: dict[str, Any], members: dict[str, Any]) -> None:
        self.say({"type": "reply", "re": command["id"], "ok": True} | members)

    def event(self, kind: str, **members: Any) -> int:
        """Says the next event of the conversation; returns its number."""
        event = {"type": kind, "conversation": self.conversation, "seq": self.seq + 1}
        if kind not in ("message", "config"):
            event["turn"] = self.turn
        self.events.append(event | members)
        self.say(self.events[-1])
        return self.seq

    def ask(self, content: str, **members: Any) -> int:
        at = "2026-01-01T00:00:00.000Z"
        given = {"id": f"s{self.seq}", "role": "user", "by": "me", "at": at}
        return self.event("message", content=content, **given, **members)

    def start(self, message: int, model: str = "demo/markdown") -> int:
        self.turn = self.seq + 1
        given = {"request_id": "r", "at": "2026-01-01T00:00:00.000Z"}
        return self.event("start", message=message, model=model, **given)

    def done(self, status: str = "completed", **members: Any) -> int:
        timing = {"queue_ms": 0.4, "ttft_ms": 251.0, "tokens_per_s": 58.3}
        given = {
            "text": {"bytes": 0, "crc32": 0},
            "timing": timing | {"total_ms": 4_321},
        }
        usage = {"input_tokens": 9, "output_tokens": 318, "estimated": False}
        self.event("usage", **usage, model_calls=1)
        return self.event("done", status=status, **(given | members))

    def last(self, kind: str) -> dict[str, Any]:
        """Returns the newest frame of that type that the page sent."""
        return next(each for each in reversed(self.received) if each["type"] == kind)


def proof(text: str) -> dict[str, int]:
    """Returns what a `done` says of its text."""
    return {"bytes": len(text.encode()), "crc32": zlib.crc32(text.encode())}
