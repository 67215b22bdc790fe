"""Runs a scenario in one process, this one, or in many."""

import sys
from collections.abc import Callable

import anyio
import anyio.abc
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from client_demo.load.child import Message, Ready, Result
from client_demo.load.tally import Counts
from client_demo.load.user import Run
from client_demo.load.worker import Assignment, Tick, Worker
from client_demo.tasks import task_group

CHILD = ("-m", "client_demo.load.child")
_LONGEST_LINE = 2**28
_START_SECONDS = 60.0

_decode = msgspec.json.Decoder(Message).decode
OnTick = Callable[[int, Tick], None]


class FleetError(Exception):
    """A process did not do what it was started for."""


class Fleet:
    """The processes of a run."""

    def __init__(self, run: Run, processes: int, on_tick: OnTick) -> None:
        """Takes what is to be done.

        Args:
            run: What all users have in common.
            processes: How many; one is this one.
            on_tick: Told the number of a process and how it stands.
        """
        self._run = run
        self._processes = processes
        self._on_tick = on_tick
        self._worker: Worker | None = None
        self._children: list[anyio.abc.Process] = []
        self._stopping = anyio.Event()

    def stop(self) -> None:
        """Nobody begins again; who is at it may finish, for a while."""
        self._stopping.set()
        if self._worker is not None:
            self._worker.stop()

    async def work(self) -> list[Counts]:
        """Runs it to its end.

        Raises:
            FleetError: A process ended by itself.
        """
        if self._processes == 1:
            self._worker = Worker(
                Assignment(run=self._run), lambda tick: self._on_tick(0, tick)
            )
            await self._worker.work()
            return [self._worker.tally.counts()]
        try:
            return await self._work_in_children()
        finally:
            with anyio.CancelScope(shield=True):
                for child in self._children:
                    if child.returncode is None:
                        child.kill()
                    await child.aclose()

    async def _work_in_children(self) -> list[Counts]:
        found: dict[int, Counts] = {}
        outputs = [await self._start(index) for index in range(self._processes)]
        try:
            with anyio.fail_after(_START_SECONDS):
                for output in outputs:
                    await self._next(output)
        except TimeoutError:
            raise FleetError(
                f"the processes did not start within {_START_SECONDS:.0f} s: use fewer"
            ) from None
        everything = anyio.Event()

        async def follow(index: int) -> None:
            while index not in found:
                match await self._next(outputs[index]):
                    case Tick() as tick:
                        self._on_tick(index, tick)
                    case Result() as result:
                        found[index] = result.counts
                    case Ready():
                        raise AssertionError("a process is ready once")
            if len(found) == self._processes:
                everything.set()

        async with task_group() as tasks:
            await self._tell("go")
            tasks.start_soon(self._pass_on_stop)
            for index in range(self._processes):
                tasks.start_soon(follow, index)
            await everything.wait()
        return [found[index] for index in sorted(found)]

    async def _start(self, index: int) -> BufferedByteReceiveStream:
        child = await anyio.open_process([sys.executable, *CHILD], stderr=None)
        self._children.append(child)
        assignment = Assignment(run=self._run, index=index, processes=self._processes)
        assert child.stdin is not None
        assert child.stdout is not None
        await child.stdin.send(msgspec.json.encode(assignment) + b"\n")
        return BufferedByteReceiveStream(child.stdout)

    async def _next(self, output: BufferedByteReceiveStream) -> Message:
        try:
            return _decode(await output.receive_until(b"\n", _LONGEST_LINE))
        except (anyio.IncompleteRead, anyio.EndOfStream, msgspec.DecodeError) as error:
            raise FleetError("a process of the load tester died") from error

    async def _pass_on_stop(self) -> None:
        await self._stopping.wait()
        await self._tell("stop")

    async def _tell(self, order: str) -> None:
        for child in self._children:
            assert child.stdin is not None
            await child.stdin.send(order.encode() + b"\n")
