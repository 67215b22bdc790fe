"""Random clients over random models: whatever happens, the log makes sense.

Several viewers send, interrupt, steer, answer tools, configure, come and go, while
each model call follows a random script and the store is slow or fails at times. All
of it is drawn from one seed and passes in virtual time.
"""

import zlib
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import anyio
import pytest

from protocol.content import TextProof, Tool
from protocol.events import (
    CutEvent,
    DeltaEvent,
    DoneEvent,
    MessageEvent,
    StartEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnErrorEvent,
    UsageEvent,
)
from protocol.fold import fold
from tests.fakes.faulty import FaultyStore
from tests.turns.follower import Follower
from tests.turns.random_model import NAMES, RandomProvider
from tests.turns.talk import Talk, kind, talking, until
from wsserver.engine.deadlines import Patience
from wsserver.engine.limits import TurnLimits
from wsserver.turns.conversation import Conversation
from wsserver.turns.errors import CommandError
from wsserver.turns.services import ConversationLimits

TOOLS = [Tool(name="weather"), Tool(name="clock", timeout_s=20)]
LIMITS = ConversationLimits(
    queued=3,
    detach_grace_seconds=15.0,
    turn=TurnLimits(
        patience=Patience(
            turn_seconds=120.0, first_token_seconds=20.0, idle_seconds=10.0
        ),
        turn_bytes=3_000,
        rounds=4,
        calls=8,
    ),
)


class Session:
    """One random session."""

    def __init__(self, talk: Talk, chance: Random, tasks: Any) -> None:
        self.talk = talk
        self.chance = chance
        self.tasks = tasks
        self.followers: list[Follower] = []
        self.attached: set[Follower] = set()
        self.sends: list[str] = []

    @property
    def conversation(self) -> Conversation:
        return self.talk.conversation

    async def find(self) -> None:
        """Finds the conversation anew, as it may have left memory meanwhile."""
        self.talk.conversation = await self.talk.rig.conversation()

    @property
    def store(self) -> FaultyStore:
        assert isinstance(self.talk.rig.store, FaultyStore)
        return self.talk.rig.store

    def come(self) -> None:
        chance = self.chance
        away = [f for f in self.followers if f not in self.attached]
        if away and chance.random() < 0.7:
            follower = chance.choice(away)
        elif len(self.followers) < 4:
            handles = [name for name in NAMES if chance.random() < 0.85]
            number = len(self.followers)
            follower = Follower(self.conversation, f"f{number}", *handles)
            follower.pause_seconds = chance.choice([0.0, 0.0, 0.1, 2.0])
            self.followers.append(follower)
        else:
            return
        self.attach(follower)

    def attach(self, follower: Follower) -> None:
        self.attached.add(follower)
        self.conversation.attach(follower)
        self.tasks.start_soon(follower.run, self.conversation)

    def leave(self) -> None:
        if len(self.attached) > 1 or (self.attached and self.chance.random() < 0.2):
            follower = self.chance.choice(
                sorted(self.attached, key=lambda f: f.connection)
            )
            self.attached.discard(follower)
            follower.stop()

    def someone(self) -> Follower | None:
        if not self.attached or self.chance.random() < 0.1:
            return None
        return self.chance.choice(sorted(self.attached, key=lambda f: f.connection))

    def send(self) -> None:
        chance = self.chance
        policy: Any = chance.choice(["queue", "queue", "interrupt", "steer", "reject"])
        viewer = self.someone()
        name = f"m{len(self.sends)}"
        self.sends.append(name)
        seen = None if viewer is None else viewer.position - chance.randrange(3)
        self.talk.send(
            f"say {name}",
            viewer,
            id=name,
            policy=policy,
            seen_seq=chance.choice([None, max(0, seen or 0)]),
            on_disconnect=chance.choice([None, None, "continue", "cancel"]),
        )

    def interrupt(self) -> None:
        chance = self.chance
        head = self.conversation.log.head
        members: dict[str, Any] = {}
        draw = chance.random()
        if draw < 0.2 and self.sends:
            future = f"m{len(self.sends)}"
            members["send"] = chance.choice([*self.sends[-3:], future])
        elif draw < 0.4:
            members["turn"] = chance.randint(1, head + 2)
        elif draw < 0.7:
            members["turn"] = self.conversation.state.last_turn or None
        if chance.random() < 0.5:
            members["seen_seq"] = chance.randint(0, head + 2)
        keep: Any = chance.choice([None, "sent", "generated", "none"])
        if members.get("seen_seq") is not None:
            keep = chance.choice([keep, "seen"])
        reply = self.talk.interrupt(self.someone(), keep=keep, **members)
        assert reply.outcome in (
            "interrupted", "already_finished", "dequeued", "pre_cancelled", "not_found",
        )  # fmt: skip

    def answer(self) -> None:
        chance = self.chance
        requests = [r for f in self.followers for r in f.requests]
        asked = [r.call for r in requests if r.turn == self.conversation.running]
        call = chance.choice(asked or [*[r.call for r in requests[-2:]], "call_1.0"])
        if chance.random() < 0.2:
            self.talk.progress(call)
        elif chance.random() < 0.8:
            self.talk.result(call, chance.choice(["", "x", {"n": 2**70}, None]))
        else:
            self.talk.result(call, error=chance.choice(["", "broken"]))

    def configure(self) -> None:
        tools = self.chance.choice([*[TOOLS] * 6, TOOLS[:1], None])
        self.talk.configure(tools=tools, instructions=self.chance.choice([None, "x"]))

    def trouble(self) -> None:
        if self.chance.random() < 0.3:
            self.store.failing = not self.store.failing
        elif self.store.gate.is_set():
            self.store.gate = anyio.Event()
        else:
            self.store.gate.set()

    async def step(self) -> None:
        often = [self.send] * 3 + [self.answer] * 5 + [self.interrupt]
        rarely = [self.come, self.leave, self.configure, self.trouble]
        await self.find()
        try:
            self.chance.choice(often + rarely)()
        except CommandError as error:
            refused = error.body.code
            if refused not in ("busy", "queue_full", "store_unavailable"):
                raise
        await anyio.sleep(self.chance.choice([0.0, 0.001, 0.1, 0.5, 3.0]))

    async def wind_up(self) -> None:
        """Everything works again, all come back, and all that waits is done."""
        self.store.gate.set()
        self.store.failing = False
        await self.find()
        for follower in self.followers:
            follower.pause_seconds = 0.0
            if follower not in self.attached:
                self.attach(follower)
        await until(lambda: not self.conversation.state.live)
        await self.talk.rig.committer.flush()
        log = self.conversation.log
        await until(lambda: all(f.position == log.stored for f in self.followers))


@asynccontextmanager
async def random_session(
    chance: Random, provider: RandomProvider
) -> AsyncGenerator[Session]:
    """Somebody has come to a conversation of a model that does anything."""
    async with talking(
        provider=provider, tools=TOOLS, limits=LIMITS, store=FaultyStore()
    ) as talk:
        talk.conversation.detach(talk.viewer)
        async with anyio.create_task_group() as tasks:
            session = Session(talk, chance, tasks)
            session.come()
            yield session
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("seed", range(40))
async def test_a_random_session_makes_sense(seed: int) -> None:
    chance = Random(seed)
    provider = RandomProvider(chance)
    async with random_session(chance, provider) as session:
        talk = session.talk
        for _ in range(chance.randint(5, 80)):
            await session.step()
        await session.wind_up()
        log = await talk.log()
        check(log, session)
        assert provider.faults == []
        entries = await talk.rig.store.read("alice/c", 0, 10**9)
        assert entries[-1].seq == talk.conversation.log.head
        assert not await talk.rig.store.live()


def check(log: list[Any], session: Session) -> None:
    """Fails unless the log is one that the protocol allows."""
    after = 0
    for event in log:
        assert (getattr(event, "first", None) or event.seq) == after + 1
        after = event.seq
    check_turns(log)
    check_text(log)
    check_messages(log, session)
    whole = fold(log)
    for follower in session.followers:
        for turn, shown in whole.turns.items():
            if turn not in follower.muted:
                assert follower.view.turns[turn] == shown
        assert follower.view.last == whole.last


def check_turns(log: list[Any]) -> None:
    running = 0
    ended: set[int] = set()
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for event in log:
        turn = getattr(event, "turn", 0)
        counts[turn][kind(event)] += 1
        if isinstance(event, StartEvent):
            assert not running, "one turn at a time"
            assert event.turn == event.seq
            running = turn
        elif isinstance(event, CutEvent):
            assert turn == running or turn in ended
        elif turn:
            assert turn == running, "nothing of a turn outside of it"
        if isinstance(event, DoneEvent):
            ended.add(turn)
            running = 0
            counted = counts[turn]
            assert counted["start"] == counted["done"] == counted["usage"] == 1
            assert counted["error"] == (event.status == "failed")
    assert not running
    calls = [event.call for event in log if isinstance(event, ToolCallEvent)]
    results = [event.call for event in log if isinstance(event, ToolResultEvent)]
    assert len(set(calls)) == len(calls)
    assert len(set(results)) == len(results)
    invalid = [
        event.call
        for event in log
        if isinstance(event, ToolResultEvent) and event.status == "invalid"
    ]
    assert sorted(calls + invalid) == sorted(results)
    for event in log:
        if isinstance(event, UsageEvent):
            assert event.output_tokens >= 0
        if isinstance(event, TurnErrorEvent):
            assert event.code != "internal"


def check_text(log: list[Any]) -> None:
    """The proofs in `cut` and `done` are those of the text that they leave."""
    texts: dict[int, list[tuple[int, str]]] = defaultdict(list)
    through: dict[int, int] = {}
    kept: dict[int, str] = defaultdict(str)
    for event in log:
        if isinstance(event, DeltaEvent):
            kept[event.turn] += event.text
            texts[event.turn].append((event.seq, event.text))
        elif isinstance(event, CutEvent):
            data = kept[event.turn].encode()
            assert event.text.bytes <= len(data), "a cut never adds"
            kept[event.turn] = data[: event.text.bytes].decode()
            assert proof(kept[event.turn]) == event.text
            assert event.keep_through <= through.get(event.turn, event.keep_through)
            through[event.turn] = event.keep_through
        elif isinstance(event, DoneEvent):
            assert proof(kept[event.turn]) == event.text


def check_messages(log: list[Any], session: Session) -> None:
    """Each message has one turn, or has joined the one that it steers."""
    answered = Counter(event.message for event in log if isinstance(event, StartEvent))
    assert set(answered.values()) <= {1}
    told = {
        message["content"]
        for request in session.talk.provider.requests
        for message in request.messages
        if message["role"] == "user"
    }
    for event in log:
        if isinstance(event, MessageEvent) and not answered[event.seq]:
            assert event.steers
            assert event.content in told, "it reached the model, or has a turn"


def proof(text: str) -> TextProof:
    data = text.encode()
    return TextProof(bytes=len(data), crc32=zlib.crc32(data))
