"""Servers that ask who somebody is."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from tests.auth.issuer import AUDIENCE, SECRET, token
from tests.fakes.server import ServerProcess, server


@asynccontextmanager
async def tokens_by_secret(
    folder: Path, *flags: str, **env: str
) -> AsyncGenerator[ServerProcess]:
    """A server that takes tokens that a secret has signed."""
    secret = anyio.Path(folder / "secret")
    await secret.write_bytes(SECRET)
    await secret.chmod(0o600)
    given = {
        "WSSERVER_AUTH_JWT_ALGORITHMS": "HS256",
        "WSSERVER_AUTH_JWT_KEY_FILE": str(secret),
        "WSSERVER_AUTH_JWT_AUDIENCE": AUDIENCE,
        "WSSERVER_STORE": "memory",
    }
    async with server(*flags, folder=folder, env=given | env) as running:
        yield running


def hmac_token(**claims: Any) -> str:
    return token("hmac", **claims)
