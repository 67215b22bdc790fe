"""No more clients than there are open files for."""

import errno
import resource
import socket

import anyio
import pytest
from structlog.testing import capture_logs

from wsserver import process, server
from wsserver.assembly import open_files
from wsserver.assembly.open_files import (
    FEWEST_SPARE,
    MOST_SPARE,
    OWN_FILES,
    allow_most,
    fitted,
)
from wsserver.settings import Model, Settings
from wsserver.telemetry.metrics import Metrics

SETTINGS = Settings(max_connections=1000, upstream_pool_size=50)
MODELS = {"m": Model(base_url="http://localhost/v1")}


@pytest.mark.parametrize(
    ("limit", "connections"),
    [
        (None, 1000),
        (100_000, 1000),
        (1000 + 50 + OWN_FILES, 1000),
        (1000 + 50 + OWN_FILES - 1, 999),
        (400, 400 - 50 - OWN_FILES),
        (64, 32),
        (1, 1),
    ],
)
def test_what_is_not_for_calls_and_the_store_is_for_clients(
    limit: int | None, connections: int
) -> None:
    assert fitted(SETTINGS, limit).max_connections == connections


def test_each_upstream_takes_of_it() -> None:
    settings = Settings(max_connections=1000, upstream_pool_size=50, models=MODELS)
    assert fitted(settings, 1000).max_connections == 1000 - 2 * 50 - OWN_FILES


def test_the_whole_of_the_hard_limit_is_taken() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1] // 2, before[1]))
        assert allow_most() == before[1]
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(("limit", "connections"), [(64, 32), (None, 1000)])
def test_it_is_said_that_fewer_are_taken(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, connections: int
) -> None:
    monkeypatch.setattr(process, "allow_most", lambda: limit)
    with capture_logs() as lines:
        settings = process._within_open_files(SETTINGS)
    assert settings.max_connections == connections
    said = [(line["allowed"], line["connections"]) for line in lines]
    assert said == ([(64, 32)] if limit else [])
    assert all("open files" in line["about"] for line in lines)


@pytest.mark.parametrize(
    ("left", "spare"),
    [(None, MOST_SPARE), (100_000, MOST_SPARE), (160, 20), (80, FEWEST_SPARE)],
)
def test_a_third_of_what_is_left_is_for_those_that_are_told_to_come_back(
    monkeypatch: pytest.MonkeyPatch, left: int | None, spare: int
) -> None:
    monkeypatch.setattr(open_files, "left", lambda: left)
    assert open_files.spare(100) == spare


def test_it_is_known_how_many_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    # The lowest number that is free: so many are open.
    with socket.socket() as probe:
        used = probe.fileno()
    limits = (used + 30, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    assert open_files.left() == 30
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert open_files.left() is None


def test_none_are_left_where_none_can_be_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket, "socket", refuse)
    assert open_files.left() == 0


async def test_it_is_told_once_a_minute_that_they_run_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = iter([100, 7, 6, 5, None])
    monkeypatch.setattr(open_files, "left", lambda: next(left, 5))
    monkeypatch.setattr(server, "_LAG_SECONDS", 0.01)
    with capture_logs() as lines, anyio.move_on_after(0.5):
        await server._observe(Metrics(), NoConversations())
    assert [line["left"] for line in lines] == [7]
    assert lines[0]["event"] == "open_files_run_out"


class NoConversations:
    def statistics(self) -> tuple[int, int]:
        return 0, 0
