"""A chain of upstreams, in virtual time: who is asked, when, and what goes through."""

from typing import Any

import anyio
import pytest
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.clocks import virtual_time  # noqa: F401 - a fixture
from tests.fakes.scripted import Step, says
from tests.providers.chain import (
    FAILED,
    FILTERED,
    FORBIDDEN,
    FULL,
    SECONDS,
    STOP,
    WRONG,
    Chain,
)
from wsserver.engine.model import (
    Answering,
    CallFragment,
    Failure,
    Finished,
    ModelEvent,
    Reasoning,
    Refusal,
    Text,
    UpstreamError,
)
from wsserver.providers.fallback import LONGEST_WAIT_SECONDS, Candidate, Fallback


async def test_the_first_answers_and_nobody_else_is_asked() -> None:
    chain = Chain([says("hi", " there")], [says("no")])
    assert await chain.call() == [Text("hi"), Text(" there"), STOP]
    assert chain.who == ("a", None)
    assert chain.asked == [1, 0]
    (asked,) = chain.upstreams[0].requests
    assert (asked.model, asked.request_id) == ("a there", "req-1")
    assert (chain.counted.retries, chain.counted.fallbacks) == ([], [])


REFUSED: list[tuple[list[Step], str, int]] = [
    ([FULL], "upstream_unavailable", 3),
    ([[FAILED]], "upstream_unavailable", 3),
    ([[], [CallFragment(0, "", "")], [FAILED]], "upstream_unavailable", 3),
    ([FORBIDDEN], "upstream_auth", 1),
    ([WRONG], "upstream_error", 1),
    ([[Finished(reason="error")]], "upstream_error", 3),
    ([[Finished(reason="incomplete")]], "upstream_error", 3),
    ([], "upstream_error", 3),
    ([9999.0], "upstream_timeout", 1),
    ([[], 9999.0], "upstream_timeout", 1),
]


@pytest.mark.parametrize(("script", "code", "attempts"), REFUSED)
async def test_the_next_takes_over_where_one_gives_no_answer(
    script: list[Step], code: str, attempts: int
) -> None:
    chain = Chain([script], [says("hi")])
    assert [e for e in await chain.call() if e in (Text("hi"), STOP)] == [
        Text("hi"),
        STOP,
    ]
    assert FAILED not in chain.got
    assert chain.asked == [attempts, 1]
    assert chain.upstreams[1].requests[0].model == "b there"
    assert next(one for one in chain.got if isinstance(one, Answering)).code == code
    assert chain.counted.fallbacks == [("a", "b", code)]
    assert chain.counted.retries == [("a", code)] * (attempts - 1)


async def test_a_retry_that_works_is_no_takeover() -> None:
    chain = Chain([[FULL], [[FAILED]], says("third time")], [says("no")])
    assert (await chain.call())[0] == Text("third time")
    assert chain.who == ("a", None)
    assert chain.asked == [3, 0]


@pytest.mark.parametrize(
    "shown", [Text("so"), Reasoning("hm"), Refusal("no"), CallFragment(0, "f", "")]
)
@pytest.mark.parametrize("end", [FAILED, Finished(reason="incomplete")])
async def test_what_fails_after_something_was_shown_is_not_hidden(
    shown: ModelEvent, end: Finished
) -> None:
    for script in ([[shown], [end]], [[shown, end]]):
        chain = Chain([script], [says("no")])
        assert await chain.call() == [shown, end]
        assert chain.asked == [1, 0]


async def test_a_stream_that_raises_after_something_was_shown_is_not_made_again() -> (
    None
):
    chain = Chain([[[Text("so")], FULL]], [says("no")])
    assert not (await chain.failure()).retried
    assert Text("so") in chain.got
    assert chain.asked == [1, 0]


async def test_a_stream_that_hangs_after_something_was_shown_is_the_turns_business() -> (
    None
):
    chain = Chain([[[Text("so")], 10 * SECONDS, [STOP]]], [says("no")])
    assert await chain.call() == [Text("so"), STOP]
    assert chain.asked == [1, 0]


async def test_an_empty_answer_is_an_answer() -> None:
    for reason in ("stop", "length", "content_filter", "tool_calls"):
        end = Finished(reason=reason)  # type: ignore[arg-type]
        chain = Chain([[[end]]], [says("no")])
        assert await chain.call() == [end]
        assert chain.who == ("a", None)


async def test_what_a_filter_says_is_the_answer() -> None:
    chain = Chain([[FILTERED]], [says("anything")])
    assert (await chain.failure()).code == "content_filter"
    assert chain.asked == [1, 0]


async def test_signs_of_life_go_through_but_put_nothing_off() -> None:
    alive: list[Step] = [step for _ in range(30) for step in ([], 1.0)]
    chain = Chain([[*alive, [Text("late")]]], [says("hi")])
    began = anyio.current_time()
    await chain.call()
    assert anyio.current_time() - began == pytest.approx(SECONDS, abs=0.01)
    assert chain.batches == SECONDS + 2
    assert [e.code for e in chain.got if isinstance(e, Answering)] == [
        "upstream_timeout"
    ]


async def test_the_time_to_first_token_is_that_of_the_one_who_answered() -> None:
    chain = Chain([[5.0, FULL]], [[3.0, *says("hi")]])
    await chain.call()
    (said,) = [event for event in chain.got if isinstance(event, Answering)]
    assert said.seconds == pytest.approx(3.0, abs=0.01)


async def test_attempts_and_waits_share_the_time_to_first_token() -> None:
    # 8 s, a wait, 8 s, a wait, and 3 s of the third attempt.
    chain = Chain([[8.0, FULL]], [says("hi")])
    chain.upstreams[0].scripts = [[8.0, FULL]]
    began = anyio.current_time()
    await chain.call()
    assert anyio.current_time() - began == pytest.approx(SECONDS, abs=0.01)
    assert chain.asked == [3, 1]
    assert chain.counted.fallbacks == [("a", "b", "upstream_timeout")]


async def test_nobody_waits_long_for_one_while_there_is_another() -> None:
    asks_for = LONGEST_WAIT_SECONDS + 0.1
    patient = Failure(
        code="upstream_rate_limited",
        message="slow down",
        retryable=True,
        retry_after_seconds=asks_for,
    )
    chain = Chain([[patient]], [[patient], says("hi")])
    began = anyio.current_time()
    await chain.call()
    assert chain.asked == [1, 2], "the last one is waited for"
    assert anyio.current_time() - began == pytest.approx(asks_for + 0.25, abs=0.01)


async def test_a_wait_that_ends_too_late_is_none() -> None:
    late = Failure(
        code="upstream_unavailable",
        message="later",
        retryable=True,
        retry_after_seconds=SECONDS - 0.1,
    )
    chain = Chain([[WRONG]], [[late]])
    began = anyio.current_time()
    await chain.failure()
    assert anyio.current_time() - began < 0.1
    assert chain.asked == [1, 1]


async def test_all_fail_and_the_last_word_counts_once() -> None:
    chain = Chain([[FULL]], [[FORBIDDEN]])
    failure = await chain.failure()
    assert (failure.code, failure.message) == ("upstream_auth", "no")
    assert failure.retryable, "the first may be well again"
    assert failure.retried, "the turn is not to make the call again"
    assert chain.got == []
    chain = Chain([[WRONG]], [[FORBIDDEN]])
    assert not (await chain.failure()).retryable


async def test_the_whole_takes_no_longer_than_its_parts() -> None:
    chain = Chain([[9999.0]], [[[], 9999.0]], [[9999.0]])
    began = anyio.current_time()
    failure = await chain.failure()
    assert failure.code == "upstream_timeout"
    assert chain.provider.first_token_seconds == 3 * SECONDS
    assert anyio.current_time() - began == pytest.approx(3 * SECONDS, abs=0.01)


class Late:
    """Gives its first token right after its time is over, in the same step."""

    def __init__(self) -> None:
        self.told = False

    def stream(self, _request: Any) -> Any:
        late = self

        class Stream:
            async def __aenter__(self) -> Any:
                return self

            async def __aexit__(self, *_: object) -> None:
                pass

            async def pump(self, sink: Any) -> None:
                try:
                    await anyio.sleep_forever()
                finally:
                    late.told = True
                    sink([Text("too late")])

        return Stream()


async def test_a_token_that_comes_as_its_time_is_over_is_not_shown() -> None:
    chain = Chain([[9999.0]], [says("hi")])
    late = Late()
    first, second = chain.provider._candidates
    first = Candidate(
        name="a", provider=late, model="a", first_token_seconds=1, breaker=first.breaker
    )
    chain.provider = Fallback(
        [first, second], metrics=chain.counted, jitter=lambda: 0.5
    )
    assert await chain.call() == [Text("hi"), STOP]
    assert late.told
    assert chain.who == ("b", "upstream_timeout")


async def test_a_defect_is_not_hidden_and_blames_nobody() -> None:
    class Broken:
        def stream(self, _request: Any) -> Any:
            raise KeyError("defect")

    chain = Chain([[FULL]], [says("hi")], failures=1)
    first, second = chain.provider._candidates
    broken = Candidate(
        name="a", provider=Broken(), model="a", first_token_seconds=1,
        breaker=first.breaker,
    )  # fmt: skip
    chain.provider = Fallback(
        [broken, second], metrics=chain.counted, jitter=lambda: 0.5
    )
    with pytest.raises(KeyError):
        await chain.call()
    assert first.breaker.state(anyio.current_time()) == "closed"


SCRIPTS = st.sampled_from(
    [
        [FULL],
        [FORBIDDEN],
        [[FAILED]],
        [2.0, FULL],
        [9999.0],
        [[Text("x")], [FAILED]],
        [[Text("x")], 3.0, [STOP]],
        [[STOP]],
        [[Finished(reason="incomplete")]],
    ]
)


@settings(deadline=None)
@given(st.lists(st.lists(SCRIPTS, min_size=1, max_size=4), min_size=1, max_size=3))
def test_an_answer_is_of_one_upstream_whole_and_the_total_is_bounded(
    scripts: list[list[list[Step]]],
) -> None:
    async def story() -> None:
        chain = Chain(*scripts)
        began = anyio.current_time()
        answered = True
        try:
            events = await chain.call()
        except UpstreamError:
            answered, events = False, []
        took = anyio.current_time() - began
        assert took <= len(scripts) * SECONDS + 3.1
        assert all(asked <= 3 for asked in chain.asked)
        if not answered:
            assert chain.got == []
            assert all(chain.asked)
            return
        name, code = chain.who
        index = "abc".index(name)
        assert (code is None) == (index == 0)
        assert chain.asked[index + 1 :] == [0] * (len(scripts) - index - 1)
        played = scripts[index]
        last = played[min(chain.asked[index], len(played)) - 1]
        assert events == [
            event for step in last if isinstance(step, list) for event in step
        ]

    clock = trio.testing.MockClock(autojump_threshold=0)
    anyio.run(story, backend="trio", backend_options={"clock": clock})
