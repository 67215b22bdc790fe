"""A process of a run: `python -m client_demo.load.child`, started by the fleet.

It reads an assignment as a line of JSON and answers with a `Ready`; the next line
starts it, one more stops it. Each second it writes a `Tick`, at the end its `Counts`.
"""

import os
import signal
import sys

import anyio
import msgspec
from msgspec import Struct

from client_demo.keyboard import lines
from client_demo.load.tally import Counts
from client_demo.load.worker import Assignment, Tick, Worker


class Ready(Struct, frozen=True, kw_only=True, tag=True):
    """The process is there and waits for its start."""


class Result(Struct, frozen=True, kw_only=True, tag=True):
    """The process is done.

    Attributes:
        counts: All that it saw.
    """

    counts: Counts


Message = Ready | Tick | Result


def _say(message: Message) -> None:
    """Tells the fleet; where that is gone, nobody."""
    try:
        sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _main() -> None:
    orders = lines(sys.stdin.fileno())
    assignment = msgspec.json.decode(await anext(orders), type=Assignment)
    worker = Worker(assignment, _say)
    _say(Ready())
    await anext(orders)

    async def obey() -> None:
        async for _ in orders:
            worker.stop()
        # The fleet is gone: nobody will read the result.
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(obey)
        await worker.work()
        tasks.cancel_scope.cancel()
    _say(Result(counts=worker.tally.counts()))


if __name__ == "__main__":
    # The terminal's Ctrl-C goes to the fleet, which says what to do. So does a SIGTERM
    # that was meant for all of its group.
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    anyio.run(_main)
