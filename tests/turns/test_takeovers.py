"""Turns whose model has others that stand in for it, as the log tells them."""

from collections.abc import Sequence

import anyio
import pytest

from protocol.content import Tool
from protocol.events import StartEvent, TakeoverEvent, TurnErrorEvent, UsageEvent
from tests.engine.story import check_prompt
from tests.fakes.rig import NoMetrics
from tests.fakes.scripted import ScriptedProvider, Step, says
from tests.turns.talk import Talk, asks, call, settled, talking, until
from wsserver.engine.breaker import Breaker, BreakerPolicy
from wsserver.engine.model import Failure, Finished, Reasoning, Text
from wsserver.providers.fallback import Candidate, Fallback

FULL = Failure(code="upstream_unavailable", message="full", retryable=True)
FORBIDDEN = Failure(code="upstream_auth", message="no", retryable=False)
TOOLS = [Tool(name="weather")]
HANGS: list[Step] = [9999.0]


class Pair:
    """The model `test`, and `spare` that stands in for it."""

    def __init__(self, test: Sequence[list[Step]], spare: Sequence[list[Step]]) -> None:
        self.test, self.spare = ScriptedProvider(*test), ScriptedProvider(*spare)
        candidates = [
            Candidate(
                name=name,
                provider=provider,
                model=name.upper(),
                first_token_seconds=15.0,
                breaker=Breaker(BreakerPolicy(failures=100)),
            )
            for name, provider in [("test", self.test), ("spare", self.spare)]
        ]
        self.provider = Fallback(candidates, metrics=NoMetrics(), jitter=lambda: 0.5)

    @property
    def open_calls(self) -> int:
        return self.test.open_calls + self.spare.open_calls


async def takeovers(talk: Talk) -> list[tuple[str, str | None]]:
    log = await talk.log()
    return [(e.model, e.code) for e in log if isinstance(e, TakeoverEvent)]


async def test_who_answers_is_said_before_what_is_answered() -> None:
    pair = Pair([[0.4, FORBIDDEN]], [[0.2, *says("hi", " there")]])
    async with talking(provider=pair.provider) as talk:
        talk.send()
        done = await talk.done()
        assert done.status == "completed"
        kinds = list(dict.fromkeys(await talk.kinds()))
        assert kinds == ["message", "start", "takeover", "delta", "usage", "done"]
        log = await talk.log()
        assert [e.model for e in log if isinstance(e, StartEvent)] == ["test"]
        assert await takeovers(talk) == [("spare", "upstream_auth")]
        assert done.timing.upstream_ttft_ms == pytest.approx(200, abs=5)
        assert done.timing.ttft_ms == pytest.approx(600, abs=5)
        assert [e.model_calls for e in log if isinstance(e, UsageEvent)] == [1]


async def test_the_first_choice_is_not_worth_a_word() -> None:
    pair = Pair([[FULL], says("hi")], [says("no")])
    async with talking(provider=pair.provider) as talk:
        talk.send()
        await talk.done()
        assert "takeover" not in await talk.kinds()
        assert len(pair.test.requests) == 2


async def test_each_model_call_begins_with_the_first_choice() -> None:
    calls = asks(call(0))
    pair = Pair(
        [[FORBIDDEN], [FORBIDDEN], [[Reasoning("hm")], calls], says("Sunny.")],
        [[[Text("Let me see.")], calls], [calls]],
    )
    async with talking(
        provider=pair.provider, tools=TOOLS, handles=("weather",)
    ) as talk:
        talk.send()
        for number in range(3):
            await until(lambda number=number: len(talk.viewer.requests) > number)
            assert talk.result(talk.viewer.requests[number].call) == "accepted"
        assert (await talk.done()).status == "completed"
        # The second call was of the same model as the first: nothing to say.
        assert await takeovers(talk) == [("spare", "upstream_auth"), ("test", None)]
        check_prompt(list(pair.test.requests[-1].messages))
        assert (await talk.dones()) == ["completed"]


async def test_all_fail_and_the_turn_says_so_once() -> None:
    pair = Pair([[FULL]], [[[Finished(reason="error", failure=FULL)]]])
    async with talking(provider=pair.provider) as talk:
        talk.send()
        assert (await talk.done()).status == "failed"
        assert await talk.kinds() == ["message", "start", "usage", "error", "done"]
        [error] = [e for e in await talk.log() if isinstance(e, TurnErrorEvent)]
        assert (error.code, error.retryable) == ("upstream_unavailable", True)
        assert (len(pair.test.requests), len(pair.spare.requests)) == (3, 3)


async def test_a_failure_after_something_was_shown_is_the_turns() -> None:
    pair = Pair(
        [[[Text("so")], [Finished(reason="error", failure=FULL)]]], [says("no")]
    )
    async with talking(provider=pair.provider) as talk:
        talk.send()
        assert (await talk.done()).status == "failed"
        assert (await talk.done()).text.bytes == 2
        assert not pair.spare.requests
        assert "takeover" not in await talk.kinds()


async def test_a_silent_chain_ends_as_silence_of_the_last() -> None:
    pair = Pair([HANGS], [HANGS])
    async with talking(provider=pair.provider) as talk:
        talk.send()
        await anyio.sleep(31)
        done = await talk.done()
        [error] = [e for e in await talk.log() if isinstance(e, TurnErrorEvent)]
        assert error.code == "upstream_timeout"
        assert done.timing.total_ms == pytest.approx(30_000, abs=20)
        assert {frame.phase for frame in talk.viewer.waiting} == {"waiting_first_token"}


PHASES: dict[str, tuple[list[Step], list[Step], float]] = {
    "the first waits for headers": (HANGS, [], 1.0),
    "the first waits for a token": ([[], 9999.0], [], 1.0),
    "the first waits to be asked again": ([FULL], [], 0.1),
    "the second waits for headers": ([FORBIDDEN], HANGS, 1.0),
    "the second waits for a token": ([FORBIDDEN], [[], 9999.0], 1.0),
    "the second streams": ([FORBIDDEN], [[Text("so ")], 9999.0], 1.0),
    "the second took over from silence": (HANGS, [[Text("so ")], 9999.0], 16.0),
}


@pytest.mark.parametrize("phase", PHASES)
async def test_an_interrupt_closes_whatever_is_open(phase: str) -> None:
    first, second, after = PHASES[phase]
    pair = Pair([first, says("fine")], [second])
    async with talking(provider=pair.provider) as talk:
        talk.send()
        await anyio.sleep(after)
        asked = len(pair.test.requests) + len(pair.spare.requests)
        assert talk.interrupt().outcome == "interrupted"
        await settled()
        assert pair.open_calls == 0
        done = await talk.done()
        assert (done.status, done.reason) == ("interrupted", "by_client")
        assert done.timing.stop_ms == pytest.approx(0, abs=5)
        assert done.text.bytes == (3 if second and second[0] == [Text("so ")] else 0)
        await anyio.sleep(60)
        assert len(pair.test.requests) + len(pair.spare.requests) == asked
