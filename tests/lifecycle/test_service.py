"""What systemd is told, over a datagram socket as it has it."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGHUP, SIGTERM
from typing import Any

import anyio
import pytest

from wsserver.lifecycle.service import Service


class Manager:
    """The end where systemd listens."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.settimeout(10)

    def told(self) -> str:
        """Waits for what it is told next."""
        return self._socket.recv(4096).decode()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    there = Manager(str(tmp_path / "notify"))
    yield there
    there.close()


def monotonic_usec() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def test_a_life_is_told_in_order(start: Any, manager: Manager, tmp_path: Path) -> None:
    server = start(NOTIFY_SOCKET=str(tmp_path / "notify"))
    assert manager.told() == "READY=1"
    before = monotonic_usec()
    server.tell(SIGHUP)
    reloading, since = manager.told().split("\n")
    assert reloading == "RELOADING=1"
    assert since.startswith("MONOTONIC_USEC=")
    assert before <= int(since.partition("=")[2]) <= monotonic_usec()
    assert manager.told() == "READY=1"
    server.tell(SIGTERM)
    assert manager.told() == "STOPPING=1"
    assert server.wait()[0] == 0


def test_an_address_may_be_abstract() -> None:
    name = f"wsserver-test-{os.getpid()}"
    manager = Manager(f"\0{name}")
    Service({"NOTIFY_SOCKET": f"@{name}"}).ready()
    assert manager.told() == "READY=1"
    manager.close()


@pytest.mark.parametrize("names_pid", [False, True])
async def test_it_gives_signs_of_life_in_time(
    manager: Manager, tmp_path: Path, names_pid: bool
) -> None:
    environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "40000"}
    if names_pid:
        environ["WATCHDOG_PID"] = str(os.getpid())
    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Service(environ).live)
        for _ in range(5):
            assert await anyio.to_thread.run_sync(manager.told) == "WATCHDOG=1"
        tasks.cancel_scope.cancel()
    assert anyio.current_time() - began >= 4 * 0.02


async def test_it_gives_two_of_them_in_the_time_that_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class EnoughError(Exception):
        pass

    async def sleep(seconds: float) -> None:
        raise EnoughError(seconds)

    monkeypatch.setattr(anyio, "sleep", sleep)
    with pytest.raises(EnoughError, match="15"):
        await Service({"WATCHDOG_USEC": "30000000"}).live()


def test_a_time_as_long_as_a_variable_is_no_fault() -> None:
    Service({"WATCHDOG_USEC": "9" * 5000})


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"NOTIFY_SOCKET": ""},
        {"NOTIFY_SOCKET": "/nowhere/at/all"},
        {"NOTIFY_SOCKET": "vsock:2:1234"},
        {"NOTIFY_SOCKET": "/" + 200 * "x"},
        {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"},
        {"WATCHDOG_USEC": "soon"},
    ],
)
async def test_where_nobody_listens_nothing_is_said(environ: dict[str, str]) -> None:
    service = Service(environ)
    service.ready()
    service.reloading()
    service.stopping()
    with anyio.fail_after(5):  # it lives without a word, and no longer
        await service.live()
