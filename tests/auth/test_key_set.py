"""Keys that are published somewhere: fetched when due and not more often."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
import structlog

from tests.auth.issuer import jwk, key_set
from tests.fakes.clocks import jumping_time  # noqa: F401 - a fixture
from wsserver.auth.key_set import (
    FETCH_SECONDS,
    KEEP_SECONDS,
    REFRESH_SECONDS,
    RETRY_SECONDS,
    FetchError,
    KeySet,
)
from wsserver.lifecycle.background import AGAIN_FIRST_SECONDS, kept


class Issuer:
    """What is published, or why it can't be had; counts who asks.

    Attributes:
        document: The key set, or what is raised; None never answers.
        times: When it was asked for.
    """

    def __init__(self, *kids: str) -> None:
        self.document: bytes | Exception | None = None
        self.times: list[float] = []
        self.let = anyio.Event()
        self.let.set()
        self.publish(*kids)

    def publish(self, *kids: str) -> None:
        self.document = key_set(*(jwk("ec", kid=kid) for kid in kids))

    async def fetch(self) -> bytes:
        self.times.append(anyio.current_time())
        await self.let.wait()
        if isinstance(self.document, Exception):
            raise self.document
        if self.document is None:
            await anyio.sleep_forever()
        assert self.document is not None
        return self.document


@asynccontextmanager
async def keys_of(issuer: Issuer) -> AsyncIterator[KeySet]:
    keys = KeySet(issuer.fetch, frozenset({"ES256"}))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keys.run)
        yield keys
        tasks.cancel_scope.cancel()


async def test_a_known_key_is_found_without_asking_again() -> None:
    issuer = Issuer("a", "b")
    async with keys_of(issuer) as keys:
        for _ in range(100):
            assert await keys.find("a", "ES256") is not None
            assert await keys.find("b", "ES256") is not None
        assert await keys.find("a", "RS256") is None
        assert len(issuer.times) == 1


async def test_nobody_waits_for_an_attempt_that_met_a_defect() -> None:
    issuer = Issuer("a")
    issuer.document = RuntimeError("a defect")
    keys = KeySet(issuer.fetch, frozenset({"ES256"}))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kept, "authority", keys.run)
        with anyio.fail_after(AGAIN_FIRST_SECONDS / 2):
            assert await keys.find("a", "ES256") is None
        issuer.publish("a")
        await anyio.sleep(2 * AGAIN_FIRST_SECONDS)
        assert await keys.find("a", "ES256") is not None
        tasks.cancel_scope.cancel()


async def test_whoever_comes_first_waits_for_the_keys() -> None:
    issuer = Issuer("a")
    issuer.let = anyio.Event()
    found: list[object] = []
    async with keys_of(issuer) as keys, anyio.create_task_group() as tasks:

        async def ask() -> None:
            found.append(await keys.find("a", "ES256"))

        for _ in range(20):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        assert found == []
        issuer.let.set()
        await anyio.wait_all_tasks_blocked()
        assert len(found) == 20
        assert None not in found
        assert len(issuer.times) == 1, "one fetch for all"


async def test_keys_are_fetched_again_after_a_while() -> None:
    issuer = Issuer("a")
    async with keys_of(issuer) as keys:
        await keys.find("a", "ES256")
        issuer.publish("b")
        await anyio.sleep(REFRESH_SECONDS + 1)
        assert await keys.find("a", "ES256") is None, "it was taken back"
        assert await keys.find("b", "ES256") is not None
        await anyio.sleep(10 * REFRESH_SECONDS)
        assert len(issuer.times) in (12, 13)


async def test_a_new_key_is_asked_for_when_a_token_names_it() -> None:
    issuer = Issuer("a")
    async with keys_of(issuer) as keys:
        await keys.find("a", "ES256")
        issuer.publish("a", "b")
        assert await keys.find("b", "ES256") is None, "not so soon again"
        await anyio.sleep(RETRY_SECONDS)
        began = anyio.current_time()
        assert await keys.find("b", "ES256") is not None
        assert anyio.current_time() == began
        assert len(issuer.times) == 2


async def test_invented_keys_do_not_make_it_ask_often() -> None:
    issuer = Issuer("a")
    async with keys_of(issuer) as keys:
        for number in range(1000):
            assert await keys.find(f"invented-{number}", "ES256") is None
            assert await keys.find("a", "ES256") is not None
            await anyio.sleep(0.1)
        gaps = [b - a for a, b in zip(issuer.times, issuer.times[1:], strict=False)]
        assert min(gaps) >= RETRY_SECONDS
        assert 8 <= len(issuer.times) <= 11


async def test_while_nothing_comes_nobody_is_let_in_and_then_everybody() -> None:
    issuer = Issuer("a")
    issuer.document = FetchError("no answer: ConnectionError")
    with structlog.testing.capture_logs() as lines:
        async with keys_of(issuer) as keys:
            assert await keys.find("a", "ES256") is None
            await anyio.sleep(10 * RETRY_SECONDS)
            issuer.publish("a")
            await anyio.sleep(RETRY_SECONDS + 1)
            assert await keys.find("a", "ES256") is not None
            asked = len(issuer.times)
            issuer.document = FetchError("down")
            await anyio.sleep(REFRESH_SECONDS - 2 * RETRY_SECONDS)
            assert len(issuer.times) == asked, "all is well"
            await anyio.sleep(4 * RETRY_SECONDS)
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("signing_keys_unavailable", "warning"),
        ("signing_keys_available", "info"),
        ("signing_keys_unavailable", "warning"),
    ], "one line for an outage, one for its end"
    assert [line.get("about") or line.get("keys") for line in lines] == [
        "no answer: ConnectionError", 1, "down",
    ]  # fmt: skip


async def test_it_tries_again_by_itself() -> None:
    issuer = Issuer("a")
    issuer.document = FetchError("down")
    async with keys_of(issuer) as keys:
        await anyio.sleep(1)
        issuer.publish("a")
        await anyio.sleep(RETRY_SECONDS)
        assert len(issuer.times) == 2
        assert await keys.find("a", "ES256") is not None
        assert len(issuer.times) == 2, "nobody had to wait for it"


async def test_an_outage_logs_nobody_out_at_once_but_in_the_end() -> None:
    issuer = Issuer("a")
    async with keys_of(issuer) as keys:
        assert await keys.find("a", "ES256") is not None
        issuer.document = FetchError("down")
        await anyio.sleep(KEEP_SECONDS - 1)
        assert await keys.find("a", "ES256") is not None
        await anyio.sleep(2)
        assert await keys.find("a", "ES256") is None
        issuer.publish("a")
        await anyio.sleep(RETRY_SECONDS)
        assert await keys.find("a", "ES256") is not None


@pytest.mark.parametrize("document", [b"<html>", key_set(), key_set({"kty": "x"})])
async def test_what_is_no_key_set_is_an_outage(document: bytes) -> None:
    issuer = Issuer("a")
    async with keys_of(issuer) as keys:
        assert await keys.find("a", "ES256") is not None
        issuer.document = document
        await anyio.sleep(REFRESH_SECONDS + 1)
        assert await keys.find("a", "ES256") is not None


async def test_an_issuer_that_never_answers_is_waited_for_so_long() -> None:
    issuer = Issuer()
    issuer.document = None
    async with keys_of(issuer) as keys:
        began = anyio.current_time()
        assert await keys.find("a", "ES256") is None
        assert anyio.current_time() - began == pytest.approx(FETCH_SECONDS)


async def test_who_does_not_wait_any_longer_stops_nobody_else() -> None:
    issuer = Issuer("a")
    issuer.let = anyio.Event()
    async with keys_of(issuer) as keys, anyio.create_task_group() as tasks:
        found: list[object] = []

        async def ask() -> None:
            found.append(await keys.find("a", "ES256"))

        with anyio.move_on_after(1) as left:
            tasks.start_soon(ask)
            await keys.find("a", "ES256")
        assert left.cancelled_caught
        issuer.let.set()
        await anyio.wait_all_tasks_blocked()
        assert found != [None]
        assert len(found) == len(issuer.times) == 1


async def test_a_token_without_an_id_means_the_only_key() -> None:
    issuer = Issuer("a")
    async with keys_of(issuer) as keys:
        assert await keys.find(None, "ES256") is not None
        issuer.publish("a", "b")
        await anyio.sleep(REFRESH_SECONDS + 1)
        assert await keys.find(None, "ES256") is None
