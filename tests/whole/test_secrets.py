"""Credentials are written nowhere (L-12): in no frame, answer, log line or metric."""

import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from anyio import to_thread
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.auth.issuer import SECRET, now
from tests.fakes.server import ServerProcess
from tests.whole.keyed import hmac_token, tokens_by_secret

HELLO = {"type": "hello", "protocol": 1}
WAYS = ("header", "subprotocol", "hello", "query", "cookie", "none")
PATHS = ("/metrics", "/{secret}?token={secret}", "/v1/chat")

KINDS = {
    "good": lambda: hmac_token(jti="x" * 90),
    "expired": lambda: hmac_token(exp=now() - 60),
    "forged": lambda: hmac_token(key=b"another-secret" * 5),
    "foreign": lambda: hmac_token(aud="another"),
    "cut": lambda: hmac_token()[:-5],
}


def options(way: str, secret: str) -> dict[str, Any]:
    """Returns how a client connects that gives its secret in a way."""
    match way:
        case "header":
            return {"additional_headers": {"Authorization": f"Bearer {secret}"}}
        case "cookie":
            return {"additional_headers": {"Cookie": f"token={secret}"}}
        case "subprotocol":
            return {"subprotocols": ["wsserver.v1", f"bearer.{secret}"]}
        case _:
            return {}


async def converse(socket: ClientConnection, secret: str, *, hello: bool) -> str:
    """Provokes errors of every kind with the secret in the frames.

    Returns all that was said, and how it ended.
    """
    frames: list[Any] = [
        HELLO | ({"token": secret} if hello else {}),
        "{not json " + secret,
        {"type": secret},
        {"type": "refresh", "id": secret[:120], "token": secret},
        {"type": "refresh", "id": "r", "token": secret + "x"},
        {"type": "refresh", "id": "r", "token": [secret]},
        {"type": "open", "id": "o", "conversation": secret},
        {"type": "open", "id": "o", "conversation": "c", "config": {"model": "m"}},
        {"type": "hello", "protocol": 1, "token": secret},
        {"type": "close", "id": "end", "conversation": "c"},
    ]
    said: list[str] = []
    try:
        for frame in frames:
            text = frame if isinstance(frame, str) else orjson.dumps(frame).decode()
            await socket.send(text)
        with anyio.fail_after(15):
            while not said or '"re":"end"' not in said[-1]:
                said.append(str(await socket.recv()))
    except ConnectionClosed:
        said += [str(socket.close_code), socket.close_reason or ""]
    # The one thing that comes back as it went: the id of a command.
    return "\n".join(said).replace(secret[:120], "", 1)


async def everything(running: ServerProcess, secret: str, kind: str) -> list[str]:
    """Gives the secret in every way; returns all that came of it."""
    told: list[str] = []
    for way in WAYS:
        query = f"?token={secret}&access_token={secret}" if way == "query" else ""
        async with connect(
            running.url + query, compression=None, **options(way, secret)
        ) as socket:
            told += [str(socket.response), str(socket.subprotocol)]
            told.append(await converse(socket, secret, hello=way == "hello"))
            welcome = kind == "good" and way in ("header", "subprotocol", "hello")
            assert ('"type":"welcome"' in told[-1]) is welcome, way
    for path in PATHS:
        url = running.http + path.format(secret=secret)
        told.append(await to_thread.run_sync(get, url, secret))
    return told


def get(url: str, secret: str) -> str:
    """Asks for a page with the secret in the header; returns all that came."""
    request = urllib.request.Request(  # noqa: S310 - our own server
        url, headers={"Authorization": f"Bearer {secret}"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=5) as response:
            return str(response.headers) + response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return str(error.headers) + error.read().decode()


@pytest.mark.parametrize("log_format", ["console", "json"])
@pytest.mark.parametrize("kind", KINDS)
async def test_no_token_is_written_anywhere(
    tmp_path: Path, kind: str, log_format: str
) -> None:
    secret = KINDS[kind]()
    flags = [f"--log-format={log_format}", "--log-level=debug"]
    async with tokens_by_secret(tmp_path, *flags) as running:
        told = await everything(running, secret, kind)
        assert await running.terminate() == 0
        told.append(running.log)
    written = "\n".join(told)
    assert "connection_closed" in written
    assert "wsserver_connections" in written
    head, body, signature = secret.split(".")
    for part in (head, body[:60], body[-60:], signature[:20], SECRET.decode()):
        assert part not in written
