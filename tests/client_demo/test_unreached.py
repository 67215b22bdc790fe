"""What a person is told where a server can't be reached."""

import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import pytest

from client_demo.client import connect
from client_demo.errors import NotConnectedError
from client_demo.unreached import why_unreached
from tests.fakes.serving import serving

URL = "wss://chat.example:8765/v1/chat"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def answering(data: bytes) -> AsyncGenerator[int]:
    """A port at which something answers whatever is said, and hangs up."""

    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(data)

    async with serving(answer) as port:
        yield port


@pytest.mark.parametrize(
    ("scheme", "data", "says"),
    [
        # An alert of TLS, as a server of that sends who says something else.
        ("ws", b"\x15\x03\x01\x00\x02\x02\x46", "if it has TLS, use wss://"),
        ("wss", b"HTTP/1.1 400 Bad Request\r\n\r\n", "has no TLS; use ws://"),
        ("ws", b"HTTP/1.1 404 Not Found\r\n\r\n", "ends with /v1/chat"),
    ],
)
async def test_the_other_scheme_is_named(scheme: str, data: bytes, says: str) -> None:
    async with answering(data) as port:
        with pytest.raises(NotConnectedError, match=says):
            async with connect(f"{scheme}://127.0.0.1:{port}/v1/chat"):
                raise AssertionError("it must not be entered")


def certificate_error() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    return error


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (certificate_error(), "chat.example is not to be trusted: self-signed cert"),
        (certificate_error(), "let SSL_CERT_FILE name it"),
        (
            socket.gaierror(-2, "Name or service not known"),
            "chat.example: Name or service not known; is the name the right one?",
        ),
        (ConnectionRefusedError(111, "refused"), "is the server running"),
        (
            OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1)"),
            "is the server running",
        ),
        (TimeoutError(), "chat.example gave no answer in time"),
        (EOFError(), "EOFError"),
    ],
)
def test_what_to_do_is_said(error: Exception, says: str) -> None:
    assert says in why_unreached(URL, error)
