"""The whole server: a real process, real sockets, a real HTTP upstream."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.fakes.server import ServerProcess, server
from tests.fakes.upstream import FakeUpstream
from tests.whole.case import Case


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


@pytest.fixture(scope="module")
async def case_server(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[tuple[ServerProcess, FakeUpstream]]:
    """One server and its upstream for all cases of a file."""
    folder = tmp_path_factory.mktemp("cases")
    async with FakeUpstream(strict=True) as upstream:
        env = {
            "OPENAI_BASE_URL": upstream.base_url,
            "OPENAI_API_KEY": "sk-test",
            "WSSERVER_MAX_ACTIVE_TURNS": "64",
        }
        async with server("--store", "sqlite", folder=folder, env=env) as made:
            yield made, upstream


@pytest.fixture
def case(case_server: tuple[ServerProcess, FakeUpstream]) -> Case:
    """One case on that server."""
    return Case(*case_server)
