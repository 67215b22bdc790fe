"""The whole server: a real process, real sockets, a real HTTP upstream."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.fakes.server import ServerProcess, server
from tests.fakes.upstream import FakeUpstream


@pytest.fixture
async def upstream() -> AsyncGenerator[FakeUpstream]:
    """An upstream that is as strict as the strictest provider."""
    async with FakeUpstream(strict=True) as made:
        yield made


@pytest.fixture
async def running(
    upstream: FakeUpstream, tmp_path: Path
) -> AsyncGenerator[ServerProcess]:
    """A server in front of that upstream, with the sqlite store."""
    env = {"OPENAI_BASE_URL": upstream.base_url, "OPENAI_API_KEY": "sk-test"}
    async with server("--store", "sqlite", folder=tmp_path, env=env) as made:
        yield made
