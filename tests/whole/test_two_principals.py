"""Two principals (L-14): what is foreign and what is unknown are alike, also in time."""

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.fakes.server import ServerProcess, server
from tests.fakes.strangers import in_own, masked, on_conversation
from tests.fakes.wire import wire

ALICE, BOB = "alice-has-this-key", "bob-has-this-key"
SAMPLES = 25
UNANSWERED = {"ack", "tool_progress", "a call's progress"}


class Bob:
    """Says frames and times their answers."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self._count = 0

    async def say(self, frame: dict[str, Any], *, answered: bool = True) -> list[str]:
        """Returns the answer, and whatever else comes of it."""
        self._count += 1
        frame = {"id": f"b{self._count}", **frame}
        told: list[str] = []
        await self.socket.send(orjson.dumps(frame).decode())
        with anyio.fail_after(10):
            while answered and '"type":"reply"' not in (told or [""])[-1]:
                told.append(str(await self.socket.recv()))
            end = f'"t":"{self._count}"'
            await self.socket.send('{"type":"ping",' + end + "}")
            while end not in (told or [""])[-1]:
                told.append(str(await self.socket.recv()))
        return told[:-1]

    async def timed(
        self, frame: dict[str, Any], *ids: str, answered: bool
    ) -> tuple[list[str], float]:
        """Returns what came, without the ids, and how long that took."""
        began = anyio.current_time()
        told = await self.say(frame, answered=answered)
        return masked(told, *ids), anyio.current_time() - began


async def alices(running: ServerProcess) -> tuple[list[str], dict[str, Any]]:
    """Lets Alice have conversations; returns their ids, and what one could know."""
    names = [f"alices-{number:02}" for number in range(SAMPLES)]
    known: dict[str, Any] = {}
    async with wire(running.url, token=ALICE) as client:
        for name in names:
            opened = await client.open(name, config={"model": "demo/echo"})
            reply = await client.command(
                "send", conversation=name, content="hello", id="m1"
            )
            await client.done(name, reply["turn"])
            known = {"epoch": opened["epoch"], "turn": reply["turn"]}
    return names, known


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_no_command_tells_a_foreign_id_from_an_unknown_one(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    keys = anyio.Path(tmp_path / "keys")
    await keys.write_text(f"alice:{ALICE}\nbob:{BOB}\n")
    env = {"WSSERVER_MAX_FRAMES_PER_SECOND": "5000"}
    flags = ("--store", "sqlite", "--auth-keys-file", str(keys))
    worst = 1.0
    async with server(*flags, folder=tmp_path, env=env) as running:
        hers, known = await alices(running)
        nobodys = [name.replace("alices", "nobody") for name in hers]
        headers = {"Authorization": f"Bearer {BOB}"}
        async with connect(
            running.url, compression=None, additional_headers=headers
        ) as socket:
            bob = Bob(socket)
            await socket.send('{"type":"hello","protocol":1}')
            assert "welcome" in str(await socket.recv())
            await bob.say({"type": "open", "conversation": "own"})

            def commands(name: str, *, foreign: bool) -> dict[str, dict[str, Any]]:
                own = in_own(
                    "own",
                    name=f"{name}-own",
                    turn=known["turn"] + (0 if foreign else 90),
                    send="m1" if foreign else "m9",
                    call="call_3.0" if foreign else "call_9.0",
                )
                return own | on_conversation(name, **known)

            for case in commands("c", foreign=True):
                results: dict[bool, list[tuple[list[str], float]]] = {
                    True: [],
                    False: [],
                }
                for number in range(SAMPLES):
                    # In turns, so that a moment's noise hits both.
                    for foreign in (True, False) if number % 2 else (False, True):
                        name = (hers if foreign else nobodys)[number]
                        frame = commands(name, foreign=foreign)[case]
                        results[foreign].append(
                            await bob.timed(
                                frame, name, answered=case not in UNANSWERED
                            )
                        )
                foreign, unknown = (
                    [told for told, _ in results[which]] for which in (True, False)
                )
                assert foreign == unknown, case
                medians = [
                    statistics.median(seconds for _, seconds in results[which])
                    for which in (True, False)
                ]
                worst = max(worst, max(medians) / min(medians))
                assert max(medians) < 3 * min(medians) + 0.002, case
        # And nothing of all that has touched what is hers.
        async with wire(running.url, token=ALICE) as client:
            for name in hers:
                await client.open(name)
                await client.until(lambda name=name: client.copies[name].dones)
                client.copies[name].prove()
    record_property("worst_ratio_of_medians", worst)
