"""A model that says anything, fails in every way, and is strict about prompts."""

import random
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel

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
from wsserver.engine.provider import Sink

PIECES = [
    "a", " b", "word ", "\n", "  ", "\t", '"', "\\", "é", "€", "日本", "😀", "👩‍👩‍👧",
    "\u2028", "0", "</script>", "\x00", "\x7f", "the quick brown fox ",
]  # fmt: skip
TOOLS = ("t", "u")
MOST_ROUNDS = 3


class Model:
    """The provider of all models.

    Attributes:
        said: By request id: what was given to the server of answer text.
        prompts: By request id: what it was told in each call.
        requests: By request id: each call.
        said_at: By request id: when it said something last, on the loop's clock.
        open_calls: Model calls that are not closed.
        brief: Whether it answers quickly and well from now on.
    """

    def __init__(
        self, chance: random.Random, asks: float, report: Callable[[str], None]
    ) -> None:
        self.said: dict[str, str] = defaultdict(str)
        self.prompts: dict[str, list[Sequence[dict[str, Any]]]] = defaultdict(list)
        self.requests: dict[str, list[ModelRequest]] = defaultdict(list)
        self.said_at: dict[str, float] = {}
        self.open_calls = 0
        self.brief = False
        self._chance = chance
        self._asks = asks
        self._report = report
        self._pace = chance.choice([0.0, 0.0, 0.05, 0.5])
        self._size = chance.choice([3, 10, 30])
        self._wild = chance.choice([0.0, 0.3])
        self._big = chance.random() < 0.1

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator["_Answer"]:
        """Answers; closing it may take a moment."""
        fault = find_fault(request.messages)
        if fault is not None:
            self._report(f"a strict upstream refuses: {fault}: {request.messages}")
        self.prompts[request.request_id].append(request.messages)
        self.requests[request.request_id].append(request)
        chance = self._chance
        self.open_calls += 1
        try:
            await self._wait(4.0)
            if not self.brief and chance.random() < 0.1 * self._wild:
                await anyio.sleep(chance.choice([25.0, 100.0]))
            if not self.brief and chance.random() < 0.4 * self._wild:
                raise UpstreamError(self._failure())
            yield _Answer(self._play(request))
        finally:
            if chance.random() < 0.2 and not self.brief:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(chance.uniform(0, 0.3))
            self.open_calls -= 1

    async def _play(self, request: ModelRequest) -> AsyncIterator[Sequence[ModelEvent]]:
        chance = self._chance
        batches = 2 if self.brief else chance.randint(0, self._size)
        for number in range(batches):
            if number and chance.random() < 0.3:
                await self._wait(1.0)
            else:
                await anyio.lowlevel.checkpoint()
            if not self.brief and chance.random() < 0.01 * self._wild:
                await anyio.sleep(chance.choice([12.0, 40.0]))
            self.said_at[request.request_id] = anyio.current_time()
            events = [self._say(request) for _ in range(chance.choice([1, 1, 2, 5]))]
            yield events
        async for events in self._end(request):
            yield events

    def _say(self, request: ModelRequest) -> ModelEvent:
        chance = self._chance
        text = "".join(chance.choices(PIECES, k=chance.randint(1, 4)))
        if self._big and chance.random() < 0.1:
            text *= 3000
        kind = 1.0 if self.brief else chance.random()
        if kind < 0.15:
            return Reasoning(text)
        if kind < 0.18:
            return Refusal(text)
        self.said[request.request_id] += text
        return Text(text)

    async def _end(self, request: ModelRequest) -> AsyncIterator[Sequence[ModelEvent]]:
        chance = self._chance
        usage = Usage(input_tokens=9, output_tokens=chance.randint(0, 99))
        stop = Finished(reason="stop", upstream_reason="stop", usage=usage)
        if self.brief:
            yield [stop]
        elif self._may_ask(request) and chance.random() < self._asks:
            async for events in self._ask(usage):
                yield events
        elif chance.random() > self._wild:
            yield [stop]
        else:
            ends: list[Sequence[ModelEvent]] = [
                [Finished(reason="length", usage=usage)],
                [Finished(reason="content_filter")],
                [Finished(reason="incomplete")],
                [Finished(reason="error", failure=self._failure())],
                [Finished(reason="stop", usage=usage)],
                [],
            ]
            end = chance.choice(ends)
            yield end
            if not end and chance.random() < 0.5:
                await anyio.sleep_forever()

    def _may_ask(self, request: ModelRequest) -> bool:
        return bool(request.tools) and _rounds(request) < MOST_ROUNDS

    async def _ask(self, usage: Usage) -> AsyncIterator[Sequence[ModelEvent]]:
        chance = self._chance
        calls: list[Call] = []
        for index in range(chance.choice([1, 1, 2, 3])):
            name = chance.choice([*TOOLS, "unknown"] if self._wild else TOOLS)
            valid = chance.random() > 0.1 * self._wild
            arguments = f'{{"n":{chance.randrange(9)}}}' if valid else '{"n":'
            half = len(arguments) // 2
            yield [CallFragment(index, name, arguments[:half])]
            yield [CallFragment(index, name, arguments[half:])]
            calls.append(Call(f"u{index}", name, arguments, valid))
        yield [Finished(reason="tool_calls", calls=tuple(calls), usage=usage)]

    async def _wait(self, factor: float) -> None:
        pace = 0.0 if self.brief else self._pace
        if pace:
            await anyio.sleep(factor * pace * self._chance.expovariate(1.0))
        else:
            await anyio.lowlevel.checkpoint()

    def _failure(self) -> Failure:
        chance = self._chance
        code, retryable = chance.choice(
            [
                ("upstream_rate_limited", True),
                ("upstream_unavailable", True),
                ("upstream_auth", False),
                ("context_length", False),
            ]
        )
        after = chance.choice([None, 1.0, 15.0]) if retryable else None
        return Failure(
            code=code, message="no", retryable=retryable, retry_after_seconds=after
        )


class _Answer:
    """One model call's stream."""

    def __init__(self, batches: AsyncIterator[Sequence[ModelEvent]]) -> None:
        self._batches = batches

    async def pump(self, sink: Sink) -> None:
        async for events in self._batches:
            sink(events)


def _rounds(request: ModelRequest) -> int:
    """Returns how often the turn has asked for tools."""
    rounds = 0
    for message in reversed(request.messages):
        if message["role"] == "user":
            break
        rounds += message["role"] == "assistant"
    return rounds
