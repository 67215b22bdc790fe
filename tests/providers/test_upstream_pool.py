"""Connections that are kept: the next model call on one is another turn's."""

from collections.abc import Sequence

import anyio
from structlog.contextvars import bound_contextvars, get_contextvars

from tests.fakes.replies import streamed, text_events
from tests.providers.upstream_rig import WAIT_SECONDS, Rig, request, rig
from wsserver.engine.model import ModelEvent

PAUSES = streamed(text_events("a", "b", "c"), between_writes_seconds=0.001)


async def contexts(it: Rig, turn: int) -> list[dict[str, object]]:
    """Makes a model call of a turn; returns with which ids each read was handled."""
    seen: list[dict[str, object]] = []

    def sink(events: Sequence[ModelEvent]) -> None:
        del events
        seen.append(get_contextvars())

    with bound_contextvars(turn=turn), anyio.fail_after(WAIT_SECONDS):
        async with it.provider.stream(request()) as batches:
            await batches.pump(sink)
        assert get_contextvars() == {"turn": turn}
    return seen


async def test_what_it_reads_is_handled_with_no_ids_of_an_earlier_turn() -> None:
    async with rig() as it:
        it.upstream.script(PAUSES)
        for turn in (1, 2):
            seen = await contexts(it, turn)
            assert {} in seen
            assert all(ids in ({}, {"turn": turn}) for ids in seen)
        assert it.upstream.connections_opened == 1
