"""A name that is deleted and used again on a real store, killed step by step.

A program, as it forks: a process that has no threads yet forks for each life. In a
life one client makes a conversation, another deletes it while it is answered, the
first makes it anew, and the second sends its `delete` again. The life ends by SIGKILL
as a step of the event loop begins; the next one looks at what is left. Prints what is
wrong, and how many steps there are.
"""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path

import anyio
import structlog

from tests.connections.wire import Client, connected
from tests.fakes.rig import Rig, rig
from tests.fakes.scripted import ScriptedProvider, Step, says
from wsserver.engine.model import Text
from wsserver.log.store import Write
from wsserver.stores.open import open_store

Told = Callable[[str, str], None]
"""Takes what a client was told, or is about to say, and of which epoch."""

NAME = "c"
ENDLESS: list[Step] = [*([Text(f"{n} ")] for n in range(20)), 1000.0]


async def story(r: Rig, told: Told) -> None:
    """What happens until the kill."""
    async with connected(r, name="conn1") as one, connected(r, name="conn2") as other:
        first = await made(one, told)
        await other.ask("open", conversation=NAME)
        await other.frame("delta")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(deletes, other, first, told)
            assert (await one.frame("error"))["gone"] == NAME
            told("gone", first)
        second = await made(one, told)
        await deletes(other, first, told)
        await one.frame("done")
        told("done", second)


async def deletes(client: Client, epoch: str, told: Told) -> None:
    """Deletes the conversation of an epoch."""
    told("deletes", epoch)
    reply = await client.ask("delete", id="d", conversation=NAME, epoch=epoch)
    assert reply["outcome"] == "deleted"
    told("gone", epoch)


async def made(client: Client, told: Told) -> str:
    """Makes the conversation and says something in it; returns its epoch."""
    epoch: str = (await client.ask("open", conversation=NAME))["epoch"]
    told("made", epoch)
    await client.ask("send", conversation=NAME, content="hi")
    told("said", epoch)
    return epoch


async def look(known: list[tuple[str, str]], r: Rig, told: Told) -> None:
    """Says what is left that should not be, or is not that should be."""
    gone = [epoch for what, epoch in known if what == "gone"]
    deleted = [epoch for what, epoch in known if what == "deletes"]
    stays = [epoch for what, epoch in known if what == "made" and epoch not in deleted]
    async with connected(r) as client:
        reply = await client.ask("open", conversation=NAME, after=0)
        found: str = reply.get("epoch", "")
        if found in gone:
            told("came back", found)
        if stays and found != stays[-1]:
            told("is lost", stays[-1])
        if ("said", found) in known and not reply["head"]:
            told("lost its message", found)
        for epoch in deleted:
            again = await client.ask("delete", id="d", conversation=NAME, epoch=epoch)
            error = again.get("error", {"code": "", "param": ""})
            if found == epoch and error["code"]:
                told("is not deleted", epoch)
            if stays and error.get("param") != "$.epoch":
                told("is deleted by what meant another", found)
        if stays and not (await client.ask("open", conversation=NAME, after=0))["ok"]:
            told("was deleted", found)


async def serve(path: Path, then: Callable[[Rig], Awaitable[None]]) -> None:
    """Runs one life to its end."""
    store = await open_store(path, durability="process")
    commit = store.commit

    async def slow(writes: Sequence[Write], now: float) -> None:
        for _ in range(12):  # so that there are moments to be killed at
            await anyio.lowlevel.checkpoint()
        await commit(writes, now)

    store.commit = slow
    provider = ScriptedProvider(ENDLESS, says("Hello ", "again"))
    async with rig(provider, store) as r:
        await r.directory.recover()
        await then(r)
        await r.committer.flush()
    await store.close()


def life(
    path: Path, then: Callable[[Rig, Told], Awaitable[None]], step: int = 0
) -> tuple[list[tuple[str, str]], bool]:
    """Runs a life in a process that is killed at a step; 0 for never.

    Returns:
        What was told, and whether it lived to its end.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        if step:
            kill_at(step)

        def told(what: str, epoch: str) -> None:
            os.write(writing, f"{what}\t{epoch}\n".encode())

        anyio.run(serve, path, lambda r: then(r, told))
        os._exit(0)
    os.close(writing)
    with open(reading) as lines:
        known = [tuple(line.rstrip("\n").split("\t")) for line in lines]
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    return [(what, epoch) for what, epoch in known], status == 0


def kill_at(step: int) -> None:
    """Kills this process as the event loop begins so many of its steps."""
    steps = count(1)
    run = asyncio.Handle._run  # type: ignore[attr-defined]

    def counted(handle: asyncio.Handle) -> None:
        if next(steps) >= step:
            os.kill(os.getpid(), signal.SIGKILL)
        run(handle)

    asyncio.Handle._run = counted  # type: ignore[attr-defined]


def main() -> None:
    """Takes the first step to be killed at, and how many are left out after each."""
    first, apart = int(sys.argv[1]), int(sys.argv[2])
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    for step in count(first, apart):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "s.db"
            known, ended = life(path, story, step)
            wrong, whole = life(path, partial(look, known))
            assert whole
        for what, epoch in wrong:
            print(f"killed at {step}: {epoch} {what}; known was {known}")
        if ended:
            print(f"{step} steps")
            return


if __name__ == "__main__":
    main()
