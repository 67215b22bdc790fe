"""The Python client's machine and fold, in the judge's hands."""

from typing import Any

import msgspec
import orjson
from msgspec import UNSET

from protocol.backoff import Backoff
from protocol.client.events import DropConnection, Lost, Replied, Reset
from protocol.client.machine import ClientProtocol
from protocol.commands import Command, Open
from protocol.content import Config
from protocol.control import AuthExpiring, ErrorFrame, ToolRequest
from protocol.events import Event, MessageEvent, first_seq
from protocol.fold import ConversationView
from protocol.view import TurnView
from tests.conformance.judge import BrokenRuleError, Json

_MOST_TIMERS = 10_000
_LINKS = {
    "connecting": "dialling",
    "greeting": "up",
    "online": "up",
    "offline": "waiting",
    "stopped": "stopped",
}


class PythonDriver:
    """A `Driver` over `protocol.client.machine`."""

    client: ClientProtocol

    def do(self, op: Json) -> Json:
        self.told: Json = {"asked": [], "replied": [], "told": [], "gave_up": False}
        match op["op"]:
            case "begin":
                self._begin(op)
            case "up":
                self.client.connected(self.now)
            case "down":
                self.client.disconnected(op["code"], self.now)
            case "frame":
                self.client.received(op["text"], self.now)
            case "pass":
                self._pass(op["ms"] / 1000)
            case _:
                self._call(op)
        self._listen()
        return self._state()

    def _begin(self, op: Json) -> None:
        self.now = 100.0
        self.tools = op["tools"] or []
        self.given: dict[str, Command] = {}
        self.views: dict[str, ConversationView] = {}
        self.sent: list[Json] = []
        self.client = self.make(lambda: op["random"], op["token"])

    def make(self, random: Any, token: str | None) -> ClientProtocol:
        """Makes a client; a broken one is made elsewhere."""
        return ClientProtocol(
            prefix="me", random=random, token=token, backoff=Backoff(random=random)
        )

    def _pass(self, seconds: float) -> None:
        end = self.now + seconds
        turns = 0
        while (due := self.client.next_timer()) is not None and due <= end + 1e-9:
            turns += 1
            if turns > _MOST_TIMERS:
                raise BrokenRuleError("its timers are never done")
            self.now = max(self.now, due)
            self.client.timer(self.now)
            self._listen()
        self.now = end

    def _call(self, op: Json) -> None:
        client, name = self.client, op.get("conversation", "")
        match op["do"]:
            case "open":
                window, config = op.get("window_bytes"), op.get("config")
                client.open(
                    name,
                    handles=self.tools,
                    window_bytes=window,
                    config=config and msgspec.convert(config, Config),
                )
            case "send":
                policy, seen = op.get("policy", "queue"), op.get("seen_seq")
                send = client.send(name, op["content"], policy=policy, seen_seq=seen)
                self.given[send.id] = send
            case "result":
                output, error = op.get("output", UNSET), op.get("error")
                client.tool_result(name, op["call"], output=output, error=error)
            case "progress":
                client.tool_progress(name, op["call"])
            case "again":
                client.again(self.given[op["id"]])
            case "taken":
                client.ack(name)
            case _:
                self._manage(op, name)

    def _manage(self, op: Json, name: str) -> None:
        client = self.client
        match op["do"]:
            case "interrupt":
                turn, send = op.get("turn"), op.get("send")
                seen = op.get("seen_seq")
                client.interrupt(name, turn=turn, send=send, seen_seq=seen)
            case "configure":
                client.configure(name, msgspec.convert(op["config"], Config))
            case "fork":
                client.fork(name, op["through"], new=op["new"])
            case "close":
                client.close(name)
                self.views.pop(name, None)
            case "delete":
                client.delete(name)
                self.views.pop(name, None)
            case _:
                assert op["do"] == "refresh", op
                client.refresh(op["token"])

    def _listen(self) -> None:
        self.sent += [orjson.loads(frame) for frame in self.client.data_to_send()]
        for event in self.client.events():
            match event:
                case Event():
                    self._show(event)
                case Reset():
                    last = event.cursor.last
                    self.views[event.cursor.conversation] = ConversationView(last=last)
                case Replied():
                    if not isinstance(event.command, Open):
                        error = event.reply.error
                        said = error.code if error else event.reply.outcome
                        self.told["replied"].append([event.command.id, said])
                case Lost():
                    self.views.pop(event.conversation, None)
                case ToolRequest():
                    self.told["asked"].append(event.call)
                case DropConnection():
                    self.told["gave_up"] = True
                    self.client.disconnected(None, self.now)
                case AuthExpiring() | ErrorFrame():
                    is_fault = isinstance(event, ErrorFrame)
                    self.told["told"].append("fault" if is_fault else "auth_expiring")
                case _:
                    pass

    def _show(self, event: Any) -> None:
        view = self.views.get(event.conversation)
        if view is None:
            view = ConversationView(last=first_seq(event) - 1)
            self.views[event.conversation] = view
        view.apply(event)

    def _state(self) -> Json:
        sent, self.sent = self.sent, []
        due = self.client.next_timer()
        link = _LINKS[self.client.phase]
        waits = link == "waiting" and due is not None
        return self.told | {
            "sent": sent,
            "link": link,
            "wait_ms": (due - self.now) * 1000 if waits and due is not None else None,
            "conversations": {
                name: shown
                for name in {*self.views, "c", "d"}
                if (shown := self._shown(name)) is not None
            },
        }

    def _shown(self, name: str) -> Json | None:
        cursor = self.client.cursor(name)
        if cursor is None:
            return None
        view = self.views.get(name, ConversationView())
        timeline = view.timeline
        return {
            "epoch": cursor.epoch,
            "last": cursor.last,
            "messages": [
                each.id for each in timeline if isinstance(each, MessageEvent)
            ],
            "turns": [_turn(each) for each in timeline if isinstance(each, TurnView)],
        }


def _turn(turn: TurnView) -> Json:
    return {
        "turn": turn.turn,
        "model": turn.model,
        "text": str(turn.text),
        "reasoning": str(turn.reasoning),
        "status": turn.status,
        "reason": turn.reason,
        "code": turn.error.code if turn.error else None,
        "proven": turn.proven,
        "calls": {call.call: call.status for call in turn.calls.values()},
    }
