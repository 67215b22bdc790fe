"""A defect of ours in one turn ends that turn, and nothing else."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import anyio
import pytest
from structlog.testing import capture_logs

from protocol.content import Tool
from protocol.events import Event, StartEvent, TurnErrorEvent
from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider, Step, says
from tests.turns.served import FakeTools, calling, named
from tests.turns.talk import Talk, asks, call, settled, talking, until
from wsserver.engine.actions import Action
from wsserver.engine.model import Failure, Finished, ModelRequest, Text
from wsserver.engine.server_tools import ToolContext
from wsserver.engine.turn import Turn
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.store import Meta
from wsserver.providers.batches import Batches
from wsserver.turns import running
from wsserver.turns.conversation import Conversation
from wsserver.turns.services import ConversationLimits

SLOW: list[Step] = [1000.0, [Text("late")], [Finished(reason="stop")]]
LONG: list[Step] = [
    *([Text(f"{number} ")] for number in range(3)),
    20.0,
    [Finished(reason="stop")],
]
REFUSED = Failure(code="upstream_auth", message="who?", retryable=False)
BUSY = Failure(code="upstream_overloaded", message="busy", retryable=True)


def broken(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("a defect")


def in_the_machine(talk: Talk, patch: pytest.MonkeyPatch) -> None:
    del talk
    passes = Turn.time

    def time(turn: Turn, now: float) -> list[Action]:
        if turn.phase != "streaming":  # as the other one does
            broken()
        return passes(turn, now)

    patch.setattr(Turn, "time", time)


def where_it_tells_a_viewer(talk: Talk, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talk.viewer, "show_waiting", broken)


def where_it_counts_a_retry(talk: Talk, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talk.rig.services.metrics, "upstream_retry", broken, raising=False)


@pytest.mark.parametrize(
    ("breaks", "script"),
    [
        (in_the_machine, SLOW),
        (where_it_tells_a_viewer, SLOW),
        (where_it_counts_a_retry, [BUSY]),
    ],
)
async def test_it_ends_that_turn_as_internal(
    breaks: Callable[[Talk, pytest.MonkeyPatch], None],
    script: list[Step],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking(LONG, script, LONG) as other:
        other.send()
        await anyio.sleep(1)
        talk = await other.another("d")

        with capture_logs() as logs, monkeypatch.context() as patch:
            breaks(talk, patch)
            turn = talk.send(conversation="d").turn
            done = await talk.done()
        assert (done.turn, done.status) == (turn, "failed")
        [error] = [e for e in await talk.log() if isinstance(e, TurnErrorEvent)]
        assert (error.code, error.retryable) == ("internal", True)
        assert [entry["event"] for entry in logs].count("turn_defective") == 1
        assert other.conversation.running
        assert (await other.done()).status == "completed"
        talk.send(conversation="d")
        assert (await talk.done()).status == "completed"


async def test_it_stays_stopped_by_whom_it_was_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking(LONG) as talk:
        talk.send()
        await anyio.sleep(1)
        monkeypatch.setattr(Turn, "closed", once(Turn.closed))
        talk.interrupt()
        done = await talk.done()
        assert (done.status, done.reason) == ("interrupted", "by_client")


def once(method: Callable[..., object]) -> Callable[..., object]:
    """Makes a method fail the first time that it is called."""
    called: list[object] = []

    def failing(*args: Any, **members: Any) -> object:
        called.append(args)
        return method(*args, **members) if len(called) > 1 else broken()

    return failing


def where_it_counts_the_turn(talk: Talk, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talk.rig.services.metrics, "turn_took", broken, raising=False)


def where_it_proves_the_text(talk: Talk, patch: pytest.MonkeyPatch) -> None:
    del talk
    patch.setattr(running, "proof", broken)


def where_the_conversation_is_told(talk: Talk, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talk.rig.services.running, "let_begin", broken)


@pytest.mark.parametrize(
    ("breaks", "script", "status"),
    [
        (where_it_counts_the_turn, LONG, "completed"),
        (where_it_proves_the_text, LONG, "failed"),
        (where_it_proves_the_text, [REFUSED], "failed"),
        (where_the_conversation_is_told, LONG, "completed"),
    ],
)
async def test_while_it_ends_it_ends_it_nonetheless(
    breaks: Callable[[Talk, pytest.MonkeyPatch], None],
    script: list[Step],
    status: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking(script, says("b")) as talk:
        with capture_logs() as logs, monkeypatch.context() as patch:
            breaks(talk, patch)
            talk.send()
            assert (await talk.done()).status == status
            await settled()
        assert "turn_defective" in [entry["event"] for entry in logs]
        kinds = await talk.kinds()
        assert kinds.count("done") == kinds.count("usage") == 1
        assert kinds.count("error") == (status == "failed")
        assert talk.rig.services.running.total == 0
        talk.send()
        assert (await talk.done()).status == "completed"
        assert await talk.dones() == [status, "completed"]


def in_the_log(log: ConversationLog, patch: pytest.MonkeyPatch) -> None:
    appends = ConversationLog.append

    def append(one: ConversationLog, event: type[Event], **members: Any) -> Event:
        return broken() if one is log else appends(one, event, **members)

    patch.setattr(ConversationLog, "append", append)


async def test_in_its_log_it_is_named_and_ends_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking(LONG) as other:
        other.send()
        talk = await other.another("d")
        with capture_logs() as logs:
            talk.send(conversation="d")
            await anyio.sleep(1)
            in_the_log(talk.conversation.log, monkeypatch)
            assert (await other.done()).status == "completed"
            await settled()
        assert "turn_not_ended" in [entry["event"] for entry in logs]
        other.send()
        assert (await other.done()).status == "completed"


async def test_in_one_that_waits_it_keeps_no_other_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking(LONG, LONG) as talk:
        _, *others = talks = [talk, await talk.another("d"), await talk.another("e")]
        for each in talks * 2:
            each.send()
        talk.rig.services.limits = ConversationLimits(active_turns=1)
        await until(lambda: not talk.conversation.running)
        in_the_log(talk.conversation.log, monkeypatch)
        for each in others:
            assert (await each.done()).status == "completed"
            assert await each.dones() == ["completed"] * 2


async def test_where_one_hears_of_the_store_the_others_hear_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking(LONG) as talk:
        await talk.another("d")
        for told, tell in (
            ("store_failed", talk.rig.committer.on_failure),
            ("store_works", talk.rig.committer.on_recovery),
        ):
            heard: list[Conversation] = []

            def hears(one: Conversation, heard: list[Conversation] = heard) -> None:
                heard.append(one)
                broken()

            monkeypatch.setattr(Conversation, told, hears)
            tell()
            assert len(heard) == 2


def where_models_are_found(talk: Talk, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        talk.rig.services.models, "resolve", once(talk.rig.services.models.resolve)
    )


def where_a_turn_is_made(talk: Talk, patch: pytest.MonkeyPatch) -> None:
    del talk
    patch.setattr(Turn, "__init__", once(Turn.__init__))


def where_its_start_is_appended(talk: Talk, patch: pytest.MonkeyPatch) -> None:
    log = talk.conversation.log
    appends = ConversationLog.append
    fails = once(lambda: None)

    def append(one: ConversationLog, event: type[Event], **members: Any) -> Event:
        made = appends(one, event, **members)
        if one is log and event is StartEvent:
            fails()
        return made

    patch.setattr(ConversationLog, "append", append)


def where_it_is_counted(talk: Talk, patch: pytest.MonkeyPatch) -> None:
    running = talk.rig.services.running
    patch.setattr(running, "began", once(running.began))


@pytest.mark.parametrize(
    "breaks",
    [
        where_models_are_found,
        where_a_turn_is_made,
        where_its_start_is_appended,
        where_it_is_counted,
    ],
)
async def test_where_it_begins_it_ends_it_and_the_next_begins(
    breaks: Callable[[Talk, pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking(LONG) as talk:
        talk.send()
        talk.send("defect")
        talk.send("next")
        breaks(talk, monkeypatch)
        assert (await talk.done()).status == "completed"
        assert await talk.dones() == ["completed", "failed", "completed"]
        [error] = [e for e in await talk.log() if isinstance(e, TurnErrorEvent)]
        assert error.code == "internal"


async def test_where_it_begins_nothing_comes_of_it_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking(LONG) as talk:
        talk.send(on_disconnect="continue")
        talk.send(on_disconnect="cancel")
        await talk.left()
        where_it_is_counted(talk, monkeypatch)
        await talk.done()
        await anyio.sleep(100)
        assert await talk.dones() == ["completed", "failed"]


async def test_while_it_ends_it_keeps_no_message_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking(LONG) as talk:
        talk.send()
        talk.send("next")
        running = talk.rig.services.running
        monkeypatch.setattr(running, "of", once(running.of))
        assert (await talk.done()).status == "completed"
        assert await talk.dones() == ["completed", "completed"]


class Clinging(ScriptedProvider):
    """Closes no call in time."""

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[Batches]:
        async with super().stream(request) as stream:
            try:
                yield stream
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(10_000)


async def test_where_a_deadline_is_looked_at_it_waits_for_no_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking(provider=Clinging([[Text("a")], 10_000.0])) as talk:
        monkeypatch.setattr(Turn, "time", once(Turn.time))
        began = anyio.current_time()
        talk.send()
        await talk.done()
        assert anyio.current_time() < began + 1_000


async def test_where_it_is_lost_it_takes_no_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weather = {"tools": [Tool(name="weather")], "handles": ("weather",)}
    async with talking([asks(call(1))], **weather) as talk:
        talk.send()
        await anyio.sleep(1)
        [request] = talk.viewer.requests
        monkeypatch.setattr(Turn, "fail", broken)
        talk.conversation.store_failed()
        assert (await talk.done()).status == "failed"
        assert talk.result(request.call) == "unknown"


async def test_where_it_is_lost_its_tools_are_stopped_and_end_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = anyio.Event()

    async def slow(arguments: Any, context: ToolContext) -> None:
        del arguments, context
        try:
            await anyio.sleep(10)
        except anyio.get_cancelled_exc_class():
            stopped.set()
            raise

    async with talking(calling("tool"), LONG) as talk:
        talk.rig.services.server_tools = FakeTools(tool=slow)
        talk.configure(tools=named("tool"))
        with monkeypatch.context() as patch:
            talk.send()
            await anyio.sleep(1)
            patch.setattr(Turn, "fail", broken)
            talk.conversation.store_failed()
            with capture_logs() as logs:
                assert (await talk.done()).status == "failed"
        assert [entry["event"] for entry in logs].count("turn_defective") == 2
        await anyio.sleep(20)
        assert stopped.is_set()
        assert (await talk.kinds()).count("tool_result") == 1
        talk.send()
        assert (await talk.done()).status == "completed"


class Torn(FaultyStore):
    """A store of which one conversation can't be loaded."""

    torn = ""

    async def meta(self, key: str) -> Meta | None:
        return broken() if key == self.torn else await super().meta(key)


async def test_where_one_is_loaded_the_others_that_a_crash_cut_off_are_ended() -> None:
    store = Torn()
    async with talking(SLOW, store=store) as talk:
        for each in (talk, await talk.another("d")):
            each.send()
        await settled()
        await talk.rig.committer.flush()
    store.torn = talk.conversation.log.key
    async with rig(ScriptedProvider(SLOW), store) as r:
        with capture_logs() as logs:
            assert await r.directory.recover() == 1
        told = [(entry["event"], entry.get("key")) for entry in logs]
        assert ("conversation_not_recovered", store.torn) in told
        store.torn = ""
        assert await r.directory.recover() == 1
