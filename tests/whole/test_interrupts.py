"""An interrupt in every phase: answered at once, and the upstream is closed."""

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fakes.replies import call_events, streamed, text_events
from tests.fakes.server import ServerProcess, server
from tests.fakes.upstream import FakeUpstream, Reply
from tests.fakes.wire import Wire, wire

TOOL: dict[str, Any] = {"name": "look", "parameters": {"type": "object"}}

PHASES: dict[str, Callable[[], Reply]] = {
    "waiting for headers": lambda: Reply(before_headers_seconds=60.0),
    "waiting for the first byte": lambda: Reply(before_body_seconds=60.0),
    "waiting for the first token": lambda: streamed(
        [b": alive\n\n"] * 600, between_writes_seconds=0.1
    ),
    "retry wait": lambda: Reply(
        body=b'{"error":{"message":"slow down"}}',
        status=429,
        content_type="application/json",
        headers={"Retry-After": "60"},
    ),
    "streaming": lambda: streamed(
        text_events(*["word "] * 500), between_writes_seconds=0.02
    ),
}


async def begin(client: Wire, name: str, **config: Any) -> int:
    """Opens a conversation and sends; returns the turn."""
    if name not in client.copies:
        await client.open(name, config=config or None, handles=["look"])
    reply = await client.command("send", conversation=name, content="go")
    return reply["turn"]


async def stop(client: Wire, name: str, turn: int, **members: Any) -> dict[str, Any]:
    """Interrupts and checks what the protocol promises of the reply."""
    reply = await client.command("interrupt", conversation=name, **members)
    assert reply["outcome"] == "interrupted"
    assert reply["turn"] == turn
    at = client.frames.index(reply)
    done = await client.done(name, turn)
    assert done["status"] == "interrupted"
    assert done["reason"] == "by_client"
    later = [frame["type"] for frame in client.frames[at:]]
    assert not {"delta", "reasoning", "tool_delta"} & set(later)
    client.copies[name].prove()
    return done


@pytest.mark.parametrize("phase", PHASES)
async def test_interrupt_in_each_phase(
    phase: str,
    running: ServerProcess,
    upstream: FakeUpstream,
    record_property: Callable[[str, object], None],
) -> None:
    replies: list[float] = []
    closes: list[float] = []
    stops: list[float] = []
    async with wire(running.url) as client:
        for round_ in range(8):
            upstream.script(PHASES[phase]())
            turn = await begin(client, f"c{round_}")
            request = (await upstream.wait_for_requests(round_ + 1))[-1]
            if phase == "streaming":
                await client.until(
                    lambda r=round_, t=turn: client.copies[f"c{r}"].texts[t]
                )
            elif phase == "retry wait":
                await request.answered.wait()
                await anyio.sleep(0.05)
            began = anyio.current_time()
            done = await stop(client, f"c{round_}", turn)
            replies.append((anyio.current_time() - began) * 1000)
            if phase != "retry wait":
                with anyio.fail_after(5):
                    await request.disconnected.wait()
                assert request.disconnected_at is not None
                closes.append((request.disconnected_at - began) * 1000)
                stops.append(done["timing"]["stop_ms"])
            usage = [
                e for e in client.copies[f"c{round_}"].events if e["type"] == "usage"
            ]
            assert usage[0]["estimated"] is True
            if phase == "streaming":
                assert usage[0]["output_tokens"] > 0
    record_property("reply_ms_median", statistics.median(replies))
    record_property("close_ms_median", statistics.median(closes or [0.0]))
    assert statistics.median(replies) < 300
    assert statistics.median(closes or [0.0]) < 300
    assert statistics.median(stops or [0.0]) < 300
    assert len(upstream.requests) == 8


async def test_interrupt_while_connecting(tmp_path: Path) -> None:
    async with FakeUpstream(accepts=False) as upstream:
        env = {"OPENAI_BASE_URL": upstream.base_url}
        async with (
            server("--store", "memory", folder=tmp_path, env=env) as running,
            wire(running.url) as client,
        ):
            turn = await begin(client, "c")
            await anyio.sleep(0.2)
            began = anyio.current_time()
            await stop(client, "c", turn)
            assert anyio.current_time() - began < 1


async def test_interrupt_while_a_tool_is_awaited(
    running: ServerProcess, upstream: FakeUpstream
) -> None:
    calls = call_events(
        {"id": "u1", "name": "look", "arguments": '{"at":"sky"}'},
        {"id": "u2", "name": "look", "arguments": '{"at":"sea"}'},
    )
    upstream.script(streamed(calls), streamed(text_events("fine")))
    async with wire(running.url) as client:
        turn = await begin(client, "c", tools=[TOOL])
        await client.until(
            lambda: sum(f["type"] == "tool_request" for f in client.controls) == 2
        )
        asked = [f for f in client.controls if f["type"] == "tool_request"]
        first = asked[0]["call"]
        reply = await client.command(
            "tool_result", conversation="c", call=first, output="blue"
        )
        assert reply["outcome"] == "accepted"
        began = anyio.current_time()
        await stop(client, "c", turn)
        assert anyio.current_time() - began < 1
        settled = {
            event["call"]: event["status"]
            for event in client.copies["c"].events
            if event["type"] == "tool_result"
        }
        assert settled == {first: "ok", asked[1]["call"]: "cancelled"}
        late = await client.command(
            "tool_result", conversation="c", call=asked[1]["call"], output="wet"
        )
        assert late["outcome"] == "cancelled"
        turn = await begin(client, "c")
        assert (await client.done("c", turn))["status"] == "completed"


async def test_a_queued_send_is_taken_back(
    running: ServerProcess, upstream: FakeUpstream
) -> None:
    upstream.script(
        streamed(text_events("one"), before_body_seconds=0.3),
        streamed(text_events("three")),
    )
    async with wire(running.url) as client:
        first = await begin(client, "c")
        for number in ("two", "three"):
            reply = await client.command(
                "send", conversation="c", content=number, id=number
            )
            assert reply["outcome"] == "queued"
        reply = await client.command("interrupt", conversation="c", send="two")
        assert reply["outcome"] == "dequeued"
        assert (await client.done("c", first))["status"] == "completed"
        copy = client.copies["c"]
        await client.until(lambda: len(copy.dones) == 3)
        ends = [done["status"] for done in copy.dones.values()]
        assert ends == ["completed", "interrupted", "completed"]
        said = [message["content"] for message in upstream.requests[1].json["messages"]]
        assert said == ["go", "one", "three"]


async def test_a_send_is_taken_back_before_it_arrives(
    running: ServerProcess, upstream: FakeUpstream
) -> None:
    async with wire(running.url) as client:
        await client.open("c")
        reply = await client.command("interrupt", conversation="c", send="later")
        assert reply["outcome"] == "pre_cancelled"
        reply = await client.command("send", conversation="c", content="hi", id="later")
        done = await client.done("c", reply["turn"])
        assert done["status"] == "interrupted"
        assert upstream.requests == []


@pytest.mark.timeout(60)
async def test_two_interrupts_in_a_row_leave_the_pool_whole(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    env = {"OPENAI_BASE_URL": upstream.base_url, "WSSERVER_UPSTREAM_POOL_SIZE": "4"}
    async with (
        server("--store", "memory", folder=tmp_path, env=env) as running,
        wire(running.url) as client,
    ):
        for round_ in range(40):
            upstream.script(list(PHASES.values())[round_ % 3 or 4]())
            turn = await begin(client, "c")
            await upstream.wait_for_requests(round_ + 1)
            for number in (1, 2):
                await client.send(
                    type="interrupt", id=f"i{round_}-{number}", conversation="c"
                )
            assert (await client.done("c", turn))["status"] == "interrupted"
        upstream.script(streamed(text_events("still", " here")))
        for number in range(8):
            await client.open(f"p{number}")
            await client.send(
                type="send", id="s", conversation=f"p{number}", content="go"
            )
        for number in range(8):
            copy = client.copies[f"p{number}"]
            await client.until(lambda copy=copy: copy.dones)
            assert next(iter(copy.dones.values()))["status"] == "completed"
