"""The server behind Caddy, with the configuration that the docs give."""

import http.client
import os
import shutil
import socket
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.fakes.server import ServerProcess, server
from tests.fakes.wire import Copy, wire

pytestmark = pytest.mark.caddy

CADDYFILE = Path(__file__).parents[2] / "docs" / "how-to" / "Caddyfile"
KEY = "SECRET123-and-some-more"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def caddy(running: ServerProcess, folder: Path) -> AsyncGenerator[int]:
    """Runs Caddy in front of a server, without TLS; yields its port."""
    program = os.environ.get("CADDY") or shutil.which("caddy")
    if program is None:
        pytest.skip("caddy is not installed (CADDY may name another)")
    port = free_port()
    site = CADDYFILE.read_text()
    for old, new in (
        ("chat.example.org {", f"{{\n\tadmin off\n}}\nhttp://127.0.0.1:{port} {{"),
        ("127.0.0.1:8765", running.http.removeprefix("http://")),
    ):
        assert site.count(old) == 1, old
        site = site.replace(old, new)
    file = anyio.Path(folder / "Caddyfile")
    await file.write_text(site)
    process = await anyio.open_process(
        [program, "run", "--adapter", "caddyfile", "--config", str(file)],
        stdout=None,
        stderr=None,
        env=os.environ | {"HOME": str(folder)},
    )
    try:
        with anyio.fail_after(10):
            while True:
                try:
                    async with await anyio.connect_tcp("127.0.0.1", port):
                        break
                except OSError:
                    await anyio.sleep(0.05)
        yield port
    finally:
        with anyio.CancelScope(shield=True):
            process.terminate()
            await process.aclose()


async def test_it_streams_and_the_server_knows_where_a_client_is(
    tmp_path: Path,
) -> None:
    keys = anyio.Path(tmp_path / "keys")
    await keys.write_text(f"ann:{KEY}\n")
    await keys.chmod(0o600)
    flags = [
        "--store=memory",
        "--trusted-proxies=127.0.0.1",
        f"--auth-keys-file={keys}",
    ]
    copies: dict[str, Copy] = defaultdict(Copy)
    async with (
        server(*flags, folder=tmp_path) as running,
        caddy(running, tmp_path) as port,
    ):

        def status(path: str) -> int:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", path)
            response = connection.getresponse()
            connection.close()
            return response.status

        paths = ("/", "/healthz", "/metrics", "/v1/chat")
        statuses = [await anyio.to_thread.run_sync(status, path) for path in paths]
        assert statuses == [200, 200, 404, 426]
        async with wire(
            f"ws://127.0.0.1:{port}/v1/chat",
            copies,
            token=KEY,
            origin=f"http://127.0.0.1:{port}",
            local_addr=("127.0.0.2", 0),
            additional_headers={"X-Forwarded-For": "203.0.113.9"},
        ) as client:
            model = "demo/long:tokens=30,tokens_per_second=30"
            await client.open("c", config={"model": model})
            reply = await client.command("send", conversation="c", content="hi")
            await client.until(lambda: copies["c"].texts[reply["turn"]])
            first = anyio.current_time()
            await client.done("c", reply["turn"])
            assert anyio.current_time() - first > 0.5, "it came in one lump"
        await running.terminate()

    copies["c"].prove()
    (line,) = [line for line in running.log.splitlines() if "peer=" in line]
    assert "peer=127.0.0.2" in line
