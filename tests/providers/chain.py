"""A chain of scripted models that stand in for each other, in virtual time."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from tests.fakes.clocks import virtual_time  # noqa: F401 - a fixture
from tests.fakes.scripted import ScriptedProvider, Step
from tests.providers.upstream_rig import request
from wsserver.engine.breaker import Breaker, BreakerPolicy
from wsserver.engine.model import (
    Answering,
    Failure,
    Finished,
    ModelEvent,
    UpstreamError,
)
from wsserver.providers.fallback import Candidate, Fallback

FULL = Failure(code="upstream_unavailable", message="full", retryable=True)


FORBIDDEN = Failure(code="upstream_auth", message="no", retryable=False)


WRONG = Failure(code="upstream_error", message="bad request", retryable=False)


FILTERED = Failure(code="content_filter", message="not that", retryable=False)


STOP = Finished(reason="stop")


FAILED = Finished(reason="error", failure=FULL)


SECONDS = 20.0


class Counted:
    """Metrics as lists."""

    def __init__(self) -> None:
        self.retries: list[tuple[str, str]] = []
        self.fallbacks: list[tuple[str, str, str]] = []

    def upstream_retry(self, model: str, code: str) -> None:
        self.retries.append((model, code))

    def fallback(self, model: str, to: str, code: str) -> None:
        self.fallbacks.append((model, to, code))


class Chain:
    """A chain of scripted upstreams named `a`, `b`, ..."""

    def __init__(self, *scripts: Sequence[Sequence[Step]], **policy: Any) -> None:
        self.upstreams = [ScriptedProvider(*one) for one in scripts]
        self.breakers = [Breaker(BreakerPolicy(**policy)) for _ in scripts]
        self.counted = Counted()
        self.got: list[ModelEvent] = []
        self.batches = 0
        self.provider = Fallback(
            [
                Candidate(
                    name="abc"[n],
                    provider=upstream,
                    model=f"{'abc'[n]} there",
                    first_token_seconds=SECONDS,
                    breaker=self.breakers[n],
                )
                for n, upstream in enumerate(self.upstreams)
            ],
            metrics=self.counted,
            jitter=lambda: 0.5,
        )

    async def call(self) -> list[ModelEvent]:
        """Makes a model call; returns what came of it but for `Answering`."""
        self.got = []
        with anyio.fail_after(10_000):
            async with self.provider.stream(request(model="ours")) as stream:
                await stream.pump(self._take)
        assert [up.open_calls for up in self.upstreams] == [0] * len(self.upstreams)
        return [event for event in self.got if not isinstance(event, Answering)]

    def _take(self, events: Sequence[ModelEvent]) -> None:
        self.batches += 1
        self.got += events

    async def failure(self) -> Failure:
        with pytest.raises(UpstreamError) as caught:
            await self.call()
        return caught.value.failure

    @property
    def who(self) -> tuple[str, str | None]:
        """Who answered and why; it is said first and once."""
        (said,) = [event for event in self.got if isinstance(event, Answering)]
        assert self.got[0] is said
        return said.model, said.code

    @property
    def asked(self) -> list[int]:
        return [len(upstream.requests) for upstream in self.upstreams]
