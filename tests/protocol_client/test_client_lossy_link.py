"""Two ends joined in memory by a link that cuts, loses and repeats.

Whatever happens, once the link holds: what the client was told is the server's
log to the byte, nothing twice; every command was applied and replied to once;
no tool ran twice for one call.
"""

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from protocol.backoff import Backoff
from protocol.client.events import DropConnection, Replied, Reset, Stopped
from protocol.client.machine import ClientProtocol
from protocol.commands import Command, Send
from protocol.control import ToolRequest
from protocol.events import Event, LogEvent, MessageEvent
from protocol.fold import ConversationView
from tests.protocol_client.model_server import ModelServer

CONVERSATIONS = ("a", "b")
conversations = st.sampled_from(CONVERSATIONS)
few = st.integers(1, 5)
some = st.integers(0, 9)


class LossyLink(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.client = ClientProtocol(
            prefix="me",
            random=lambda: 0.5,
            backoff=Backoff(random=lambda: 0.5),
        )
        self.server = ModelServer()
        self.up: list[bytes] = []
        self.views: dict[str, ConversationView] = {}
        self.taken: dict[str, list[LogEvent]] = {}
        self.given: list[Command] = []
        self.replies: Counter[str] = Counter()
        self.asked: list[ToolRequest] = []
        self.runs: Counter[str] = Counter()
        self.lost: set[str] = set()

    @initialize()
    def begin(self) -> None:
        for name in CONVERSATIONS:
            self.want(name)
        self.client.connected(self.now)
        for _ in range(2):
            self.flow("a", 9, 9, 9, merged=True)

    @rule(name=conversations)
    def want(self, name: str) -> None:
        """Opens, or opens again what is open."""
        self.given.append(self.client.open(name, handles=["t"]))
        self.views.setdefault(name, ConversationView())
        self.taken.setdefault(name, [])

    @rule(name=conversations, text=st.text("hi", max_size=3), up=some)
    def send(self, name: str, text: str, up: int) -> None:
        self.given.append(self.client.send(name, text))
        self.flow(name, up, 3, 3, merged=True)

    @rule(name=conversations)
    def interrupt(self, name: str) -> None:
        view = self.views.get(name)
        if view is not None and view.running is not None:
            turn = view.running.turn
            given = self.client.interrupt(name, turn=turn, seen_seq=view.last)
            self.given.append(given)

    @rule()
    def finish_tool(self) -> None:
        if self.asked:
            asked = self.asked.pop(0)
            self.given.append(
                self.client.tool_result(asked.conversation, asked.call, output="o")
            )

    @rule(
        name=conversations,
        texts=st.lists(st.text("ab€😀", min_size=1), min_size=1, max_size=9),
        then=st.sampled_from(["speak", "ask", "end"]),
        down=some,
    )
    def answer(self, name: str, texts: list[str], then: str, down: int) -> None:
        """The model says something, and perhaps asks for a tool or stops."""
        log = self.server.logs.get(name)
        if log is not None:
            for text in texts:
                log.speak(text)
            if then == "ask":
                log.ask_tool()
            elif then == "end":
                log.end()
            self.flow(name, 0, 9, down, merged=False)

    @rule(name=conversations, up=some, count=some, down=some, merged=st.booleans())
    def flow(self, name: str, up: int, count: int, down: int, merged: bool) -> None:
        """Some frames go up, the server sends some events, some frames go down."""
        self.collect()
        for data in self.up[:up]:
            self.server.receive(data)
        del self.up[:up]
        if name in self.server.logs:
            self.server.pump(name, count, merged=merged)
        for _ in range(min(down, len(self.server.sent))):
            if self.client.phase not in {"greeting", "online"}:
                break
            self.client.received(self.server.sent.pop(0), self.now)
            self.handle()

    @rule()
    def ask_again(self) -> None:
        """A request that was under way is delivered once more."""
        self.server.forget_requests()

    @precondition(lambda self: self.client.phase in {"greeting", "online"})
    @rule(code=st.sampled_from([None, 1006, 1011, 1012, 4513, 4601]))
    def cut(self, code: int | None) -> None:
        """What is on its way is lost; the server may have acted on a part of it."""
        self.up.clear()
        self.server.cut()
        self.client.disconnected(code, self.now)
        self.handle()

    @precondition(lambda self: self.client.phase == "offline")
    @rule(attempts=st.integers(0, 2), rounds=st.integers(0, 3))
    def dial(self, attempts: int, rounds: int) -> None:
        """Connects after some attempts fail, and lets the resume get on its way."""
        for attempt in range(attempts + 1):
            due = self.client.next_timer()
            assert due is not None
            self.now = max(self.now, due)
            self.client.timer(self.now)
            if attempt < attempts:
                self.client.disconnected(None, self.now)
        self.client.connected(self.now)
        self.handle()
        for _ in range(rounds):
            self.flow("a", 9, 2, 9, merged=True)

    @precondition(lambda self: self.server.sent)
    @rule(place=st.integers(0, 9))
    def lose_event(self, place: int) -> None:
        """An event vanishes on a link that holds, as no TCP would let it."""
        if place < len(self.server.sent) and b'"seq":' in self.server.sent[place]:
            del self.server.sent[place]

    @rule(name=conversations, back=few)
    def repeat(self, name: str, back: int) -> None:
        if name in self.server.logs:
            self.server.repeat(name, back)

    @precondition(lambda self: self.client.phase == "offline")
    @rule(name=conversations)
    def lose_log(self, name: str) -> None:
        if name in self.server.logs:
            self.server.lose(name)
            self.lost.add(name)

    @invariant()
    def what_was_taken_is_a_prefix_of_one_log(self) -> None:
        for name, view in self.views.items():
            cursor = self.client.cursor(name)
            if cursor is not None:
                assert cursor.last == view.last

    def collect(self) -> None:
        self.up += self.client.data_to_send()

    def handle(self) -> None:
        for event in self.client.events():
            match event:
                case Event():
                    assert self.views[event.conversation].apply(event), "told twice"
                    self.taken[event.conversation].append(event)
                case Reset():
                    name = event.cursor.conversation
                    self.views[name] = ConversationView(last=event.cursor.last)
                    self.taken[name] = []
                case Replied():
                    self.replies[event.command.id] += 1
                case ToolRequest():
                    self.runs[event.call] += 1
                    self.asked.append(event)
                case DropConnection():
                    self.cut(None)
                case Stopped():
                    raise AssertionError("no code of the test stops it")
                case _:
                    pass

    def teardown(self) -> None:
        """The link holds from here on: all comes to rest."""
        at_rest = 0
        for _ in range(400):
            if self.client.phase == "offline":
                self.dial(0, 0)
            before = self.picture()
            for name, log in self.server.logs.items():
                if log.call is None:
                    log.end()
                self.flow(name, 1000, 3, 1000, merged=True)
            self.finish_tool()
            self.server.heartbeat()
            self.flow("a", 1000, 3, 1000, merged=True)
            at_rest = at_rest + 1 if before == self.picture() else 0
            if at_rest == 8:
                break
        else:
            raise AssertionError("it does not come to rest")
        self.check()

    def picture(self) -> Any:
        logs = [(log.epoch, len(log.events)) for log in self.server.logs.values()]
        return logs, [view.last for view in self.views.values()], len(self.up)

    def check(self) -> None:
        assert self.replies == Counter(command.id for command in self.given)
        assert all(count == 1 for count in self.runs.values())
        for name, view in self.views.items():
            log = self.server.logs[name]
            whole = ConversationView()
            for event in log.events:
                whole.apply(event)
            assert view.timeline == whole.timeline
            assert view.last == whole.last
            assert all(turn.proven for turn in view.turns.values())
            sends = Counter(e.id for e in log.events if isinstance(e, MessageEvent))
            assert all(count == 1 for count in sends.values()), "sent twice"
            if name not in self.lost:
                wanted = {
                    command.id
                    for command in self.given
                    if isinstance(command, Send) and command.conversation == name
                }
                assert set(sends) == wanted, "a message is missing"


pytestmark = pytest.mark.no_cover
TestLossyLink = LossyLink.TestCase
TestLossyLink.settings = settings(
    max_examples=150, stateful_step_count=60, deadline=None
)
