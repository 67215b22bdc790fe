"""What is counted of turns."""

import anyio

from protocol.content import Tool
from tests.fakes.counted import Recorder
from tests.fakes.scripted import Step, says
from tests.turns.talk import asks, call, settled, talking
from wsserver.engine.model import Failure, Finished, Text

BUSY = Failure(code="upstream_unavailable", message="", retryable=True)


async def test_a_turn_is_counted_once_with_all_it_took() -> None:
    error: list[Step] = [[Finished(reason="error", failure=BUSY)]]
    scripts: list[list[Step]] = [[BUSY], error, [[Text("a")], asks(call(0))], says("b")]
    async with talking(*scripts, tools=[Tool(name="weather")]) as talk:
        metrics = Recorder()
        talk.rig.services.metrics = metrics
        turn = talk.send().turn
        await anyio.sleep(20.0)
        talk.result(f"call_{turn}.0")
        done = await talk.done()
        assert metrics.of("turn_started") == [["test"]]
        [[model, counted, code]] = metrics.of("turn_ended")
        assert (model, counted, code) == ("test", done, None)
        [[model, answering, counted, usage, code]] = metrics.of("turn_took")
        assert (model, answering, counted, code) == ("test", "test", done, None)
        assert usage.model_calls == 4
        [[model, seconds]] = metrics.of("first_token")
        assert model == "test"
        assert abs(seconds * 1000 - (done.timing.ttft_ms or 0)) < 0.01
        assert metrics.of("upstream_retry") == [["test", BUSY.code]] * 2
        [[status, seconds]] = metrics.of("tool_done")
        assert status == "ok"
        assert 15.0 < seconds < 20.0
        assert metrics.of("interrupted") == []


async def test_an_interrupt_is_counted_with_its_time() -> None:
    async with talking([[Text("a")], 1000.0]) as talk:
        metrics = Recorder()
        talk.rig.services.metrics = metrics
        talk.send()
        await settled()
        talk.interrupt()
        await talk.done()
        [[phase, seconds]] = metrics.of("interrupted")
        assert phase == "streaming"
        assert 0 <= seconds < 1.0


async def test_a_turn_that_never_reaches_a_model_is_counted_from_end_to_end() -> None:
    async with talking([[Text("a")], 1000.0]) as talk:
        metrics = Recorder()
        talk.rig.services.metrics = metrics
        talk.send(id="one")
        talk.send(id="two")
        await settled()
        talk.interrupt(send="two")
        talk.interrupt()
        await settled()
        assert metrics.of("turn_started") == [["test"]] * 2
        assert len(metrics.of("turn_took")) == 1
        ended = [(done.status, done.reason) for _, done, _ in metrics.of("turn_ended")]
        assert ended == [("interrupted", "by_client")] * 2
