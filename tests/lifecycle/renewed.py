"""Files that others renew, and what clients and the log see of that."""

import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import orjson
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

WAIT_SECONDS = 10
HELLO = {"type": "hello", "protocol": 1}


def until_logged(server: Any, event: str, times: int = 1) -> dict[str, Any]:
    """Waits for a line of the log; returns the last of so many."""
    deadline, pause = monotonic() + WAIT_SECONDS, Event()
    while monotonic() < deadline:
        lines = [orjson.loads(line) for line in server.log.splitlines()]
        found = [line for line in lines if line["event"] == event]
        if len(found) >= times:
            return found[times - 1]
        pause.wait(0.01)
    raise AssertionError(f"no {event} in {server.log}")


def receive(client: ClientConnection) -> dict[str, Any]:
    return orjson.loads(client.recv(timeout=WAIT_SECONDS))


def until(client: ClientConnection, kind: str) -> dict[str, Any]:
    while True:
        frame = receive(client)
        if frame["type"] == kind:
            return frame


def is_welcome(client: ClientConnection) -> bool:
    return receive(client)["type"] == "welcome"


def close_code(client: ClientConnection) -> int:
    try:
        while True:
            receive(client)
    except ConnectionClosed as closed:
        return 1006 if closed.rcvd is None else closed.rcvd.code


def ask(client: ClientConnection, model: str) -> None:
    """Opens a conversation and starts a turn."""
    for command in (
        {"type": "open", "id": "o", "conversation": "c", "config": {"model": model}},
        {"type": "send", "id": "s", "conversation": "c", "content": "hi"},
    ):
        client.send(orjson.dumps(command), text=True)


def a_folder(file: Path) -> None:
    """Puts a folder in the file's place."""
    file.unlink(missing_ok=True)
    file.mkdir()


@contextmanager
def clients() -> Generator[Callable[..., ClientConnection]]:
    """Connects with a key; all clients are closed in the end."""
    with ExitStack() as stack:

        def call(server: Any, key: str, **options: Any) -> ClientConnection:
            scheme = "wss" if "ssl" in options else "ws"
            url = f"{scheme}://127.0.0.1:{server.port}/v1/chat"
            client = stack.enter_context(
                connect(url, compression=None, close_timeout=0.1, **options)
            )
            client.send(orjson.dumps(HELLO | {"token": key}), text=True)
            return client

        yield call


class Pair:
    """A certificate and its key, of the files that the server is told of."""

    def __init__(self, folder: Path) -> None:
        self.certificate = folder / "certificate.pem"
        self.key = folder / "key.pem"

    def renew(self) -> bytes:
        """Writes others; returns the certificate as clients get it."""
        openssl = shutil.which("openssl")
        if openssl is None:
            pytest.skip("openssl makes the certificate")
        subprocess.run(  # noqa: S603 - our own command
            [
                *(openssl, "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"),
                *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"),
                *("-keyout", str(self.key), "-out", str(self.certificate)),
            ],
            check=True,
            capture_output=True,
        )
        return ssl.PEM_cert_to_DER_cert(self.certificate.read_text())


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def presented(server: Any, name: str | None = None) -> bytes | None:
    """Returns the certificate that a new connection gets."""
    with (
        socket.create_connection(("127.0.0.1", server.port), WAIT_SECONDS) as plain,
        trusting().wrap_socket(plain, server_hostname=name) as secure,
    ):
        return secure.getpeercert(binary_form=True)
