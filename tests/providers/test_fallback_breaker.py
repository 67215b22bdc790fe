"""A model that keeps failing is passed over, and tried again."""

import anyio
import pytest
from structlog.testing import capture_logs

from tests.fakes.clocks import virtual_time  # noqa: F401 - a fixture
from tests.fakes.scripted import Step, says
from tests.providers.chain import FILTERED, FORBIDDEN, FULL, SECONDS, STOP, WRONG, Chain
from tests.providers.upstream_rig import request
from wsserver.engine.model import (
    Text,
    UpstreamError,
)


async def test_one_that_keeps_failing_is_passed_over_then_tried() -> None:
    chain = Chain([[FORBIDDEN]], [says("hi")], failures=2, open_seconds=5)
    for _ in range(4):
        await chain.call()
    assert chain.asked == [2, 4]
    assert chain.who == ("b", "upstream_unavailable")
    assert chain.counted.fallbacks[-1] == ("a", "b", "upstream_unavailable")
    await anyio.sleep(5)
    await chain.call()
    assert chain.asked == [3, 5]
    assert chain.who == ("b", "upstream_auth")
    await anyio.sleep(5)
    chain.upstreams[0].scripts.append(says("well"))
    chain.upstreams[0].requests.extend([request()] * 9)  # on to the last script
    assert (await chain.call())[0] == Text("well")
    assert chain.breakers[0].state(anyio.current_time()) == "closed"


async def test_the_log_says_who_did_not_answer_and_who_is_passed_over() -> None:
    chain = Chain([[FORBIDDEN]], [says("hi")], failures=2)
    with capture_logs() as lines:
        for _ in range(3):
            await chain.call()
    said = [(line["event"], line["upstream"], line.get("code")) for line in lines]
    failed = ("upstream_gave_no_answer", "a", "upstream_auth")
    assert said[:3] == [failed, ("breaker_opened", "a", None), failed]
    assert {line["log_level"] for line in lines} == {"warning"}
    assert "address" in lines[0]


@pytest.mark.parametrize("script", [[WRONG], [FILTERED]])
async def test_what_is_wrong_with_a_request_is_not_the_upstreams_fault(
    script: list[Step],
) -> None:
    chain = Chain([script], [says("hi")], failures=1)
    for _ in range(3):
        try:
            await chain.call()
        except UpstreamError:
            assert script == [FILTERED]
    assert chain.asked[0] == 3


async def test_where_all_are_passed_over_it_is_said_when_to_come_again() -> None:
    chain = Chain([[FORBIDDEN]], [[FULL]], failures=1, open_seconds=5)
    await chain.failure()
    asked = chain.asked
    await anyio.sleep(3)
    failure = await chain.failure()
    assert chain.asked == asked
    assert (failure.code, failure.retryable) == ("upstream_unavailable", True)
    assert failure.retry_after_seconds is not None
    # The first one failed a little earlier than the second.
    assert 1.0 < failure.retry_after_seconds <= 2.0


@pytest.mark.parametrize(
    "script", [[9999.0], [[], 9999.0], [FULL], [[Text("x")], 9999.0]]
)
async def test_a_call_that_is_cancelled_closes_what_is_open_and_blames_nobody(
    script: list[Step],
) -> None:
    chain = Chain([script], [[9999.0]], failures=1)
    for after in (0.1, 0.8, SECONDS - 1):
        with anyio.move_on_after(after):
            await chain.call()
        assert [up.open_calls for up in chain.upstreams] == [0, 0]
        assert chain.breakers[1].state(anyio.current_time()) == "closed"


async def test_a_probe_that_is_cancelled_is_made_again() -> None:
    chain = Chain(
        [[FORBIDDEN], [9999.0], says("well")], [says("hi")], failures=1, open_seconds=5
    )
    await chain.call()
    await anyio.sleep(5)
    with anyio.move_on_after(1):
        await chain.call()
    assert (await chain.call())[0] == Text("well")


async def test_the_probes_first_token_lets_others_in() -> None:
    chain = Chain(
        [[FORBIDDEN], [[Text("s")], 50.0, [STOP]], says("well")],
        [says("hi")],
        failures=1,
        open_seconds=5,
    )
    await chain.call()
    await anyio.sleep(5)
    async with anyio.create_task_group() as tasks:

        async def probe() -> None:
            with anyio.fail_after(100):
                async with chain.provider.stream(request()) as stream:
                    await stream.pump(lambda _: None)

        tasks.start_soon(probe)
        await anyio.sleep(1)
        chain.got = []
        async with chain.provider.stream(request()) as stream:
            await stream.pump(chain.got.extend)
        assert chain.who == ("a", None)
        tasks.cancel_scope.cancel()
