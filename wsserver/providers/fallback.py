"""One model that several upstreams can answer for, in order.

A model call asks the first of them; while nothing was shown, the next one takes over
when that one fails or gives no token in time. How this and retries combine:

- One upstream is asked up to three times, with the waits of `wsserver.engine.retry`,
  before the next one is; but nobody waits longer than `LONGEST_WAIT_SECONDS` for one
  while there is another to ask.
- All of that has to fit into the upstream's own time to first token. So the whole
  chain takes no longer than the sum of these times, and no more calls than three for
  each upstream. The turn does not make the call again after that.
- An upstream whose breaker is open is not asked. Where all are open the call fails at
  once, and says when to come again.

As soon as something was shown, all that the upstream says goes through unchanged, a
failure too. What a filter says is an answer, not a failure: nobody else is asked.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Protocol

import anyio
import structlog
from msgspec import Struct, structs

from wsserver.engine.breaker import Breaker
from wsserver.engine.ending import silent
from wsserver.engine.model import Failure, ModelRequest, UpstreamError
from wsserver.engine.param_bounds import UNBOUNDED, ParamBounds
from wsserver.engine.provider import ModelStream, Provider, Sink
from wsserver.engine.retry import RetryPolicy, next_attempt
from wsserver.providers.gate import Gate

LONGEST_WAIT_SECONDS: Final = 2.0
"""How long a retry may be waited for while there is another upstream to ask."""

_PATIENT: Final = RetryPolicy()
_HASTY: Final = RetryPolicy(longest_wait_seconds=LONGEST_WAIT_SECONDS)

log = structlog.get_logger(__name__)


class FallbackMetrics(Protocol):
    """What is counted here."""

    def upstream_retry(self, model: str, code: str) -> None:
        """Counts another attempt at the same upstream."""
        ...

    def fallback(self, model: str, to: str, code: str) -> None:
        """Counts that `to` is asked because of what was asked before it."""
        ...


class Candidate(Struct, frozen=True, kw_only=True):
    """An upstream that may be asked.

    Attributes:
        name: What clients know the model by.
        provider: Calls it.
        model: The name it knows the model by.
        address: Where it is, for the log; None for nowhere in particular.
        params: Request members that each request has.
        bounds: What the request may add or override.
        first_token_seconds: How long it has to give a first token, attempts and
            waits included. Signs of life do not put that off.
        breaker: Whether it is worth asking.
    """

    name: str
    provider: Provider
    model: str
    address: str | None = None
    params: Mapping[str, Any] = {}
    bounds: ParamBounds = UNBOUNDED
    first_token_seconds: float
    breaker: Breaker


class Fallback:
    """Answers model requests from the first upstream that can."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        *,
        metrics: FallbackMetrics,
        jitter: Callable[[], float],
    ) -> None:
        """Makes the chain.

        Args:
            candidates: In order, at least one; the first is the model's own.
            metrics: Counts.
            jitter: Returns a random number in [0, 1).
        """
        assert candidates, "a chain has at least one member"
        self._candidates = tuple(candidates)
        self._metrics = metrics
        self._jitter = jitter

    @property
    def first_token_seconds(self) -> float:
        """After how long it is clear that no token comes from anywhere."""
        return sum(candidate.first_token_seconds for candidate in self._candidates)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelStream]:
        """Makes one model call; see `wsserver.engine.provider.Provider.stream`.

        Requests are only sent as the stream is pumped, which raises UpstreamError
        where no upstream gave an answer.
        """
        yield _Chain(self._candidates, request, self._metrics, self._jitter)


class _Chain:
    """One model call, made of whichever upstream."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        request: ModelRequest,
        metrics: FallbackMetrics,
        jitter: Callable[[], float],
    ) -> None:
        self._candidates = candidates
        self._request = request
        self._metrics = metrics
        self._jitter = jitter
        self._code: str | None = None  # why the one before does not answer

    async def pump(self, sink: Sink) -> None:
        """Gives `sink` what the first upstream that answers says.

        Raises:
            UpstreamError: None does.
        """
        failures: list[Failure] = []
        for candidate in self._candidates:
            admitted = candidate.breaker.admit(anyio.current_time())
            if admitted is None:
                self._code = "upstream_unavailable"
                continue
            if self._code is not None:
                name = self._candidates[0].name
                self._metrics.fallback(name, candidate.name, self._code)
            failure = await self._ask(candidate, admitted, sink)
            if failure is None:
                return
            failures.append(failure)
            if failure.code == "content_filter":
                break
            self._code = failure.code
            log.warning(
                "upstream_gave_no_answer",
                upstream=candidate.name,
                address=candidate.address,
                code=failure.code,
                said=failure.upstream_code,
            )
        raise UpstreamError(self._none_answered(failures))

    async def _ask(
        self, candidate: Candidate, admitted: int, sink: Sink
    ) -> Failure | None:
        """Returns why an upstream does not answer; None once it has."""
        breaker, seconds = candidate.breaker, candidate.first_token_seconds
        failure = None
        try:
            deadline = anyio.current_time() + seconds
            with anyio.CancelScope(deadline=deadline) as patience:
                gate = Gate(
                    sink,
                    patience,
                    name=candidate.name,
                    code=self._code,
                    answered=partial(breaker.succeeded, admitted),
                )
                failure = await self._attempts(candidate, gate, patience)
            if patience.cancelled_caught:
                failure = silent(seconds)
            if failure is None:
                return None
            if not _is_unwell(failure):
                breaker.succeeded(admitted)
            elif breaker.failed(admitted, anyio.current_time()):
                log.warning("breaker_opened", upstream=candidate.name)
        finally:
            breaker.dropped(admitted)  # unless it is known how the call went
        return failure

    async def _attempts(
        self, candidate: Candidate, gate: Gate, patience: anyio.CancelScope
    ) -> Failure | None:
        policy = _PATIENT if candidate is self._candidates[-1] else _HASTY
        request = structs.replace(
            self._request,
            model=candidate.model,
            params=candidate.bounds.members(candidate.params, self._request.params),
        )
        attempt = 0
        while True:
            attempt += 1
            gate.asked()
            try:
                async with candidate.provider.stream(request) as stream:
                    await stream.pump(gate.take)
                failure = gate.failure
            except UpstreamError as error:
                if gate.failure is None:
                    raise
                failure = error.failure
            if failure is None:
                return None
            wait = next_attempt(failure, attempt, jitter=self._jitter(), policy=policy)
            if wait is None or anyio.current_time() + wait >= patience.deadline:
                return failure
            self._metrics.upstream_retry(candidate.name, failure.code)
            await anyio.sleep(wait)

    def _none_answered(self, failures: Sequence[Failure]) -> Failure:
        """Returns what the client is told: the last word, and whether to try again."""
        if not failures:
            now = anyio.current_time()
            return Failure(
                code="upstream_unavailable",
                message="All upstreams of this model have failed too often to be asked.",
                retryable=True,
                retry_after_seconds=min(c.breaker.wait(now) for c in self._candidates),
                retried=True,
            )
        return structs.replace(
            failures[-1],
            retryable=any(failure.retryable for failure in failures),
            retried=True,
        )


def _is_unwell(failure: Failure) -> bool:
    """Says whether a failure is the upstream's own, and not the request's."""
    return failure.retryable or failure.code in {
        "upstream_auth",
        "upstream_rate_limited",
    }
