"""A provider whose every model call follows a random script."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import anyio

from tests.fakes.strict_messages import find_fault
from wsserver.engine.model import (
    Call,
    CallFragment,
    Failure,
    Finished,
    ModelEvent,
    ModelRequest,
    Reasoning,
    Refusal,
    Text,
    UpstreamError,
    Usage,
)
from wsserver.providers.batches import Batches

NAMES = ("weather", "clock")
WAITS = (0.0, 0.0, 0.01, 0.5, 3.0)


class RandomProvider:
    """Follows a random script per call, and takes only prompts that are in order."""

    def __init__(self, chance: Random) -> None:
        self.requests: list[ModelRequest] = []
        self.faults: list[str] = []
        self.open_calls = 0
        self._chance = chance

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[Batches]:
        fault = find_fault(list(request.messages))
        if fault is not None:
            self.faults.append(fault)
        self.requests.append(request)
        self.open_calls += 1
        try:
            await self._wait(15.0)
            if self._chance.random() < 0.15:
                raise UpstreamError(self._failure())
            yield Batches(self._play())
            await self._wait(1.0)
        finally:
            self.open_calls -= 1

    async def _play(self) -> AsyncIterator[Sequence[ModelEvent]]:
        chance = self._chance
        for _ in range(chance.randrange(8)):
            await self._wait(12.0)
            yield [self._piece() for _ in range(chance.randrange(4))]
        if chance.random() < 0.9:
            yield [self._end()]

    async def _wait(self, longest: float) -> None:
        short = self._chance.random() < 0.95
        await anyio.sleep(self._chance.choice(WAITS) if short else longest)

    def _piece(self) -> ModelEvent:
        chance = self._chance
        text = chance.choice(["a", "word ", "日本", "🎌 ", "x" * 40])
        made = chance.choice([Text, Text, Text, Reasoning, Refusal, None])
        return CallFragment(0, "weather", "{") if made is None else made(text)

    def _end(self) -> Finished:
        chance = self._chance
        usage = Usage(input_tokens=3, output_tokens=2)
        draw = chance.random()
        if draw < 0.45:
            calls = tuple(self._call(n) for n in range(chance.randint(1, 3)))
            return Finished(reason="tool_calls", calls=calls, usage=usage)
        if draw < 0.55:
            return Finished(reason="error", failure=self._failure())
        reason: Any = chance.choice(["stop", "stop", "length", "incomplete"])
        return Finished(reason=reason, usage=chance.choice([usage, None]))

    def _call(self, number: int) -> Call:
        name = self._chance.choice([*NAMES * 4, "rocket"])
        arguments = self._chance.choice(["{}", *['{"a": 1}'] * 6, "{"])
        valid = arguments != "{"
        return Call(
            upstream_id=f"u{number}", name=name, arguments=arguments, valid=valid
        )

    def _failure(self) -> Failure:
        retryable = self._chance.random() < 0.7
        return Failure(code="upstream_unavailable", message="", retryable=retryable)
