"""Many commands at once: bounded under way, in order, at the rate that was announced."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from protocol.client.events import Replied
from protocol.client.outbox import MOST_UNDER_WAY
from protocol.commands import Command, Interrupt, Send
from tests.protocol_client.wire import LIMITS, WELCOME, Wire
from wsserver.connections.rate import TokenBucket

MANY = 6_000


def started(wire: Wire, re: str) -> None:
    wire.receive_json(type="reply", re=re, ok=True, outcome="started")


def too_fast(wire: Wire, re: str, wait_ms: int) -> None:
    error = {"code": "rate_limited", "message": "m", "retryable": True}
    error |= {"retry_after_ms": wait_ms}
    wire.receive_json(type="reply", re=re, ok=False, error=error)


def connected(wire: Wire, per_second: int | None, burst: int | None) -> None:
    limits = replace(LIMITS, frames_per_second=per_second, frames_burst=burst)
    wire.client.connected(wire.now)
    wire.sent()
    wire.receive(replace(WELCOME, limits=limits))
    wire.events()


class Server:
    """Replies after a network's time, and refuses what comes too fast for its bucket."""

    def __init__(self, wire: Wire, bucket: TokenBucket, *, network_seconds: float):
        self.wire = wire
        self.bucket = bucket
        self.network_seconds = network_seconds
        self.taken: list[str] = []
        self.refusals = 0
        self.over_at = 0.0
        self.most_under_way = 0
        self._on_the_way: deque[tuple[float, str]] = deque()

    def run(self) -> None:
        """Until nothing is under way and nothing waits for time."""
        wire = self.wire
        while True:
            now = wire.now
            self._on_the_way += [
                (now + self.network_seconds, each["id"])
                for each in wire.sent()
                if "id" in each
            ]
            self.most_under_way = max(self.most_under_way, len(self._on_the_way))
            due = wire.client.next_timer()
            arrives = self._on_the_way[0][0] if self._on_the_way else None
            if arrives is not None and (due is None or arrives <= due):
                wire.now = max(wire.now, arrives)
                self._reply(self._on_the_way.popleft()[1])
            elif due is not None and due < now + 15:  # its heartbeats are later
                wire.now = max(wire.now, due)
                wire.client.timer(wire.now)
            else:
                return

    def _reply(self, command_id: str) -> None:
        wait_seconds = self.bucket.take(self.wire.now)
        if wait_seconds:
            self.refusals += 1
            too_fast(self.wire, command_id, max(1, round(wait_seconds * 1000)))
        else:
            self.taken.append(command_id)
            self.over_at = self.wire.now
            started(self.wire, command_id)


@pytest.mark.parametrize("network_seconds", [0.001, 0.2])
def test_a_burst_drains_at_the_rate_of_the_server_without_a_refusal(
    wire: Wire, network_seconds: float
) -> None:
    connected(wire, 100, 500)
    bucket = TokenBucket(per_second=100, burst=499, now=wire.now)
    server = Server(wire, bucket, network_seconds=network_seconds)
    began = wire.now
    given = [wire.client.send("c", "hi").id for _ in range(MANY)]
    server.run()
    assert server.taken == given
    assert server.refusals == 0
    assert server.most_under_way <= MOST_UNDER_WAY
    assert server.over_at - began < (MANY - 400) / 100 + 1


def test_a_burst_that_nobody_warned_of_is_seldom_refused(wire: Wire) -> None:
    """As where other connections of the principal take their part."""
    connected(wire, None, None)
    bucket = TokenBucket(per_second=100, burst=500, now=wire.now)
    server = Server(wire, bucket, network_seconds=0.02)
    given = [wire.client.send("c", "hi").id for _ in range(1_000)]
    server.run()
    assert sorted(server.taken) == sorted(given)
    assert server.refusals < len(given)
    assert len([each for each in wire.events() if isinstance(each, Replied)]) == 1_000


def test_only_so_many_are_under_way_and_replies_let_others_go(online: Wire) -> None:
    given = [online.client.send("c", str(n)).id for n in range(MOST_UNDER_WAY + 10)]
    assert [each["id"] for each in online.sent()] == given[:MOST_UNDER_WAY]
    started(online, given[5])
    started(online, given[6])
    assert [each["id"] for each in online.sent()] == given[MOST_UNDER_WAY:][:2]
    online.client.disconnected(None, online.now)
    online.connect()
    unanswered = given[:5] + given[7:]
    assert [each["id"] for each in online.sent()] == unanswered[:MOST_UNDER_WAY]


def test_a_stop_a_tool_and_credentials_overtake_a_burst(online: Wire) -> None:
    client = online.client
    online.open()
    for _ in range(MOST_UNDER_WAY + 10):
        client.send("c", "hi")
    online.sent()
    client.interrupt("c", turn=2)
    client.tool_result("c", "call", output=1)
    client.refresh("new")
    client.ack("c")
    client.tool_progress("c", "call")
    client.open("d")
    kinds = [each["type"] for each in online.sent()]
    assert kinds == [
        "interrupt", "tool_result", "refresh", "ack", "tool_progress", "open",
    ]  # fmt: skip


def test_a_send_that_waits_follows_the_interrupt_that_names_it(online: Wire) -> None:
    """The server remembers it for a minute only, and the queue may be longer."""
    for _ in range(MOST_UNDER_WAY + 10):
        online.client.send("c", "hi")
    named = online.client.send("c", "take me back")
    online.sent()
    online.client.interrupt("c", send=named.id)
    interrupt, send = online.sent()
    assert (interrupt["send"], send["id"]) == (named.id, named.id)


def test_a_send_that_its_interrupt_has_overtaken_goes_next(wire: Wire) -> None:
    """Given again under its id, a send may stand behind the interrupt and others."""
    named = wire.client.send("c", "take me back")
    stop = wire.client.interrupt("c", send=named.id)
    other = wire.client.send("c", "hi")
    wire.client.again(named)
    wire.connect()
    assert [each["id"] for each in wire.sent()] == [stop.id, named.id, other.id]


def test_a_close_that_waited_does_not_close_what_was_opened_again(online: Wire) -> None:
    online.open()
    given = [online.client.send("d", "hi").id for _ in range(MOST_UNDER_WAY)]
    closing = online.client.close("c")
    online.client.open("c")
    online.sent()
    started(online, given[0])
    online.client.timer(online.now)
    assert not online.sent()
    settled = [e.command for e in online.events() if isinstance(e, Replied)]
    assert settled[1:] == [closing]


def test_there_is_room_again_after_a_silence(online: Wire) -> None:
    connected_again = replace(LIMITS, frames_per_second=10, frames_burst=20)
    online.client.disconnected(None, online.now)
    online.advance_to_timer()
    online.client.connected(online.now)
    online.sent()
    online.receive(replace(WELCOME, limits=connected_again))
    given = [online.client.send("c", "hi").id for _ in range(18)]
    out = [each["id"] for each in online.sent()]
    assert out == given[:17], "one is sent as hello, two are kept back"
    for re in out:
        started(online, re)
    online.advance_to_timer()
    assert [each["id"] for each in online.sent()] == given[17:]
    online.now += 15
    more = online.client.send("c", "after a while")
    due = online.client.next_timer()
    assert due is not None
    assert due <= online.now, "the clock is told at once"
    online.client.timer(online.now)
    assert [each["id"] for each in online.sent()] == [more.id]


steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["send", "delete", "interrupt"]), st.integers(0, 2)),
        st.tuples(st.just("reply"), st.integers(0, 200)),
        st.tuples(st.just("refuse"), st.integers(0, 200)),
        st.tuples(st.sampled_from(["time", "cut"]), st.integers(1, 3)),
    ),
    max_size=60,
)


def _is_send(command: Command, conversation: str) -> bool:
    return isinstance(command, Send) and command.conversation == conversation


class Play:
    """A client, and a server that replies, refuses and goes away as it is told."""

    def __init__(self, first: int) -> None:
        self.wire = Wire()
        self.wire.connect()
        self.given: list[Command] = []
        self.under_way: list[str] = []
        self.settled: list[str] = []
        self.sends: list[str] = []
        self.refused = False
        for _ in range(first):
            self.give("send", 0)
        self.look()

    def give(self, what: str, n: int) -> None:
        client, name = self.wire.client, f"c{n}"
        if what == "send":
            self.given.append(client.send(name, "hi"))
        elif what == "delete":
            self.given.append(client.delete(name))
        else:
            self.given.append(client.interrupt(name, turn=1))

    def answer(self, what: str, n: int) -> None:
        if self.under_way:
            re = self.under_way.pop(n % len(self.under_way))
            if what == "reply":
                started(self.wire, re)
            else:
                self.refused = True
                too_fast(self.wire, re, 500)

    def wait(self, seconds: float) -> None:
        self.wire.now += seconds
        self.wire.client.timer(self.wire.now)

    def cut(self) -> None:
        self.under_way.clear()
        self.sends.clear()
        self.wire.client.disconnected(None, self.wire.now)
        self.wire.connect()

    def look(self) -> None:
        fresh = [each for each in self.wire.sent() if "id" in each]
        self.under_way += [each["id"] for each in fresh]
        self.sends += [each["id"] for each in fresh if each["type"] == "send"]
        events = self.wire.events()
        self.settled += [e.command.id for e in events if isinstance(e, Replied)]
        urgent = sum(isinstance(each, Interrupt) for each in self.given)
        assert len(self.under_way) <= MOST_UNDER_WAY + urgent
        for name in ("c0", "c1", "c2"):
            given = [e.id for e in self.given if _is_send(e, name)]
            sent = [each for each in self.sends if each in given]
            in_order = sent == sorted(sent, key=given.index)
            assert in_order or self.refused, "only a refusal changes the order"


@given(steps=steps, first=st.integers(0, 2 * MOST_UNDER_WAY))
def test_all_is_said_and_settled_once_in_order(
    steps: list[tuple[str, int]], first: int
) -> None:
    """Whatever is refused, cut off, or deleted in between."""
    play = Play(first)
    for what, n in steps:
        if what in {"reply", "refuse"}:
            play.answer(what, n)
        elif what == "time":
            play.wait(n)
        elif what == "cut":
            play.cut()
        else:
            play.give(what, n)
        play.look()
    for _ in range(2 * len(play.given) + 2):
        play.answer("reply", 0)
        play.wait(1)
        play.look()
    assert sorted(play.settled) == sorted(each.id for each in play.given)
