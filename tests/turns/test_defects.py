"""A defect of ours in one turn ends that turn, and nothing else."""

from collections.abc import Callable

import anyio
import pytest
from structlog.testing import capture_logs

from protocol.events import TurnErrorEvent
from tests.fakes.scripted import Step
from tests.turns.talk import Talk, talking
from wsserver.engine.actions import Action
from wsserver.engine.model import Failure, Finished, Text
from wsserver.engine.turn import Turn

SLOW: list[Step] = [1000.0, [Text("late")], [Finished(reason="stop")]]
LONG: list[Step] = [
    *([Text(f"{number} ")] for number in range(3)),
    20.0,
    [Finished(reason="stop")],
]
BUSY = Failure(code="upstream_overloaded", message="busy", retryable=True)


def broken(*_: object, **__: object) -> None:
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

    def failing(*args: object) -> object:
        called.append(args)
        return method(*args) if len(called) > 1 else broken()

    return failing
