"""A model that others stand in for: real processes, sockets and upstreams."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fakes.replies import delta, json_reply, streamed, text_events
from tests.fakes.scrape import scrape, scraped
from tests.fakes.server import ServerProcess, server
from tests.fakes.upstream import FakeUpstream, Reply
from tests.fakes.wire import Wire, wire

CONFIG = """\
default_model = "large"
breaker_failures = 2
breaker_window_seconds = 30
breaker_open_seconds = {open_seconds}

[models.large]
base_url = "{large}"
model = "large there"
first_token_timeout_seconds = 0.5
fallback = ["small", "demo/echo"]

[models.small]
base_url = "{small}"
first_token_timeout_seconds = 0.5

[models.patient-large]
base_url = "{large}"

[models.patient-small]
base_url = "{small}"
"""
REFUSES = json_reply({"error": {"message": "bad key"}}, status=401)
BUSY = json_reply(
    {"error": {"message": "full"}}, status=503, headers={"Retry-After": "1"}
)


class House:
    """A server with two upstreams, and a client with one conversation `c`."""

    def __init__(
        self,
        running: ServerProcess,
        client: Wire,
        large: FakeUpstream,
        small: FakeUpstream,
    ) -> None:
        self.running = running
        self.client = client
        self.large = large
        self.small = small

    async def send(self, content: str = "go") -> int:
        reply = await self.client.command("send", conversation="c", content=content)
        return reply["turn"]

    async def turn(self, content: str = "go") -> tuple[str, str, list[Any]]:
        """Has a turn; returns its status, its text and who took over."""
        turn = await self.send(content)
        done = await self.client.done("c", turn)
        copy = self.client.copies["c"]
        copy.prove()
        took = [
            (event["model"], event.get("code"))
            for event in copy.events
            if event["type"] == "takeover" and event["turn"] == turn
        ]
        return done["status"], copy.texts[turn], took


@asynccontextmanager
async def house(folder: Path, open_seconds: float = 30.0) -> AsyncGenerator[House]:
    async with FakeUpstream(strict=True) as large, FakeUpstream(strict=True) as small:
        config = folder / "wsserver.toml"
        await anyio.Path(config).write_text(
            CONFIG.format(
                large=large.base_url, small=small.base_url, open_seconds=open_seconds
            )
        )
        flags = ("--store", "memory", "--config", str(config))
        async with (
            server(*flags, folder=folder) as running,
            wire(running.url) as client,
        ):
            small.script(streamed(text_events("from ", "small")))
            large.script(streamed(text_events("from ", "large")))
            # The first call of all may take seconds.
            for name, upstream in [("large", large), ("small", small)]:
                await client.open(name, config={"model": f"patient-{name}"})
                reply = await client.command("send", conversation=name, content="go")
                await client.done(name, reply["turn"])
                upstream.requests.clear()
            await client.open("c")
            yield House(running, client, large, small)


NO_ANSWER: dict[str, tuple[Reply, str, int]] = {
    "a refusal": (REFUSES, "upstream_auth", 1),
    "a full house": (BUSY, "upstream_unavailable", 1),
    "no headers": (Reply(before_headers_seconds=60.0), "upstream_timeout", 1),
    "headers and no token": (
        streamed([delta(role="assistant", content="")], end="stall"),
        "upstream_timeout",
        1,
    ),
    "comments and no token": (
        streamed([b": alive\n\n"] * 600, between_writes_seconds=0.05),
        "upstream_timeout",
        1,
    ),
    "an error in the stream": (
        Reply(body=b'data: {"error":{"message":"no key","code":401}}\n\n'),
        "upstream_auth",
        1,
    ),
}


@pytest.mark.parametrize("fault", NO_ANSWER)
async def test_the_next_takes_over(fault: str, tmp_path: Path) -> None:
    reply, code, attempts = NO_ANSWER[fault]
    async with house(tmp_path) as a:
        a.large.script(reply)
        assert await a.turn() == ("completed", "from small", [("small", code)])
        start = next(e for e in a.client.copies["c"].events if e["type"] == "start")
        assert start["model"] == "large"
        if code != "upstream_timeout":
            assert len(a.large.requests) == attempts
        for request in a.large.requests:
            with anyio.fail_after(5):
                await (
                    request.disconnected
                    if code == "upstream_timeout"
                    else request.answered
                ).wait()
        assert a.large.requests[0].json["model"] == "large there"
        assert a.small.requests[0].json["model"] == "small"
        seen = await scraped(
            a.running.http, lambda s: s.value("wsserver_turns_total") == 3
        )
        name = "wsserver_upstream_fallbacks_total"
        assert seen.value(name, model="large", to="small", code=code) == 1
        assert (
            seen.value(
                "gen_ai_client_operation_duration_seconds_count",
                gen_ai_request_model="large",
                gen_ai_response_model="small",
            )
            == 1
        )


async def test_the_last_resort_needs_no_network(tmp_path: Path) -> None:
    async with house(tmp_path) as a:
        a.large.script(REFUSES)
        a.small.script(REFUSES)
        status, text, took = await a.turn("hello")
        assert (status, took) == ("completed", [("demo/echo", "upstream_auth")])
        assert "hello" in text


async def test_one_that_keeps_failing_is_passed_over_until_it_is_well(
    tmp_path: Path,
) -> None:
    async with house(tmp_path, open_seconds=1.0) as a:
        a.large.script(REFUSES)
        for _ in range(4):
            assert (await a.turn())[1] == "from small"
        assert len(a.large.requests) == 2
        state = "wsserver_breaker_state"
        assert (await scrape(a.running.http)).value(state, model="large") == 2
        a.large.script(streamed(text_events("from ", "large")))
        await scraped(a.running.http, lambda s: s.value(state, model="large") == 1)
        assert await a.turn() == ("completed", "from large", [])
        assert (await scrape(a.running.http)).value(state, model="large") == 0


async def test_an_interrupt_closes_the_one_that_took_over(tmp_path: Path) -> None:
    async with house(tmp_path) as a:
        a.large.script(REFUSES)
        a.small.script(
            streamed(text_events(*["word "] * 500), between_writes_seconds=0.02)
        )
        turn = await a.send()
        await a.client.until(lambda: a.client.copies["c"].texts[turn])
        reply = await a.client.command("interrupt", conversation="c")
        assert reply["outcome"] == "interrupted"
        assert (await a.client.done("c", turn))["status"] == "interrupted"
        with anyio.fail_after(1):
            await a.small.requests[0].disconnected.wait()


async def test_what_breaks_off_after_it_was_shown_stays_as_it_is(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as a:
        a.large.script(streamed([delta(content="half an ")], end="abort"))
        assert await a.turn() == ("incomplete", "half an ", [])
        assert not a.small.requests
        # The next prompt is one that a strict upstream takes, whoever it is.
        a.large.script(REFUSES)
        assert (await a.turn())[:2] == ("completed", "from small")
        said = [m["content"] for m in a.small.requests[0].json["messages"]]
        assert said == ["go", "half an ", "go"]
