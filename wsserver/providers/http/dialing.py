"""Reaches a host at the first of its addresses that answers.

Some of them may lead nowhere from here, those of IPv6 mostly, and nothing says so. So
where one has not answered after a moment the next is tried beside it (RFC 8305).
"""

import asyncio
import socket
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any

import anyio

NEXT_AFTER_SECONDS = 0.25

Address = tuple[socket.AddressFamily, Any]
"""A family, and an address of it as sockets take it."""


async def reach(host: str, port: int) -> socket.socket:
    """Returns a connected socket.

    Raises:
        OSError: The name is not known, or no address answers; the first one's fault.
    """
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    )
    return await first_to_answer(alternating([(each[0], each[4]) for each in found]))


async def first_to_answer(addresses: Sequence[Address]) -> socket.socket:
    """Returns a socket connected to one of some addresses, tried in their order.

    Raises:
        OSError: None answers; the first one's fault.
    """
    reached: list[socket.socket] = []
    faults: list[OSError] = []

    async def attempt(address: Address, failed: anyio.Event) -> None:
        try:
            reached.append(await _connected(*address))
        except OSError as fault:
            faults.append(fault)
            failed.set()
        else:
            tasks.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as tasks:
            for address in addresses:
                failed = anyio.Event()
                tasks.start_soon(attempt, address, failed)
                with anyio.move_on_after(NEXT_AFTER_SECONDS):
                    await failed.wait()
    except BaseException:
        for each in reached:
            each.close()
        raise
    for late in reached[1:]:
        late.close()
    if not reached:
        assert faults, "a name that is known has an address"
        raise faults[0]
    return reached[0]


async def _connected(family: socket.AddressFamily, address: Any) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, address)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        made.close()
        raise
    return made


def alternating(addresses: Sequence[Address]) -> list[Address]:
    """Orders addresses so that each is of another family than the one before it."""
    families: dict[socket.AddressFamily, list[Address]] = {}
    for address in addresses:
        families.setdefault(address[0], []).append(address)
    columns = zip_longest(*families.values())
    return [each for each in chain.from_iterable(columns) if each is not None]
