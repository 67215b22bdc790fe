"""The server as a process, over real sockets, with peers of every kind."""

import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGKILL, SIGSTOP, SIGTERM, Signals
from threading import Event
from time import monotonic
from typing import Any

import orjson
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

HUSH = "HUSH123-and-some-more"
HELLO = b'{"type":"hello","protocol":1}'


class Visitors:
    """Clients, until the test is over."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def connect(self, server: Any, **options: Any) -> ClientConnection:
        """Connects; says no hello."""
        url = f"ws://127.0.0.1:{server.port}/v1/chat"
        return self._stack.enter_context(
            connect(url, compression=None, close_timeout=0.1, **options)
        )

    def greet(self, server: Any, **options: Any) -> ClientConnection:
        """Connects and is welcome."""
        connection = self.connect(server, **options)
        connection.send(HELLO, text=True)
        assert receive(connection)["type"] == "welcome"
        return connection


@pytest.fixture
def visitors() -> Iterator[Visitors]:
    with ExitStack() as stack:
        yield Visitors(stack)


def receive(connection: ClientConnection) -> dict[str, Any]:
    return orjson.loads(connection.recv(timeout=10))


def ask(connection: ClientConnection, model: str, text: str = "hi") -> None:
    """Opens a conversation and starts a turn."""
    for command in (
        {"type": "open", "id": "o", "conversation": "c", "config": {"model": model}},
        {"type": "send", "id": "s", "conversation": "c", "content": text},
    ):
        connection.send(orjson.dumps(command), text=True)


def until(connection: ClientConnection, kind: str) -> dict[str, Any]:
    """Receives up to a frame of that type."""
    while True:
        frame = receive(connection)
        if frame["type"] == kind:
            return frame


def closed_with(connection: ClientConnection) -> tuple[int, list[dict[str, Any]]]:
    """Receives to the end; returns the close code and what came before."""
    frames: list[dict[str, Any]] = []
    try:
        while True:
            frames.append(receive(connection))
    except ConnectionClosed as closed:
        return (1006 if closed.rcvd is None else closed.rcvd.code), frames


@contextmanager
def frozen(server: Any, count: int) -> Iterator[None]:
    """Holds connections of a client process that is stopped."""
    code = (
        "import sys, time; from websockets.sync.client import connect\n"
        f"held = [connect('ws://127.0.0.1:{server.port}/v1/chat')"
        f" for _ in range({count})]\n"
        f"[c.send('{HELLO.decode()}') for c in held]\n"
        "print('there', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline() == b"there\n"
        process.send_signal(SIGSTOP)
        yield
    finally:
        process.send_signal(SIGKILL)
        process.wait()
        process.stdout.close()
        process.stdin.close()


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_signal_ends_it_at_once_when_nothing_runs(
    start: Any, visitors: Visitors, number: Any
) -> None:
    server = start()
    connection = visitors.greet(server)
    server.tell(number)
    code, frames = closed_with(connection)
    assert code == 1012
    (goaway,) = [frame for frame in frames if frame["type"] == "goaway"]
    assert goaway["deadline_ms"] == 10_000
    assert server.wait()[0] == 0
    assert server.process.stdout.read() == ""


def test_a_short_turn_ends_by_itself_while_draining(
    start: Any, visitors: Visitors
) -> None:
    server = start("--drain-seconds=10")
    connection = visitors.greet(server)
    ask(connection, "demo/fast:tokens=100,tokens_per_second=100")
    until(connection, "delta")
    server.tell(SIGTERM)
    until(connection, "goaway")
    assert server.get("/readyz") == (503, "draining\n")
    assert server.get("/healthz")[0] == 200
    with pytest.raises(InvalidStatus) as refused:
        visitors.connect(server)
    assert refused.value.response.status_code == 503
    late = {"type": "send", "id": "late", "conversation": "c", "content": "x"}
    connection.send(orjson.dumps(late), text=True)
    refusal = until(connection, "reply")
    assert refusal["error"]["code"] == "draining"
    assert until(connection, "done")["status"] == "completed"
    assert closed_with(connection)[0] == 1012
    assert server.wait()[0] == 0


def test_peers_of_every_kind_hold_nobody_up(start: Any, visitors: Visitors) -> None:
    server = start("--drain-seconds=1")
    good = [visitors.greet(server) for _ in range(5)]
    ask(good[0], "demo/long:tokens=100000,tokens_per_second=200")
    until(good[0], "delta")
    strangers = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5)]
    unread = visitors.greet(server, max_queue=1)
    ask(unread, "demo/long:tokens=100000,tokens_per_second=20000")
    with frozen(server, 20):
        server.tell(SIGTERM)
        code, took = server.wait()
    assert code == 0
    assert took < 1 + 2 + 1
    for connection in good:
        closed, frames = closed_with(connection)
        assert closed == 1012
        ends = [frame for frame in frames if frame["type"] == "done"]
        if connection is good[0]:
            (done,) = ends
            assert (done["status"], done["reason"]) == (
                "incomplete",
                "server_shutdown",
            )
    for stranger in strangers:
        stranger.close()
    assert "error" not in server.log
    assert "Traceback" not in server.log


def test_a_second_signal_ends_it_at_once(start: Any, visitors: Visitors) -> None:
    server = start("--drain-seconds=60")
    connection = visitors.greet(server)
    ask(connection, "demo/long:tokens=100000,tokens_per_second=200")
    until(connection, "delta")
    server.tell(SIGTERM)
    until(connection, "goaway")
    server.tell(SIGTERM)
    code, took = server.wait()
    assert code == 1
    assert took < 2 + 1
    assert "stopped_at_once" in server.log
    assert "Traceback" not in server.log
    (closed,) = [
        line for line in server.log.splitlines() if "connection_closed" in line
    ]
    assert "by=server" in closed, "the client did nothing"


def test_signals_to_its_very_end_change_no_exit_code(start: Any) -> None:
    server = start()
    deadline, pause = monotonic() + 10, Event()
    server.tell(SIGTERM)
    while "drained" not in server.log:
        assert monotonic() < deadline
    while server.process.poll() is None:
        assert monotonic() < deadline
        server.tell(SIGTERM)
        server.tell(SIGINT)
        pause.wait(0.001)
    assert server.wait()[0] in (0, 1), "1: it was told again while it drained"
    assert "Traceback" not in server.log


STARTING = """
import anyio, sys
from wsserver.process import run
from wsserver.server import Parts
from wsserver.settings import load
from wsserver.stores.memory import MemoryStore
class Slow(MemoryStore):
    async def live(self):
        print("recovering", flush=True)
        await anyio.sleep_forever()
    async def close(self):
        print("closed", flush=True)
sys.exit(run(load(flags={"port": "0"}, environ={}), Parts(store=Slow())))
"""


@pytest.mark.parametrize("numbers", [[SIGTERM], [SIGTERM, SIGTERM], [SIGHUP, SIGTERM]])
def test_a_signal_ends_a_start_that_takes_long(numbers: list[Signals]) -> None:
    with subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-c", STARTING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "recovering\n"
            for number in numbers:
                process.send_signal(number)
            out, log = process.communicate(timeout=10)
        finally:
            process.kill()
    assert out == "closed\n", "nobody was told that it listens"
    assert process.returncode == 0
    assert "stopped_while_starting" in log
    assert "Traceback" not in log


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(f"alice:{HUSH}\nshort:{HUSH[:8]}\n")
    return file


def test_no_credential_is_ever_written_anywhere(
    start: Any, visitors: Visitors, keys: Path
) -> None:
    server = start(f"--auth-keys-file={keys}", "--log-level=debug")
    hello = {"type": "hello", "protocol": 1}
    for options in (
        {"additional_headers": {"Authorization": f"Bearer {HUSH}"}},
        {"subprotocols": ["wsserver.v1", f"bearer.{HUSH}"]},
    ):
        connection = visitors.greet(server, **options)
        connection.send("{bad json " + HUSH, text=True)
        assert receive(connection)["type"] == "error"
    connection = visitors.connect(server)
    connection.send(orjson.dumps(hello | {"token": HUSH}), text=True)
    assert receive(connection)["type"] == "welcome"
    refresh = {"type": "refresh", "id": "r", "token": HUSH}
    connection.send(orjson.dumps(refresh), text=True)
    assert receive(connection)["outcome"] == "refreshed"
    for wrong in (HUSH + "x", HUSH[:-1]):
        connection = visitors.connect(server)
        connection.send(orjson.dumps(hello | {"token": wrong}), text=True)
        assert closed_with(connection)[0] == 4401
    server.get(f"/v1/chat?token={HUSH}", Authorization=f"Bearer {HUSH}")
    server.get(f"/nothing/{HUSH}?token={HUSH}")
    _, metrics = server.get("/metrics")
    server.tell(SIGTERM)
    assert server.wait()[0] == 0
    written = server.log + metrics + server.line
    assert HUSH[:8] not in written
    assert "the key is shorter" in written
    assert "alice" in written or "connection_closed" in written


def test_probes_leave_no_line(start: Any) -> None:
    server = start("--log-format=json")
    before = server.log
    for path in ("/healthz", "/readyz", "/metrics", "/", "/nothing", "/v1/chat") * 10:
        assert server.get(path)[0] in (200, 404, 426)
    for _ in range(20):
        socket.create_connection(("127.0.0.1", server.port)).close()
    assert server.log == before
    assert all(orjson.loads(line) for line in before.splitlines())


def test_the_log_speaks_json_with_ids_and_without_text(
    start: Any, visitors: Visitors
) -> None:
    server = start("--log-format=json")
    connection = visitors.greet(server)
    ask(connection, "demo/fast", f"my secret is {HUSH}")
    until(connection, "done")
    server.tell(SIGTERM)
    assert server.wait()[0] == 0
    lines = [orjson.loads(line) for line in server.log.splitlines()]
    (done,) = [line for line in lines if line["event"] == "turn_done"]
    assert {"connection", "request", "turn"} <= done.keys()
    assert HUSH not in server.log


def test_a_ping_flood_of_a_peer_that_never_reads_takes_no_memory(
    start: Any, visitors: Visitors
) -> None:
    server = start()
    flooder = visitors.connect(server, max_queue=1)
    flooder.socket.settimeout(5)
    ping = bytes((0x89, 0xFD)) + bytes(4) + b"x" * 125
    before = server.resident_bytes
    sent = 0
    try:
        while sent < 50_000_000:
            sent += flooder.socket.send(ping * 5_000)
    except OSError:
        pass
    assert server.resident_bytes - before < 8_000_000
    assert server.get("/healthz")[0] == 200
    flooder.socket.close()


def test_it_listens_soon_and_without_what_it_does_not_need(start: Any) -> None:
    server = start()
    assert server.cpu_seconds < 3
    maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "msgspec" in maps
    assert "aiohttp" not in maps
    assert "jiter" not in maps  # of the openai SDK


def test_the_page_and_the_schemas_are_served(start: Any) -> None:
    server = start()
    assert server.get("/")[1].lstrip().lower().startswith("<!doctype html")
    assert orjson.loads(server.get("/schema.json")[1])
    assert orjson.loads(server.get("/asyncapi.json")[1])["asyncapi"].startswith("3.")
    assert f"http://127.0.0.1:{server.port}/" in server.log


def test_with_a_certificate_it_speaks_tls(
    start: Any, visitors: Visitors, tmp_path: Path
) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(  # noqa: S603 - our own command
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    server = start(f"--tls-cert-file={certificate}", f"--tls-key-file={key}")
    assert server.line.startswith("listening on wss://127.0.0.1:")
    trust = ssl.create_default_context(cafile=str(certificate))
    url = f"wss://127.0.0.1:{server.port}/v1/chat"
    with connect(url, ssl=trust, compression=None) as connection:
        connection.send(HELLO, text=True)
        assert receive(connection)["type"] == "welcome"


def test_a_taken_port_is_said_in_one_line(start: Any) -> None:
    server = start()
    command = [sys.executable, "-m", "wsserver", "serve", "--store=memory"]
    done = subprocess.run(  # noqa: S603 - our own command
        [*command, f"--port={server.port}"],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "Address already in use" in done.stderr
    assert "choose another with `--port`" in done.stderr
    assert len(done.stderr.splitlines()) == 1
