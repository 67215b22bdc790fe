"""An upstream is reached at whichever of its addresses answers."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import anyio
import pytest

from tests.fakes.upstream import FakeUpstream, Reply
from tests.providers.upstream_rig import call, provider_for, request
from wsserver.engine.model import Finished
from wsserver.providers.http import dialing
from wsserver.providers.http.dialing import alternating, first_to_answer

Address = tuple[socket.AddressFamily, Any]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def door() -> Iterator[Address]:
    """An address that answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield socket.AF_INET, server.getsockname()


@pytest.fixture
def hole() -> Iterator[Address]:
    """An address that never answers: whoever else may wait there does already."""
    with ExitStack() as opened:
        server = opened.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(3):
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield socket.AF_INET, server.getsockname()


@pytest.fixture
def wall() -> Address:
    """An address that refuses."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return socket.AF_INET, closed.getsockname()


def wait(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(dialing, "NEXT_AFTER_SECONDS", seconds)


async def reached(*addresses: Address) -> Any:
    with anyio.fail_after(5.0):
        made = await first_to_answer(addresses)
    with made:
        return made.getpeername()


async def test_one_that_leads_nowhere_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch, hole: Address, door: Address
) -> None:
    wait(monkeypatch, 0.01)
    assert await reached(hole, hole, door) == door[1]


async def test_after_one_that_refuses_the_next_is_tried_at_once(
    monkeypatch: pytest.MonkeyPatch, wall: Address, door: Address
) -> None:
    wait(monkeypatch, 1000.0)
    assert await reached(wall, wall, door) == door[1]
    assert await reached(door, wall) == door[1]


async def test_where_none_answers_the_first_says_why(wall: Address) -> None:
    with pytest.raises(ConnectionRefusedError):
        await reached(wall, wall)


async def test_nothing_stays_open_of_what_was_given_up(
    monkeypatch: pytest.MonkeyPatch, hole: Address
) -> None:
    wait(monkeypatch, 0.001)
    made: list[socket.socket] = []

    class Noted(socket.socket):
        def __init__(self, *members: Any) -> None:
            super().__init__(*members)
            made.append(self)

    monkeypatch.setattr(socket, "socket", Noted)
    with anyio.move_on_after(0.05) as patience:
        await first_to_answer([hole, hole])
    assert patience.cancelled_caught
    assert [each.fileno() for each in made] == [-1, -1]


def test_families_take_turns() -> None:
    six, four = socket.AF_INET6, socket.AF_INET
    found: list[Address] = [(six, "a"), (six, "b"), (six, "c"), (four, "d")]
    assert [name for _, name in alternating(found)] == ["a", "d", "b", "c"]
    assert alternating(found[:2]) == found[:2]


async def test_an_upstream_with_a_name() -> None:
    async with FakeUpstream() as upstream:
        upstream.script(Reply(body=b"data: [DONE]\n\n"))
        url = upstream.base_url.replace("127.0.0.1", "localhost")
        async with provider_for(url) as provider:
            assert isinstance((await call(provider, request()))[-1], Finished)
