"""Frames that are handed over where they arrive."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from wsserver.connections.transport import TransportClosed
from wsserver.transports.websocket import _AT_ONCE_BYTES

TEXT, BINARY, PING = 1, 2, 9


class Taker:
    """Takes frames that begin with a letter."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def __call__(self, frame: str) -> bool:
        if not frame[:1].isalpha():
            return False
        self.taken.append(frame)
        return True

    async def until(self, frame: str) -> None:
        """Waits until a frame was taken, so that the next is one of another read."""
        with anyio.fail_after(5.0):
            while frame not in self.taken:
                await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def receiving(served: Any, take: Taker) -> AsyncGenerator[list[str]]:
    """Waits for one frame meanwhile, and for its end; gives what was returned."""
    returned: list[str] = []

    async def receive() -> None:
        returned.append(await served.transport.receive(take))

    with anyio.fail_after(5.0):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            await anyio.wait_all_tasks_blocked()
            yield returned


async def test_only_what_is_not_taken_is_returned(rig: Any) -> None:
    client, served = await rig.pair()
    take = Taker()
    async with receiving(served, take) as returned:
        for text in ("a", "é"):
            await client.send(text)
            await take.until(text)
        await client.send("1")
    assert (take.taken, returned) == (["a", "é"], ["1"])


async def test_only_the_first_of_many_is_handed_over_and_none_overtaken(
    rig: Any, frame: Any
) -> None:
    client, _ = await rig.raw()
    served = await rig.connection()
    take = Taker()
    names = [f"x{number}" for number in range(5_000)]  # reading pauses meanwhile
    async with anyio.create_task_group() as tasks:
        handled: list[str] = []

        async def receive() -> None:
            with anyio.fail_after(5.0):
                while len(take.taken) + len(handled) < len(names):
                    handled.append(await served.transport.receive(take))

        tasks.start_soon(receive)
        await anyio.wait_all_tasks_blocked()
        await client.send(b"".join(frame(TEXT, name.encode()) for name in names))
    assert take.taken[0] == names[0]
    assert len(take.taken) < 10, "one of a read: a flood does not hold the event loop"
    assert handled == [name for name in names if name not in take.taken]


async def test_a_large_frame_is_not_handed_over(rig: Any) -> None:
    client, served = await rig.pair()
    take = Taker()
    large = "x" * (_AT_ONCE_BYTES + 1)
    async with receiving(served, take) as returned:
        await client.send(large[1:])
        await take.until(large[1:])
        await client.send(large)
    assert (take.taken, returned) == ([large[1:]], [large])


async def test_frames_that_nobody_waits_for_are_kept(rig: Any) -> None:
    client, served = await rig.pair()
    take = Taker()
    await client.send("a")
    await client.ping()
    await anyio.wait_all_tasks_blocked()
    with anyio.fail_after(5.0):
        while not len(served.transport.recv_messages.frames):
            await anyio.sleep(0.001)
    assert await served.transport.receive(take) == "a"
    assert take.taken == []


async def test_a_frame_in_pieces_is_returned_whole(rig: Any, frame: Any) -> None:
    client, _ = await rig.raw()
    served = await rig.connection()
    take = Taker()
    async with receiving(served, take) as returned:
        await client.send(
            frame(TEXT, b"ab", last=False) + frame(PING) + frame(0, b"cd")
        )
    assert (take.taken, returned) == ([], ["abcd"])


@pytest.mark.parametrize(
    ("opcode", "payload", "code"), [(TEXT, b"a\xff", 1007), (BINARY, b"a", 1003)]
)
async def test_what_is_no_text_ends_the_connection_as_ever(
    rig: Any, frame: Any, opcode: int, payload: bytes, code: int
) -> None:
    client, _ = await rig.raw()
    served = await rig.connection()
    take = Taker()
    with anyio.fail_after(5.0):
        async with anyio.create_task_group() as tasks:

            async def receive() -> None:
                with pytest.raises(TransportClosed) as closed:
                    await served.transport.receive(take)
                assert closed.value.code == code

            tasks.start_soon(receive)
            await anyio.wait_all_tasks_blocked()
            await client.send(frame(opcode, payload))
    assert take.taken == []
