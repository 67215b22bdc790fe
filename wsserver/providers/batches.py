"""A model stream that somebody iterates, for those who want it pushed."""

from collections.abc import AsyncIterator, Sequence

from wsserver.engine.model import ModelEvent
from wsserver.engine.provider import Sink


class Batches:
    """Batches of model events, to be iterated or pumped, once."""

    def __init__(self, batches: AsyncIterator[Sequence[ModelEvent]]) -> None:
        self._batches = batches

    def __aiter__(self) -> "Batches":
        return self

    async def __anext__(self) -> Sequence[ModelEvent]:
        return await anext(self._batches)

    async def pump(self, sink: Sink) -> None:
        """Gives each batch to `sink`; returns after the last."""
        async for batch in self._batches:
            sink(batch)
