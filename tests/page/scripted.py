"""A server of which a test writes every frame, in the place of the page's socket."""

import time
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
RESTART = 1012
OPEN_SECONDS = 15.0


class ScriptedServer:
    """Welcomes, opens what is asked for, and otherwise says what it is told to.

    What is said before the page has opened anything would be lost, so it fails: see `load`
    and `wait_until_open`.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self.sockets: list[WebSocketRoute] = []
        # The last one, while the page has it.
        self._socket: WebSocketRoute | None = None
        self._had: set[str] = set()
        self.received: list[dict[str, Any]] = []
        self.conversation = ""
        self.events: list[dict[str, Any]] = []
        self.turn = 0
        self.deleted: set[str] = set()
        # Whether no socket comes through, however often the page dials.
        self.is_away = False
        page.route_web_socket("**/v1/chat", self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        if self.is_away:
            socket.close(code=RESTART)
            return
        self.sockets.append(socket)
        self._socket = socket
        self._had.clear()
        socket.on_message(lambda text: self._take(socket, orjson.loads(text)))
        socket.on_close(lambda _code, _reason: self._lose(socket))

    def _lose(self, socket: WebSocketRoute) -> None:
        if socket is self._socket:
            self._socket = None

    def _take(self, socket: WebSocketRoute, frame: dict[str, Any]) -> None:
        self.received.append(frame)
        if socket is not self._socket:
            return  # nobody is there to hear of it
        self._had.add(frame["type"])
        if frame["type"] == "hello":
            self._send(WELCOME)
        elif frame["type"] == "open" and frame["conversation"] in self.deleted:
            self._send(_reply_to(frame, {"ok": False, "error": NOT_FOUND}))
        elif frame["type"] == "open":
            self.conversation = frame["conversation"]
            verdict = {
                "outcome": "replay" if self.seq else "created",
                "conversation": self.conversation,
                "epoch": "e",
                "head": self.seq,
                "oldest": 1,
            }
            self._send(_reply_to(frame, verdict))
            for event in self.events[frame.get("after", 0) :]:
                self._send(event)
            caught_up = {"type": "caught_up", "conversation": self.conversation}
            self._send(caught_up | {"seq": self.seq})

    @property
    def seq(self) -> int:
        """The last number."""
        return len(self.events)

    def load(self, address: str | None = None) -> None:
        """Loads that page, or the one that is there anew, and waits until it is open."""
        if address is None:
            self._page.reload()
        else:
            self._page.goto(address)
        self.wait_until_open()

    @property
    def is_open(self) -> bool:
        """Whether the page has asked for all that it shows, on a socket that it still has.

        It pings for the first time behind all that it opens.
        """
        return self._socket is not None and {"open", "ping"} <= self._had

    def wait_until_open(self) -> None:
        deadline = time.monotonic() + OPEN_SECONDS
        while not self.is_open:
            assert time.monotonic() < deadline, (
                f"The page opened no conversation in {OPEN_SECONDS:.0f} s: "
                f"{len(self.sockets)} sockets so far, on the last {sorted(self._had)}"
            )
            self._page.evaluate("new Promise(requestAnimationFrame)")

    def close(self, code: int, reason: str = "") -> None:
        """Closes the socket."""
        assert self._socket is not None, "The page has no socket."
        socket, self._socket = self._socket, None
        socket.close(code=code, reason=reason)

    def drop(self) -> None:
        """Closes the socket; the page dials again at once."""
        self.close(DRAINED)

    def say(self, frame: dict[str, Any]) -> None:
        """Says a frame; what it must have and is not given is as usual."""
        assert self.is_open, "Nobody would hear it: wait until the page is open."
        self._send(frame)

    def _send(self, frame: dict[str, Any]) -> None:
        assert self._socket is not None
        self._socket.send(orjson.dumps(frame_of(frame)).decode())

    def reply(self, command: dict[str, Any], members: dict[str, Any]) -> None:
        self.say(_reply_to(command, members))

    def event(self, kind: str, **members: Any) -> int:
        """Says the next event of the conversation; returns its number."""
        event = {"type": kind, "conversation": self.conversation, "seq": self.seq + 1}
        if kind not in ("message", "config"):
            event["turn"] = self.turn
        event |= members
        self.say(event)
        self.events.append(event)
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


def _reply_to(command: dict[str, Any], members: dict[str, Any]) -> dict[str, Any]:
    return {"type": "reply", "re": command["id"], "ok": True} | members


def proof(text: str) -> dict[str, int]:
    """Returns what a `done` says of its text."""
    return {"bytes": len(text.encode()), "crc32": zlib.crc32(text.encode())}
