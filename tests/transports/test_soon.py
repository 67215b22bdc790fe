"""Many callbacks under one handle of the loop."""

import asyncio

import pytest

from wsserver.transports.soon import Soon


@pytest.fixture
def anyio_backend() -> str:
    """What transports run on."""
    return "asyncio"


async def test_all_are_called_once_in_order_after_what_runs_now() -> None:
    soon, called = Soon(), list[str]()
    for name in ("a", "b", "c"):
        soon.call(lambda name=name: called.append(name))
    assert called == []
    await asyncio.sleep(0)
    assert called == ["a", "b", "c"]
    await asyncio.sleep(0)
    assert called == ["a", "b", "c"]


async def test_who_asks_while_called_is_called_in_the_next_turn() -> None:
    soon, called = Soon(), list[str]()

    def first() -> None:
        called.append("first")
        soon.call(lambda: called.append("again"))

    soon.call(first)
    soon.call(lambda: called.append("second"))
    await asyncio.sleep(0)
    assert called == ["first", "second"]
    await asyncio.sleep(0)
    assert called == ["first", "second", "again"]
