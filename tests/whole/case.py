"""What a session case has: a real server, a strict upstream, names of its own."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from itertools import count
from typing import Any

import anyio

from tests.fakes.server import ServerProcess
from tests.fakes.upstream import FakeUpstream, Request, Script
from tests.fakes.wire import Copy, Frame, Wire, wire

_names = count()

LOOK: dict[str, Any] = {"name": "look", "parameters": {"type": "object"}}
"""A tool that the cases' clients run."""


class Case:
    """One case on a server that it shares with others.

    Attributes:
        running: The server.
        upstream: What its model calls reach.
    """

    def __init__(self, running: ServerProcess, upstream: FakeUpstream) -> None:
        self.running = running
        self.upstream = upstream
        self._before = len(upstream.requests)

    def name(self) -> str:
        """Returns the id of a new conversation."""
        return f"case-{next(_names)}"

    def client(
        self, copies: dict[str, Copy] | None = None
    ) -> AbstractAsyncContextManager[Wire]:
        """Connects; see `wire`."""
        return wire(self.running.url, copies)

    def script(self, *replies: Script) -> None:
        """Says what the upstream answers next."""
        self.upstream.script(*replies)

    @property
    def requests(self) -> Sequence[Request]:
        """What this case has asked of the upstream."""
        return self.upstream.requests[self._before :]

    async def request(self, number: int) -> Request:
        """Waits for a request of this case; the first one is 1."""
        await self.upstream.wait_for_requests(self._before + number)
        return self.requests[number - 1]


async def begin(client: Wire, name: str, content: str = "go", **config: Any) -> int:
    """Opens a conversation if need be, and sends; returns the turn."""
    if client.copies[name].epoch is None:
        await client.open(name, config=config or None, handles=["look"])
    reply = await client.command("send", conversation=name, content=content)
    assert reply["ok"], reply
    return reply["turn"]


async def shown(client: Wire, name: str, turn: int, text: str) -> None:
    """Waits until the turn's text has come so far."""
    await client.until(lambda: client.copies[name].texts[turn].startswith(text))


async def asked(client: Wire, count: int) -> list[Frame]:
    """Waits for so many requests to run a tool, in all."""
    found: list[Frame] = []

    def enough() -> bool:
        found[:] = [f for f in client.controls if f["type"] == "tool_request"]
        return len(found) >= count

    await client.until(enough)
    return found


async def answer(client: Wire, name: str, call: str, **members: Any) -> str:
    """Sends a tool's result; returns the outcome."""
    reply = await client.command("tool_result", conversation=name, call=call, **members)
    return reply["outcome"] if reply["ok"] else reply["error"]["code"]


def said(request: Request) -> list[tuple[str, Any]]:
    """Returns a prompt's messages: roles and contents."""
    return [(m["role"], m.get("content")) for m in request.json["messages"]]


def results(request: Request) -> list[Any]:
    """Returns the results in a prompt, in order."""
    return [content for role, content in said(request) if role == "tool"]


async def history(case: Case, name: str) -> Copy:
    """Returns what a client that was never there before is told."""
    async with case.client() as fresh:
        await fresh.open(name)
        await fresh.until(
            lambda: any(
                f["type"] == "caught_up" and f["conversation"] == name
                for f in fresh.controls
            )
        )
        fresh.copies[name].prove()
        return fresh.copies[name]


def kinds(copy: Copy) -> list[str]:
    """Returns the types of the events, in order."""
    return [event["type"] for event in copy.events]


async def soon(condition: Any, seconds: float = 10.0) -> None:
    """Waits until something outside has become true."""
    with anyio.fail_after(seconds):
        while not condition():
            await anyio.sleep(0.005)
