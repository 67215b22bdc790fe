"""The turn machine under random inputs: whatever comes, it ends once and whole."""

from collections import Counter
from typing import Any

import msgspec
from hypothesis import event, given, settings
from hypothesis import strategies as st

from protocol.content import TextProof, Tool
from protocol.events import ToolCallEvent, ToolResultEvent
from tests.engine.machine import FORBIDDEN, OVERLOADED, machine, weather
from wsserver.engine.actions import (
    Action,
    Append,
    AppendDone,
    AppendText,
    AskTool,
    CallModel,
    CloseModel,
    ShowWaiting,
)
from wsserver.engine.deadlines import NEVER
from wsserver.engine.limits import TurnLimits
from wsserver.engine.model import (
    CallFragment,
    Finished,
    Reasoning,
    Refusal,
    Text,
    Usage,
)

LIMITS = TurnLimits(turn_bytes=200, rounds=3, calls=6)
CUT = {"keep_through": 1, "text": TextProof(bytes=0, crc32=0)}
USAGE = Usage(input_tokens=5, output_tokens=3)

PIECES = st.lists(
    st.one_of(
        st.sampled_from([Text("é"), Text("word "), Reasoning("hm"), Refusal("no")]),
        st.builds(
            CallFragment,
            st.integers(0, 2),
            st.sampled_from(["", "weather"]),
            st.sampled_from(["", "{", "日"]),
        ),
    ),
    max_size=4,
)
CALLS = st.lists(
    st.sampled_from(["{}", '{"a":1}', "{}", "{", "[" * 70 + "]" * 70, ""]), max_size=4
)


class Driver:
    """Keeps a runner's side of the contract, and notes what the machine does."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.now = 0.0
        self.turn = machine(
            limits=LIMITS, tools={"weather": Tool(name="weather", timeout_s=40)}
        )
        self.call_due = True
        self.close_due = False
        self.in_call = False
        self.events: list[str] = []
        self.asked: list[str] = []
        self.opened: Counter[str] = Counter()
        self.settled: Counter[str] = Counter()
        self.batches: list[tuple[int, int]] = []

    def act(self, actions: list[Action]) -> None:
        for action in actions:
            assert "done" not in self.events, f"{action} after done"
            match action:
                case AppendText():
                    assert action.text
                    self.events.append(action.kind)
                case Append():
                    self.append(action.event, action.members)
                case AppendDone():
                    self.events.append("done")
                case CallModel():
                    assert not self.call_due
                    assert not self.turn.tools.open, "a call was not settled"
                    self.call_due = True
                case CloseModel():
                    assert not self.close_due
                    self.close_due = True
                case AskTool():
                    self.asked.append(action.call)
                case ShowWaiting():
                    assert action.elapsed_ms >= 0

    def append(self, event: type, members: dict[str, Any]) -> None:
        made = event(conversation="c", seq=1, turn=1, **members)
        msgspec.json.decode(msgspec.json.encode(made), type=event)
        self.events.append(str(event.__struct_config__.tag))
        if event is ToolCallEvent:
            self.opened[members["call"]] += 1
            self.batches.append((members["batch"], members["index"]))
        elif event is ToolResultEvent:
            self.settled[members["call"]] += 1
            if members["status"] == "invalid":
                made = members["invalid"]
                self.batches.append((made.batch, made.index))
            else:
                assert self.opened[members["call"]], "settled but never shown"

    def step(self) -> None:
        draw = self.data.draw
        turn = self.turn
        if self.close_due and draw(st.booleans()):
            self.close_due = self.in_call = False
            if turn.calling and draw(st.booleans()):
                self.act(turn.refused(OVERLOADED, self.now, 0.5))
            self.act(turn.closed(self.now))
        elif self.call_due and not self.in_call and turn.phase == "connecting":
            self.call_due = False
            self.in_call = True
            turn.called(draw(st.integers(0, 99)), self.now)
        else:
            draw(st.sampled_from(INPUTS))(self)
        self.check()

    def connected(self) -> None:
        self.turn.connected(self.now)

    def feed(self) -> None:
        self.act(self.turn.feed(self.data.draw(PIECES), self.now))

    def finish(self) -> None:
        self.in_call = False
        end, jitter = self.end(), self.data.draw(st.floats(0, 0.99))
        self.act(self.turn.finished(end, self.now, self.now, jitter))

    def refuse(self) -> None:
        if self.turn.calling:
            self.in_call = False
            failure = self.data.draw(st.sampled_from([OVERLOADED, FORBIDDEN]))
            self.act(self.turn.refused(failure, self.now, 0.5))

    def result(self) -> None:
        draw, turn = self.data.draw, self.turn
        call = draw(st.sampled_from([*self.opened, "call_9.9"]))
        was_open = call in turn.tools.open
        status = draw(st.sampled_from(["ok", "error"]))
        output = draw(st.sampled_from(["x", 1, None]))
        outcome, actions = turn.tool_result(call, status, output, "a", self.now)
        assert (outcome == "accepted") == was_open
        self.act(actions)

    def progress(self) -> None:
        for call in self.turn.tools.open.values():
            before = call.deadline_at
            assert self.turn.tools.progress(call.call, self.now)
            assert before <= call.deadline_at <= max(before, call.ceiling_at)

    def deliver(self) -> None:
        for call in self.turn.tools.open:
            delivery = self.turn.tools.deliver(call, self.now)
            assert delivery is not None
            assert delivery.left_ms >= 30_000 or not delivery.again

    def stop(self) -> None:
        reason = self.data.draw(st.sampled_from(["by_client", "server_shutdown"]))
        cut = self.data.draw(st.sampled_from([None, CUT]))
        self.act(self.turn.stop(reason=reason, by="a", now=self.now, cut=cut))

    def fail(self) -> None:
        self.act(self.turn.fail(FORBIDDEN, self.now))

    def watch(self) -> None:
        self.turn.attached()

    def leave(self) -> None:
        self.turn.detached(self.data.draw(st.sampled_from([0.0, 20.0, None])), self.now)

    def time(self) -> None:
        self.now += self.data.draw(st.sampled_from([0.1, 9.0, 31.0, 61.0]))
        self.catch_up()

    def end(self) -> Finished:
        draw = self.data.draw
        reasons = ["stop", "length", "content_filter", "incomplete", "error"]
        reason = draw(st.sampled_from([*reasons, *["tool_calls"] * 20]))
        failure = draw(st.sampled_from([OVERLOADED, FORBIDDEN, None]))
        return Finished(
            reason=reason,  # type: ignore[arg-type]
            usage=draw(st.sampled_from([None, USAGE])),
            failure=failure if reason == "error" else None,
            calls=tuple(
                weather(number, arguments=text, valid=text not in ("{", ""))
                for number, text in enumerate(draw(CALLS))
            ),
        )

    def catch_up(self) -> None:
        """Lets the machine do all that is due; that comes to an end."""
        for _ in range(20):
            if self.turn.deadline() > self.now:
                return
            self.act(self.turn.time(self.now))
        raise AssertionError("something stays due for ever")

    def check(self) -> None:
        turn = self.turn
        assert ("done" in self.events) == (turn.phase == "ended")
        assert all(count == 1 for count in self.settled.values())
        assert all(count == 1 for count in self.opened.values())
        assert set(turn.tools.open) == set(self.opened) - set(self.settled)
        assert set(self.asked) == set(self.opened)
        assert self.events.count("cut") <= 1
        if turn.phase == "waiting_tools":
            assert turn.tools.open, "it waits for nothing"
        if turn.phase == "ended":
            assert turn.deadline() == NEVER

    def wind_up(self) -> None:
        """Interrupts the turn and closes what is to be closed."""
        self.act(self.turn.stop(reason="by_client", by="a", now=self.now))
        if self.turn.phase == "stopping":
            assert self.close_due
            self.act(self.turn.closed(self.now))
        self.check()


COMMON = [Driver.finish, Driver.result, Driver.feed] * 7 + [Driver.time] * 3
RARE = [
    Driver.connected, Driver.refuse, Driver.progress, Driver.deliver, Driver.watch,
    Driver.leave, Driver.stop, Driver.fail,
]  # fmt: skip
INPUTS = COMMON + RARE


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_it_ends_once_and_settles_each_call_once(data: st.DataObject) -> None:
    driver = Driver(data)
    for _ in range(data.draw(st.integers(0, 60))):
        driver.step()
    driver.wind_up()
    events = driver.events
    assert events[-1] == "done"
    assert events.count("done") == events.count("usage") == 1
    assert set(driver.opened) <= set(driver.settled)
    failed = events.count("error")
    assert failed in (0, 1)
    assert events[-3:-1] == ["usage", "error"] if failed else events[-2] == "usage"
    assert driver.batches == sorted(driver.batches), "calls are shown in call order"
    event(f"{len(driver.opened)} calls")
