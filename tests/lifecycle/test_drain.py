"""The order and the bounds of a drain, in virtual time."""

from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from tests.fakes.clocks import jumping_time  # noqa: F401 - a fixture
from wsserver.lifecycle.drain import CLOSE_SECONDS, drain


@dataclass
class FakeClient:
    """A client that takes its time to close."""

    journal: list[str]
    seconds_to_close: float = 0.0
    goaways: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    closed: tuple[int, str] | None = None

    def goaway(self, **members: Any) -> None:
        self.journal.append("goaway")
        self.goaways.append(members)

    async def close(self, code: int, reason: str) -> None:
        await anyio.sleep(self.seconds_to_close)
        self.journal.append("closed")
        self.closed = code, reason


@dataclass
class Parts:
    """What is drained, and how long each part takes."""

    journal: list[str] = field(default_factory=list[str])
    turns_seconds: float = 0.0
    flush_seconds: float = 0.0
    given_seconds: float | None = None

    async def end_turns(self, seconds: float) -> None:
        self.given_seconds = seconds
        await anyio.sleep(min(seconds, self.turns_seconds))
        self.journal.append("turns ended")

    async def flush(self) -> None:
        await anyio.sleep(self.flush_seconds)
        self.journal.append("flushed")

    async def drain(self, clients: list[FakeClient], seconds: float = 10.0) -> float:
        began = anyio.current_time()
        await drain(
            lambda: clients, seconds=seconds, end_turns=self.end_turns, flush=self.flush
        )
        return anyio.current_time() - began


async def test_notice_comes_first_and_the_close_last() -> None:
    parts = Parts(turns_seconds=4)
    client = FakeClient(parts.journal)
    assert await parts.drain([client]) == pytest.approx(4)
    assert parts.journal == ["goaway", "turns ended", "flushed", "closed"]
    assert client.closed == (1012, "restart")
    assert parts.given_seconds == 10


async def test_clients_are_told_how_long_and_come_back_spread() -> None:
    parts = Parts()
    clients = [FakeClient(parts.journal) for _ in range(50)]
    await parts.drain(clients)
    notices = [client.goaways[0] for client in clients]
    assert {notice["deadline_ms"] for notice in notices} == {10_000}
    assert {notice["reason"] for notice in notices} == {"restart"}
    assert len({notice["reconnect_after_ms"] for notice in notices}) > 25


async def test_nobody_waits_for_a_peer_that_does_not_help() -> None:
    parts = Parts()
    dead = [FakeClient(parts.journal, seconds_to_close=2.0) for _ in range(20)]
    alive = FakeClient(parts.journal)
    assert await parts.drain([*dead, alive]) == pytest.approx(2.0)
    assert alive.closed is not None


async def test_all_together_stay_within_their_bound() -> None:
    parts = Parts(turns_seconds=100, flush_seconds=1000)
    clients = [FakeClient(parts.journal, seconds_to_close=1000)]
    with capture_logs() as lines:
        took = await parts.drain(clients, seconds=3)
    assert took == pytest.approx(3 + CLOSE_SECONDS)
    last = {"event": "drained_in_part", "log_level": "warning", "connections": 1}
    assert lines[-1] == last
    assert CLOSE_SECONDS < 2


async def test_a_defect_of_one_client_keeps_no_other_from_being_told_and_closed() -> (
    None
):
    class Broken(FakeClient):
        def goaway(self, **members: Any) -> None:
            raise RuntimeError("a defect")

        async def close(self, code: int, reason: str) -> None:
            raise RuntimeError("a defect")

    parts = Parts()
    client = FakeClient(parts.journal, seconds_to_close=0.5)
    with capture_logs() as lines:
        await parts.drain([Broken(parts.journal), client])
    assert parts.journal == ["goaway", "turns ended", "flushed", "closed"]
    assert [line["event"] for line in lines].count("client_not_drained") == 2
