"""kill -9 at random moments: what anybody saw is there, every turn ends once."""

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fakes.server import server
from tests.fakes.wire import Copy, wire

KILLS_PER_RUN = 5
CONVERSATIONS = ("a", "b", "c")


def flat(events: list[dict[str, Any]]) -> dict[int, tuple[str, str]]:
    """Returns what each number holds: its type, and its text or all of it.

    A merged delta is laid at its last number; texts are compared joined.
    """
    return {event["seq"]: (event["type"], event.get("text", "")) for event in events}


def same(seen: Copy, again: Copy) -> None:
    """What was seen is in the log under its numbers, to the letter."""
    for turn in seen.starts:
        kept = again.texts[turn]
        if turn not in again.cuts:
            assert kept.startswith(seen.texts[turn]), turn
    known = {event["seq"]: event for event in again.events if "text" not in event}
    for event in seen.events:
        if event["type"] not in ("delta", "reasoning", "skip", "done", "cut"):
            assert known[event["seq"]] == event
        if event["type"] == "done":
            assert known.get(event["seq"], again.dones[event["turn"]]) == event


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(8))
async def test_nothing_seen_is_lost_and_every_turn_ends_once(
    seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    copies: dict[str, Copy] = defaultdict(Copy)
    sent = 0
    for _ in range(KILLS_PER_RUN):
        async with server("--store", "sqlite", folder=tmp_path) as running:
            fresh: dict[str, Copy] = defaultdict(Copy)
            async with wire(running.url, fresh) as reader:
                for name in copies:
                    await reader.open(name)
                    copy = fresh[name]
                    await reader.until(
                        lambda copy=copy, name=name: any(
                            frame["type"] == "caught_up"
                            and frame["conversation"] == name
                            for frame in reader.controls
                        )
                    )
                    same(copies[name], copy)
                    assert copy.last >= copies[name].last
                    for turn in copy.starts - {max(copy.starts)}:
                        assert turn in copy.dones
                    copy.prove()
            async with wire(running.url, copies) as client:
                for name in CONVERSATIONS:
                    reply = await client.open(name)
                    assert reply["outcome"] in ("created", "replay")
                    config = {"model": "demo/long:tokens_per_second=400"}
                    await client.command("configure", conversation=name, config=config)
                    sent += 1
                    await client.command(
                        "send",
                        conversation=name,
                        content=f"message {sent}",
                        id=f"s{sent}",
                    )
                with anyio.move_on_after(chance.uniform(0.0, 0.4)):
                    await client.closed()
                await running.kill()
    async with (
        server("--store", "sqlite", folder=tmp_path) as running,
        wire(running.url, copies) as client,
    ):
        for name in CONVERSATIONS:
            await client.open(name)
            await client.command("interrupt", conversation=name, keep="generated")
        for name, copy in copies.items():
            await client.until(lambda copy=copy: copy.starts == set(copy.dones))
            copy.prove()
            reasons = {copy.dones[turn].get("reason") for turn in copy.starts}
            assert "server_restarted" in reasons, name
            kinds = [event["type"] for event in copy.events]
            assert kinds.count("start") == kinds.count("done") == kinds.count("usage")
