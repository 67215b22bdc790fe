"""A server whose disk or threads hang ends all the same, and loses nothing promised."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM
from threading import Event
from time import monotonic
from typing import Any

import orjson
import pytest
from websockets.sync.client import ClientConnection, connect

from tests.lifecycle.renewed import HELLO, receive, until

HANGING = """
import sys, threading
from pathlib import Path
from wsserver import process
from wsserver.server import Parts
from wsserver.settings import load
from wsserver.stores.sqlite.store import SqliteStore
folder = Path(sys.argv[1])
class Hanging(SqliteStore):
    def _commit(self, writes, now):
        if (folder / "hang").exists():
            (folder / "hangs").touch()
            threading.Event().wait()
        super()._commit(writes, now)
process.CLOSE_SECONDS = process.AT_ONCE_SECONDS = float(sys.argv[2])
store = Hanging(folder / "db", durability="process", boot=None)
flags = {"port": "0", "drain_seconds": sys.argv[3], "log_format": "json"}
sys.exit(process.run(load(flags=flags, environ={}), Parts(store=store)))
"""


ALONE = """
import sys, threading, time
import structlog
from wsserver.lifecycle.last_resort import LastResort
def hangs(*_):
    threading.Event().wait()
if sys.argv[1] == "hangs":
    structlog.configure(processors=[hangs])
last_resort = LastResort()
last_resort.end_within(0.2, 7)
if sys.argv[1] == "closed":
    last_resort.close()
time.sleep(0.5 if sys.argv[1] == "closed" else 10)
"""

SLEEPING = """
import signal, sys, time
from pathlib import Path
from wsserver import process
from wsserver.settings import load
hangs = Path(sys.argv[1]) / "hangs"
async def know(token):
    hangs.touch()
    time.sleep(60)
class Interrupted(process.LastResort):
    def end_within(self, seconds, code):
        if seconds > 60:
            signal.raise_signal(signal.SIGINT)
        super().end_within(seconds, code)
if sys.argv[3] == "another interrupts the first":
    process.LastResort = Interrupted
process.DRAIN_MORE_SECONDS = process.CLOSE_SECONDS = 0.2
process.AT_ONCE_SECONDS = 0.2
flags = {"port": "0", "store": "memory", "auth_call": "__main__:know"}
flags |= {"drain_seconds": sys.argv[2], "log_format": "json"}
sys.exit(process.run(load(flags=flags, environ={})))
"""


STARTING = """
import sys
from wsserver import process
from wsserver.settings import load
process.AT_ONCE_SECONDS = 0.2
flags = {"port": "0", "store": "memory", "drain_seconds": "60", "log_format": "json"}
flags |= {"auth_keys_file": sys.argv[1]}
sys.exit(process.run(load(flags=flags, environ={})))
"""


class Served:
    """A server in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        assert process.stdout is not None
        self.process = process
        self._log = log
        line = process.stdout.readline()
        assert line.startswith("listening on "), log.read_text()
        self.port = int(line.rpartition(":")[2].partition("/")[0])

    @property
    def last_line(self) -> dict[str, Any]:
        return orjson.loads(self._log.read_text().splitlines()[-1])

    def goes_on(self, seconds: float) -> bool:
        """Says whether it has not ended within some seconds."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def ended(self) -> tuple[int, float]:
        """Returns the exit code, and how long it took."""
        began = monotonic()
        return self.process.wait(15), monotonic() - began


@contextmanager
def served(*command: str, log: Path) -> Iterator[Served]:
    with (
        log.open("w") as out,
        subprocess.Popen(  # noqa: S603 - our own code
            [sys.executable, *command], stdout=subprocess.PIPE, stderr=out, text=True
        ) as process,
    ):
        try:
            yield Served(process, log)
        finally:
            process.kill()


@contextmanager
def hanging(folder: Path, close_seconds: float, drain_seconds: float) -> Iterator[Any]:
    arguments = (str(folder), str(close_seconds), str(drain_seconds))
    with served("-c", HANGING, *arguments, log=folder / "log") as server:
        yield server


@contextmanager
def client(server: Served) -> Iterator[ClientConnection]:
    url = f"ws://127.0.0.1:{server.port}/v1/chat"
    with connect(url, compression=None, close_timeout=0.1) as connection:
        connection.send(orjson.dumps(HELLO), text=True)
        assert receive(connection)["type"] == "welcome"
        yield connection


def say(connection: ClientConnection, text: str) -> None:
    send = {"type": "send", "id": text, "conversation": "c", "content": text}
    connection.send(orjson.dumps(send), text=True)


def hang(folder: Path, connection: ClientConnection) -> None:
    """Says something that is stored, and then something that never is."""
    config = {"model": "demo/fast:tokens=3"}
    opening = {"type": "open", "id": "o", "conversation": "c", "config": config}
    connection.send(orjson.dumps(opening), text=True)
    say(connection, "first")
    assert until(connection, "done")["status"] == "completed"
    (folder / "hang").touch()
    say(connection, "second")
    until_there(folder / "hangs")


def until_there(file: Path) -> None:
    deadline, pause = monotonic() + 10, Event()
    while not file.exists():
        assert monotonic() < deadline, f"no {file}"
        pause.wait(0.01)


def kept(folder: Path) -> list[str]:
    """Returns what users have said, as a server after it tells a client."""
    arguments = ("-m", "wsserver", "serve", "--port=0", f"--store=sqlite:{folder}/db")
    with (
        served(*arguments, log=folder / "log2") as server,
        client(server) as connection,
    ):
        opening = {"type": "open", "id": "o", "conversation": "c", "after": 0}
        connection.send(orjson.dumps(opening), text=True)
        found: list[str] = []
        while True:
            frame = receive(connection)
            if frame["type"] == "message":
                found.append(frame["content"])
            if frame["type"] == "done":
                return found


@pytest.mark.parametrize("times", [1, 2])
def test_a_disk_that_hangs_ends_it_in_time_and_takes_nothing_acknowledged(
    tmp_path: Path, times: int
) -> None:
    drain_seconds = 0.1 if times == 1 else 60
    with (
        hanging(tmp_path, 0.3, drain_seconds) as server,
        client(server) as connection,
    ):
        hang(tmp_path, connection)
        server.process.send_signal(SIGTERM)
        until(connection, "goaway")
        if times == 2:
            server.process.send_signal(SIGTERM)
        code, took = server.ended()
    assert code == 3
    assert took < 0.1 + 2 + 0.3 + 1
    line = server.last_line
    assert (line["event"], line["exit_code"]) == ("stopped_by_force", 3)
    assert kept(tmp_path) == ["first"]


@pytest.mark.parametrize("told", ["once", "twice", "another interrupts the first"])
def test_an_event_loop_that_hangs_ends_it_in_time(tmp_path: Path, told: str) -> None:
    drain_seconds = "0.1" if told == "once" else "60"
    with (
        served(
            *("-c", SLEEPING, str(tmp_path), drain_seconds, told), log=tmp_path / "log"
        ) as server,
        connect(f"ws://127.0.0.1:{server.port}/v1/chat", close_timeout=0.1) as one,
    ):
        one.send(orjson.dumps(HELLO | {"token": "t"}), text=True)
        until_there(tmp_path / "hangs")
        server.process.send_signal(SIGTERM)
        began = monotonic()
        # One that comes while another is on its way may go to a thread that can't
        # interrupt what hangs; the next one tells of both.
        while told == "twice" and server.goes_on(0.1) and monotonic() < began + 5:
            server.process.send_signal(SIGINT)
        code, took = server.ended()
    assert (code, server.last_line["event"]) == (3, "stopped_by_force")
    assert took < 0.5 + 2


@pytest.mark.parametrize(
    ("how", "code"), [("tells", 7), ("hangs", 7), ("closed", 0)], ids=str
)
def test_it_waits_for_no_log_and_ends_nothing_when_it_was_taken_back(
    how: str, code: int
) -> None:
    command = [sys.executable, "-c", ALONE, how]
    ended = subprocess.run(command, timeout=9, capture_output=True, check=False)  # noqa: S603
    assert ended.returncode == code
    assert (b"stopped_by_force" in ended.stdout) == (how == "tells")


def test_a_thread_that_hangs_changes_no_exit_code(start: Any, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("ann:0123456789abcdef")
    server = start(f"--auth-keys-file={keys}")
    keys.unlink()
    os.mkfifo(keys)
    with keys.open("r+b", buffering=0):  # its thread reads for as long as that is open
        server.tell(SIGHUP)
        until_opened(keys, server.process.pid)
        server.tell(SIGTERM)
        code, took = server.wait()
    assert (code, took < 4) == (0, True)
    assert "stopped_by_force" in server.log.splitlines()[-1]


def until_opened(file: Path, process: int) -> None:
    """Waits until a process has a file open."""
    deadline, pause = monotonic() + 10, Event()
    while not is_open(file, process):
        assert monotonic() < deadline, f"{file} is not opened"
        pause.wait(0.01)


def is_open(file: Path, process: int) -> bool:
    for each in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            if each.readlink() == file:
                return True
    return False


def test_a_start_that_hangs_has_nothing_to_drain(tmp_path: Path) -> None:
    pipe = tmp_path / "keys"
    os.mkfifo(pipe)
    with (
        pipe.open("r+b", buffering=0),  # somebody who writes nothing
        subprocess.Popen(  # noqa: S603 - our own code
            [sys.executable, "-c", STARTING, str(pipe)],
            stderr=subprocess.PIPE,
        ) as process,
    ):
        try:
            until_opened(pipe, process.pid)
            process.send_signal(SIGTERM)
            _, log = process.communicate(timeout=10)
        finally:
            process.kill()
    assert process.returncode == 3
    assert orjson.loads(log.splitlines()[-1])["event"] == "stopped_by_force"
