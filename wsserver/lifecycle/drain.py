"""How the server stops: nobody is cut off who can be let finish, and nothing waits.

In order: no new clients and turns, notice to those who are there, time for the
turns that run, the log to the store, a close frame to everyone at once. Each step
has its bound, and all of them together the drain time and less than 2 s.
"""

import random
from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import contextmanager
from typing import Protocol

import anyio
import structlog

from protocol.codes import CloseCode

CLOSE_SECONDS = 1.5
"""For what comes after the drain time, closing included."""

_RECONNECT_FIRST_MS = 500
_RECONNECT_SPREAD_MS = 3_000

log = structlog.get_logger(__name__)


class Client(Protocol):
    """What a drain needs of a connection."""

    def goaway(self, *, deadline_ms: int, reconnect_after_ms: int, reason: str) -> None:
        """Tells the client that the server goes away."""
        ...

    async def close(self, code: int, reason: str) -> None:
        """Sends what is due, then closes."""
        ...


async def drain(
    clients: Callable[[], Collection[Client]],
    *,
    seconds: float,
    end_turns: Callable[[float], Awaitable[None]],
    flush: Callable[[], Awaitable[None]],
) -> None:
    """Lets everything come to its end; returns within `seconds` and `CLOSE_SECONDS`.

    Args:
        clients: Returns who is connected.
        seconds: What running turns are given.
        end_turns: Refuses new turns, waits so long for running ones, ends the rest.
        flush: Waits until the store has everything.
    """
    deadline = anyio.current_time() + seconds + CLOSE_SECONDS
    log.info("draining", connections=len(clients()), seconds=seconds)
    for client in clients():
        # Spread, so that they do not all come back in the same instant.
        spread = random.randrange(_RECONNECT_SPREAD_MS)  # noqa: S311 - not a secret
        with _each():
            client.goaway(
                deadline_ms=round(seconds * 1000),
                reconnect_after_ms=_RECONNECT_FIRST_MS + spread,
                reason="restart",
            )
    with anyio.CancelScope(deadline=deadline) as scope:
        await end_turns(seconds)
        await flush()
        async with anyio.create_task_group() as tasks:
            for client in clients():
                tasks.start_soon(_close, client)
    if scope.cancelled_caught:
        log.warning("drained_in_part", connections=len(clients()))
    else:
        log.info("drained")


async def _close(client: Client) -> None:
    with _each():
        await client.close(CloseCode.RESTART, "restart")


@contextmanager
def _each() -> Generator[None]:
    """The boundary of a client: the others are told, and closed, nonetheless."""
    try:
        yield
    except Exception:
        log.exception("client_not_drained")
