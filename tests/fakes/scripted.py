"""A provider that plays scripts: each model call takes the next one."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager

import anyio

from wsserver.engine.model import (
    Failure,
    Finished,
    ModelEvent,
    ModelRequest,
    Text,
    UpstreamError,
)
from wsserver.providers.batches import Batches

Step = float | Sequence[ModelEvent] | Failure | anyio.Event
"""Wait seconds, yield a batch, refuse the request, or wait for an event."""


def says(*texts: str) -> list[Step]:
    """A script that says some texts, one batch each, and stops."""
    steps: list[Step] = [[Text(text)] for text in texts]
    return [*steps, [Finished(reason="stop")]]


class ScriptedProvider:
    """Plays a script per model call, the last one again when they run out.

    Attributes:
        requests: What was asked, in order.
        open_calls: Model calls that are not closed.
    """

    def __init__(self, *scripts: Sequence[Step]) -> None:
        self.scripts = list(scripts)
        self.requests: list[ModelRequest] = []
        self.open_calls = 0

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[Batches]:
        """Plays the next script."""
        self.requests.append(request)
        index = min(len(self.requests), len(self.scripts)) - 1
        script = list(self.scripts[index])
        self.open_calls += 1
        try:
            while script and isinstance(script[0], float | Failure | anyio.Event):
                await self._wait(script.pop(0))
            async with aclosing(self._play(script)) as batches:
                yield Batches(batches)
        finally:
            self.open_calls -= 1

    async def _play(self, script: list[Step]) -> AsyncGenerator[Sequence[ModelEvent]]:
        for step in script:
            if isinstance(step, list | tuple):
                await anyio.lowlevel.checkpoint()
                yield step
            else:
                await self._wait(step)

    async def _wait(self, step: Step) -> None:
        match step:
            case float():
                await anyio.sleep(step)
            case Failure():
                raise UpstreamError(step)
            case anyio.Event():
                await step.wait()
            case _:
                raise AssertionError(step)
