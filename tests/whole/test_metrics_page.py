"""What `/metrics` says of things that really happened."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fakes.replies import DONE, call_events, delta, streamed, text_events, usage
from tests.fakes.scrape import Scrape, scrape, scraped
from tests.fakes.server import ServerProcess, server
from tests.fakes.upstream import FakeUpstream, Reply
from tests.fakes.wire import Wire, wire

LOOK: dict[str, Any] = {"name": "look", "parameters": {"type": "object"}}
GEN_AI = "gen_ai_client_operation"


async def turn(client: Wire, name: str = "c") -> dict[str, Any]:
    """Has a turn from its message to its end; returns the `done`."""
    if name not in client.copies:
        await client.open(name)
    reply = await client.command("send", conversation=name, content="go")
    return await client.done(name, reply["turn"])


def ended(count: int) -> Callable[[Scrape], bool]:
    return lambda seen: seen.value("wsserver_turns_total") == count


async def test_the_role_chunk_is_no_first_token(
    running: ServerProcess, upstream: FakeUpstream
) -> None:
    """L-19, in the metrics and in `done`."""
    upstream.script(Reply(body=b"data: [DONE]\n\n"))
    async with wire(running.url) as client:
        await turn(client)  # the first call of all may take seconds
        role = delta(role="assistant", content="")
        rest = b"".join([delta(content="hi"), delta("stop"), usage(7, 1), DONE])
        upstream.script(
            Reply(body=role + rest, splits=[len(role)], between_writes_seconds=0.5)
        )
        done = await turn(client)
        assert 500 <= done["timing"]["ttft_ms"] < 2_000
        assert 450 <= done["timing"]["upstream_ttft_ms"] < 2_000
        seen = await scraped(running.http, ended(2))
        for name in (
            "wsserver_time_to_first_token_seconds",
            f"{GEN_AI}_time_to_first_chunk_seconds",
        ):
            # The first turn had no token, and so no time to one.
            assert seen.value(f"{name}_count") == 1
            assert 0.45 <= seen.value(f"{name}_sum") < 2


async def test_an_answer_that_something_gathered_is_seen(
    running: ServerProcess, upstream: FakeUpstream
) -> None:
    """L-18: an upstream behind a proxy that buffers, and the same without."""
    words = text_events(*["word "] * 40)
    lump = Reply(body=b"".join(words), before_body_seconds=0.4)
    upstream.script(Reply(body=b"data: [DONE]\n\n"), streamed(words), lump)
    name = "wsserver_turns_in_one_lump_total"
    async with wire(running.url) as client:
        await turn(client)
        upstream.script(
            streamed(words, before_body_seconds=0.3, between_writes_seconds=0.005), lump
        )
        await turn(client)
        assert (await scraped(running.http, ended(2))).value(name) == 0
        assert "answer_in_one_lump" not in running.log
        done = await turn(client)
        seen = await scraped(running.http, ended(3))
        assert seen.value(name) == 1
        assert "answer_in_one_lump" in running.log
        timing = done["timing"]
        assert timing["total_ms"] < 1.5 * timing["ttft_ms"]


async def test_what_a_turn_took_is_counted(
    running: ServerProcess, upstream: FakeUpstream
) -> None:
    upstream.script(
        streamed(call_events({"id": "u", "name": "look", "arguments": "{}"})),
        streamed(text_events(*["word "] * 21), between_writes_seconds=0.01),
    )
    async with wire(running.url) as client:
        await client.open("c", config={"tools": [LOOK]}, handles=["look"])
        reply = await client.command("send", conversation="c", content="go")
        await client.until(lambda: client.controls[-1]["type"] == "tool_request")
        request = client.controls[-1]
        await anyio.sleep(0.3)
        await client.command(
            "tool_result", conversation="c", call=request["call"], output=1
        )
        done = await client.done("c", reply["turn"])
        seen = await scraped(running.http, ended(1))
        assert seen.value("wsserver_turns_total", status="completed") == 1
        tool = seen.value("wsserver_tool_seconds_sum", status="ok")
        assert 0.3 <= tool < 0.8
        timing = done["timing"]
        for name, expected in [
            ("wsserver_turn_seconds", timing["total_ms"] / 1000),
            ("wsserver_time_to_first_token_seconds", timing["ttft_ms"] / 1000),
            ("wsserver_time_per_output_token_seconds", timing["tpot_ms"] / 1000),
            ("wsserver_tokens_per_second", timing["tokens_per_s"]),
            (
                f"{GEN_AI}_time_to_first_chunk_seconds",
                timing["upstream_ttft_ms"] / 1000,
            ),
        ]:
            assert seen.value(f"{name}_count") == 1, name
            assert seen.value(f"{name}_sum") == pytest.approx(expected, rel=0.01), name
        output = {"gen_ai_token_type": "output"}
        assert seen.value("gen_ai_client_token_usage_sum", **output) == 26
        assert seen.value("wsserver_commit_seconds_count") > 0
        assert seen.value("wsserver_event_loop_lag_seconds_count") > 0
        assert seen.value("wsserver_connections") == 1


PHASES: dict[str, Reply] = {
    "connecting": Reply(before_headers_seconds=60.0),
    "waiting_first_token": Reply(before_body_seconds=60.0),
    "streaming": streamed(text_events(*["word "] * 500), between_writes_seconds=0.02),
    "waiting_tools": streamed(
        call_events({"id": "u", "name": "look", "arguments": "{}"})
    ),
}


async def test_a_stop_is_counted_by_the_phase_it_found(
    running: ServerProcess, upstream: FakeUpstream
) -> None:
    name = "wsserver_interrupt_stop_seconds"
    async with wire(running.url) as client:
        for number, (phase, reply) in enumerate(PHASES.items(), 1):
            upstream.script(reply)
            await client.open(phase, config={"tools": [LOOK]}, handles=["look"])
            begun = await client.command("send", conversation=phase, content="go")
            await upstream.wait_for_requests(number)
            await anyio.sleep(0.2)
            await client.command("interrupt", conversation=phase)
            await client.done(phase, begun["turn"])
            seen = await scraped(running.http, ended(number))
            assert seen.value(f"{name}_count", phase=phase) == 1
        assert seen.value(f"{name}_count") == len(PHASES)
        assert seen.value(f"{name}_sum") < 0.4
        reason = seen.value("wsserver_turns_total", reason="by_client")
        assert reason == len(PHASES)


async def test_how_clients_come_and_go_is_counted(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    async with server("--store", "memory", folder=tmp_path) as running:
        async with wire(running.url) as client:
            await client.open("c")
            await client.command("open", conversation="c", after=99)
            await client.command("open", conversation="c", after=0, epoch="other")
            await client.command("open", conversation="never", after=3)
            copies = client.copies
        seen = await scraped(
            running.http, lambda s: s.value("wsserver_connections") == 0
        )
        for outcome, reason in [
            ("created", ""),
            ("reset", "seq_ahead"),
            ("reset", "epoch_changed"),
        ]:
            value = seen.value("wsserver_opens_total", outcome=outcome, reason=reason)
            assert value == 1
        assert seen.value("wsserver_connections_closed_total", code="1006") == 1
        async with wire(running.url, copies) as client:
            await client.open("c")
            assert (await scrape(running.http)).value("wsserver_views") == 1
            await client.socket.close()
        seen = await scraped(
            running.http, lambda s: s.value("wsserver_connections") == 0
        )
        assert seen.value("wsserver_opens_total", outcome="replay") == 1
        assert seen.value("wsserver_connections_closed_total", code="1000") == 1
        assert seen.value("wsserver_views") == 0


async def test_one_that_does_not_read_is_seen_to_be_behind(
    running: ServerProcess, upstream: FakeUpstream
) -> None:
    upstream.script(streamed(text_events(*["word " * 400] * 10)))
    async with wire(running.url) as client, wire(running.url) as slow:
        await client.open("c")
        await slow.open("c", window_bytes=4096)
        await turn(client)
        seen = await scraped(running.http, ended(1))
        assert (seen.value("wsserver_views"), seen.value("wsserver_views_behind")) == (
            2,
            1,
        )
        behind = seen.value("wsserver_view_lag_events")
        assert behind == client.copies["c"].last - slow.copies["c"].last
        assert behind > 0
