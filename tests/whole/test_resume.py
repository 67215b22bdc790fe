"""Resume through a bad network, with real sockets."""

import random
from collections import defaultdict
from pathlib import Path

import anyio
import pytest

from tests.fakes.proxy import proxy, random_faults
from tests.fakes.server import ServerProcess, server
from tests.fakes.wire import Copy, wire


async def test_five_thousand_missed_tokens_are_a_few_frames(
    running: ServerProcess, record_property: object
) -> None:
    config = {"model": "demo/long:tokens=5000,tokens_per_second=0"}
    async with wire(running.url) as writer:
        await writer.open("c", config=config)
        copies: dict[str, Copy] = defaultdict(Copy)
        async with wire(running.url, copies) as reader:
            await reader.open("c")
        reply = await writer.command("send", conversation="c", content="go")
        await writer.done("c", reply["turn"])
        async with wire(running.url, copies) as reader:
            before = reader.bytes
            began = anyio.current_time()
            await reader.open("c")
            await reader.done("c", reply["turn"])
            took = (anyio.current_time() - began) * 1000
            deltas = [frame for frame in reader.frames if frame["type"] == "delta"]
            copies["c"].prove()
            assert len(deltas) <= 5
            print(f"{len(deltas)} frames, {reader.bytes - before} bytes, {took:.1f} ms")


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(3))
async def test_a_client_behind_a_network_that_cuts(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    names = [f"c{number}" for number in range(chance.randint(1, 20))]
    copies: dict[str, Copy] = defaultdict(Copy)
    config = {"model": "demo/long:tokens=600,tokens_per_second=300"}
    env = {"WSSERVER_MAX_ACTIVE_TURNS": "64"}
    async with (
        server("--store", "sqlite", folder=tmp_path, env=env) as running,
        proxy(running.url) as network,
    ):
        network.fault = random_faults(seed, 12_000)
        connections = 0
        with anyio.fail_after(90):
            while not all(copies[name].dones for name in names):
                connections += 1
                try:
                    async with wire(network.url(running.url), copies) as client:
                        for name in names:
                            await client.send(
                                type="open",
                                id=f"o{connections}-{name}",
                                conversation=name,
                                config=config,
                                **(
                                    {
                                        "after": copies[name].last,
                                        "epoch": copies[name].epoch,
                                    }
                                    if copies[name].epoch
                                    else {}
                                ),
                            )
                            # Sent again after every reconnect: it has effect once.
                            await client.send(
                                type="send", id="s", conversation=name, content="go"
                            )
                        await client.until(
                            lambda client=client: all(copies[n].dones for n in names),
                            60,
                        )
                except* (AssertionError, OSError, EOFError) as group:
                    wrong = [
                        error
                        for error in group.exceptions
                        if isinstance(error, AssertionError)
                        and "closed with" not in str(error)
                    ]
                    if wrong:
                        raise
        assert network.connections > 2
        fresh: dict[str, Copy] = defaultdict(Copy)
        async with wire(running.url, fresh) as reader:
            for name in names:
                await reader.open(name)
                await reader.until(lambda name=name: fresh[name].dones)
                assert fresh[name].texts == copies[name].texts
                copies[name].prove()
                kinds = [event["type"] for event in fresh[name].events]
                assert kinds.count("message") == kinds.count("done") == 1
