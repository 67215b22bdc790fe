"""Each entry into the turn's machine fails in each phase: one turn pays, no other."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from protocol.content import Config, Tool
from tests.fakes.clocks import jumping_loop
from tests.fakes.scripted import ScriptedProvider, Step, says
from tests.turns.talk import Talk, asks, call, talking, until
from wsserver.engine.model import Failure, Finished, ModelRequest, Text
from wsserver.engine.turn import Turn
from wsserver.providers.batches import Batches

CLOSE_SECONDS = 2.0
STOP: Step = [Finished(reason="stop")]
BUSY = Failure(
    code="upstream_overloaded", message="", retryable=True, retry_after_seconds=5.0
)
PHASES: dict[str, list[Step]] = {
    "connecting": [1000.0, STOP],
    "waiting_first_token": [[], 1000.0, STOP],
    "streaming": [[Text("a")], 5.0, [Text("b")], 1000.0, STOP],
    "retry_wait": [BUSY],
    "waiting_tools": [asks(call(1))],
    "stopping": [[Text("a")], 1000.0, STOP],
}
ENTRIES = (
    "attached", "called", "closed", "connected", "deadline", "detached", "fail", "feed",
    "finished", "refused", "stop", "time", "tool_result",
)  # fmt: skip
BYSTANDER: list[Step] = [step for _ in range(20) for step in ([Text("x ")], 20.0)]


class Models:
    """Whoever says `defect` gets a script, `bystander` a long answer, others a short."""

    def __init__(self, script: list[Step]) -> None:
        self._scripts = {
            "defect": ScriptedProvider(script),
            "bystander": ScriptedProvider([*BYSTANDER, STOP]),
        }

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[Batches]:
        said = request.messages[-1]["content"]
        others = ScriptedProvider(says("short"))
        async with self._scripts.get(said, others).stream(request) as stream:
            try:
                yield stream
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(CLOSE_SECONDS)  # a turn is `stopping`


def waits(talk: Talk) -> None:
    del talk


def interrupts(talk: Talk) -> None:
    reply = talk.interrupt(conversation=talk.conversation.log.conversation)
    assert reply.outcome in ("interrupted", "already_finished")


def gives_a_result(talk: Talk) -> None:
    known = talk.result(f"call_{talk.conversation.running}.0")
    assert known in ("accepted", "unknown", "cancelled", "late")


def sends_another_in_its_place(talk: Talk) -> None:
    reply = talk.send("instead", policy="interrupt")
    assert reply.ok


def comes_and_goes(talk: Talk) -> None:
    other = talk.join("c2", "weather")
    talk.conversation.detach(other)


def goes_and_comes(talk: Talk) -> None:
    talk.conversation.detach(talk.viewer)
    talk.conversation.attach(talk.viewer)


def tells_of_progress(talk: Talk) -> None:
    talk.progress(f"call_{talk.conversation.running}.0")


def handles_nothing_any_more(talk: Talk) -> None:
    talk.viewer.handles = frozenset()
    talk.conversation.handles_changed(talk.viewer)


def shuts_down(talk: Talk) -> None:
    talk.conversation.shut_down()


def loses_the_store(talk: Talk) -> None:
    talk.conversation.store_failed()


ACTS: Sequence[Callable[[Talk], None]] = (
    waits, interrupts, gives_a_result, sends_another_in_its_place, comes_and_goes,
    goes_and_comes, tells_of_progress, handles_nothing_any_more, shuts_down,
    loses_the_store,
)  # fmt: skip


class Defects:
    """Makes an entry of some machines fail, once each or always."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.machines: list[Turn] = []
        self._patch = patch
        begin = Turn.__init__

        def known(machine: Turn, **members: Any) -> None:
            self.machines.append(machine)
            begin(machine, **members)

        patch.setattr(Turn, "__init__", known)

    def plant(self, entry: str, machines: list[Turn], *, always: bool) -> None:
        left = {id(machine) for machine in machines}
        works = getattr(Turn, entry)

        def fails(machine: Turn, *args: Any, **members: Any) -> Any:
            if id(machine) in left:
                if not always:
                    left.remove(id(machine))
                raise RuntimeError("a defect")
            return works(machine, *args, **members)

        self._patch.setattr(Turn, entry, fails)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": jumping_loop}


@pytest.mark.parametrize("always", [False, True], ids=["once", "always"])
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("phase", PHASES)
async def test_it_ends_its_turn_once_and_nothing_else(
    phase: str,
    entry: str,
    always: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tools = Config(tools=[Tool(name="weather")])
    async with talking(provider=Models(PHASES[phase])) as other:
        with monkeypatch.context() as patch, capture_logs() as lines:
            defects = Defects(patch)
            other.send("bystander")
            talks = [await other.another(act.__name__) for act in ACTS]
            for talk in talks:
                talk.viewer.handles = frozenset({"weather"})
                talk.conversation.configure("k", tools)
                talk.send("defect")
            await anyio.sleep(CLOSE_SECONDS + 0.1 if phase == "retry_wait" else 0.1)
            if phase == "stopping":
                for talk in talks:
                    talk.interrupt()
            _, *machines = defects.machines
            assert {machine.phase for machine in machines} == {phase}

            defects.plant(entry, machines, always=always)
            for act, talk in zip(ACTS, talks, strict=True):
                act(talk)
            await until(lambda: not any(talk.conversation.running for talk in talks))

        assert other.conversation.running
        for talk in talks:
            kinds = await talk.kinds()
            assert kinds.count("start") == kinds.count("done") == kinds.count("usage")
            talk.send("again")
            assert (await talk.done()).status == "completed"
        assert (await other.done()).status == "completed"
        assert "turn_not_ended" not in [line["event"] for line in lines]
