"""The server behind nginx, configured as docs/how-to/nginx.md says."""

import http.client
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from msgspec import Struct
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.fakes.server import ServerProcess, server
from tests.fakes.upstream import FakeUpstream, Reply
from tests.fakes.wire import Copy, Wire, wire
from tests.whole.nginx import Nginx, nginx

pytestmark = pytest.mark.nginx

KEY = "SECRET123-and-some-more"


class Behind(Struct, frozen=True):
    """A server, and the nginx in front of it."""

    server: ServerProcess
    nginx: Nginx

    @asynccontextmanager
    async def client(
        self, copies: dict[str, Copy] | None = None, **options: Any
    ) -> AsyncGenerator[Wire]:
        """Connects through nginx, as a page from there does."""
        async with wire(
            self.nginx.url,
            copies,
            ssl=self.nginx.trust,
            origin=self.nginx.https,
            additional_headers={"Authorization": f"Bearer {KEY}"},
            **options,
        ) as client:
            yield client

    async def get(self, path: str) -> tuple[int, str]:
        """Asks nginx for a page; returns status and body."""

        def ask() -> tuple[int, str]:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self.nginx.port, timeout=10, context=self.nginx.trust
            )
            try:
                connection.request("GET", path)
                response = connection.getresponse()
                return response.status, response.read().decode()
            finally:
                connection.close()

        return await anyio.to_thread.run_sync(ask)


@asynccontextmanager
async def behind(
    folder: Path, *flags: str, keys: bool = True, **values: str
) -> AsyncGenerator[Behind]:
    """Starts both."""
    given = ["--store=memory", "--trusted-proxies=127.0.0.1", *flags]
    if keys:
        file = anyio.Path(folder / "keys")
        await file.write_text(f"ann:{KEY}\n")
        await file.chmod(0o600)
        given.append(f"--auth-keys-file={file}")
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(server(*given, folder=folder))
        address = running.http.removeprefix("http://")
        made = nginx(address, folder, **values)
        yield Behind(running, await stack.enter_async_context(made))


async def test_pages_and_answers_come_through_as_they_are_made(tmp_path: Path) -> None:
    async with behind(tmp_path) as both:
        statuses = {
            path: (await both.get(path))[0]
            for path in ("/", "/client.js", "/healthz", "/readyz", "/schema.json")
        }
        assert statuses == dict.fromkeys(statuses, 200)
        assert (await both.get("/metrics"))[0] == 404, "not for everybody"
        assert (await both.get("/v1/chat"))[0] == 426
        model = "demo/long:tokens=30,tokens_per_second=30"
        async with both.client() as client:
            await client.open("c", config={"model": model})
            reply = await client.command("send", conversation="c", content="hi")
            await client.until(lambda: client.copies["c"].texts[reply["turn"]])
            first = anyio.current_time()
            await client.done("c", reply["turn"])
            assert anyio.current_time() - first > 0.5, "it came in one lump"
            deltas = [frame for frame in client.frames if frame["type"] == "delta"]
            assert len(deltas) > 15


async def test_plain_answers_are_not_gathered_either(tmp_path: Path) -> None:
    """With something behind nginx that never ends, which the server itself has not."""
    async with FakeUpstream() as slow:
        slow.script(Reply(body=b"the beginning", end="stall"))
        address = slow.base_url.removeprefix("http://").removesuffix("/v1")
        async with nginx(address, tmp_path) as proxy:

            def first_part() -> bytes:
                connection = http.client.HTTPSConnection(
                    "127.0.0.1", proxy.port, timeout=4, context=proxy.trust
                )
                connection.request("GET", "/")
                part = connection.getresponse().read1(100)
                connection.close()
                return part

            assert await anyio.to_thread.run_sync(first_part) == b"the beginning"


async def test_who_is_silent_is_not_cut_while_the_heartbeat_is_shorter(
    tmp_path: Path,
) -> None:
    """20 s and 60 s on a smaller scale: 1 s and 3 s; and 20 s, which is too long."""
    limits = {"proxy_read_timeout": "3s", "proxy_send_timeout": "3s"}
    slow, quick = tmp_path / "slow", tmp_path / "quick"
    for folder in (slow, quick):
        await anyio.Path(folder).mkdir()
    async with (
        behind(slow, "--heartbeat-seconds=20", **limits) as without,
        behind(quick, "--heartbeat-seconds=1", **limits) as both,
        without.client() as cut,
        both.client() as client,
        anyio.create_task_group() as tasks,
    ):
        began = anyio.current_time()

        async def is_cut() -> None:
            assert await cut.closed() == 1006
            assert 2.5 < anyio.current_time() - began < 6

        tasks.start_soon(is_cut)
        # The model says nothing for longer than nginx waits.
        await client.open("c", config={"model": "demo/echo:first_token_ms=4500"})
        reply = await client.command("send", conversation="c", content="still here")
        done = await client.done("c", reply["turn"])
        assert done["status"] == "completed"
        assert client.copies["c"].texts[reply["turn"]] == "still here"
        assert anyio.current_time() - began > 4


async def test_an_answer_goes_on_after_a_reload(tmp_path: Path) -> None:
    copies: dict[str, Copy] = defaultdict(Copy)
    model = "demo/long:tokens=300,tokens_per_second=100"
    async with behind(tmp_path) as both:
        async with both.client(copies) as client:
            await client.open("c", config={"model": model})
            reply = await client.command("send", conversation="c", content="hi")
            copy = copies["c"]
            await client.until(lambda: len(copy.texts[reply["turn"]]) > 100)
            both.nginx.reload()
            # The old worker ends after a second, and its connections with it.
            assert await client.closed() == 1006
        assert not copy.dones, "the reload came too late to be of interest"
        seen = copy.last
        async with both.client(copies) as client:
            again = await client.open("c")
            assert again["outcome"] == "replay"
            done = await client.done("c", reply["turn"])
        assert done["status"] == "completed"
        assert copy.last > seen
        copy.prove()


async def test_the_server_knows_where_a_client_is(tmp_path: Path) -> None:
    """The client is at 127.0.0.2, whatever it writes itself."""
    async with behind(tmp_path) as both:
        headers = {"Authorization": f"Bearer {KEY}", "X-Forwarded-For": "203.0.113.9"}
        async with connect(
            both.nginx.url,
            ssl=both.nginx.trust,
            local_addr=("127.0.0.2", 0),
            additional_headers=headers,
        ) as socket:
            await socket.send('{"type":"hello","protocol":1}')
            await socket.recv()
        await both.server.terminate()

    (line,) = [line for line in both.server.log.splitlines() if "peer=" in line]
    assert "peer=127.0.0.2" in line


async def test_pages_of_others_may_not_connect_and_the_server_knows_its_own(
    tmp_path: Path,
) -> None:
    async with behind(tmp_path) as both:
        for origin, status in (
            ("https://evil.example", 403),
            (f"https://127.0.0.1:{both.nginx.port + 1}", 403),
            (both.nginx.https, None),
        ):
            attempt = connect(both.nginx.url, ssl=both.nginx.trust, origin=origin)  # pyright: ignore[reportArgumentType]
            if status is None:
                await (await attempt).close()
                continue
            with pytest.raises(InvalidStatus) as refused:
                await attempt
            assert refused.value.response.status_code == status


async def test_no_log_of_nginx_has_a_credential(tmp_path: Path) -> None:
    async with behind(tmp_path) as both:
        async with both.client() as client:
            await client.command("open", conversation="c")
        offered = ["wsserver.v1", f"bearer.{KEY}"]
        async with connect(
            both.nginx.url,
            ssl=both.nginx.trust,
            subprotocols=offered,  # pyright: ignore[reportArgumentType]
        ) as socket:
            await socket.send(f'{{"type":"hello","protocol":1,"token":"{KEY}"}}')
            await socket.recv()
        await both.server.kill()
        assert (await both.get("/"))[0] == 502
        logs = both.nginx.logs

    assert "/v1/chat" in logs
    assert KEY not in logs


async def test_without_credentials_the_proxy_has_to_be_named(tmp_path: Path) -> None:
    """A proxy on another name could be anybody's page that leads to this machine."""
    host = {"Host": "chat.example.org"}
    flags = ["--allowed-origins=https://chat.example.org"]
    for name, given, expected in (("a", [], 421), ("b", flags, 200)):
        folder = tmp_path / name
        await anyio.Path(folder).mkdir()
        async with behind(folder, *given, keys=False) as both:

            def ask(both: Behind = both) -> int:
                connection = http.client.HTTPSConnection(
                    "127.0.0.1", both.nginx.port, timeout=10, context=both.nginx.trust
                )
                connection.request("GET", "/", headers=host)
                response = connection.getresponse()
                connection.close()
                return response.status

            assert await anyio.to_thread.run_sync(ask) == expected


async def examined(both: Behind, *, trusts: bool = True) -> dict[str, dict[str, str]]:
    """Returns what `wsserver doctor` says through nginx, by check."""
    environ = {"PATH": "/nowhere"}
    if trusts:
        environ["SSL_CERT_FILE"] = str(both.nginx.certificate)
    command = [sys.executable, "-m", "wsserver", "doctor", "--json", "--store=memory"]
    done = await anyio.run_process(
        [*command, "--url", both.nginx.https, "--token", KEY],
        env=environ,
        check=False,
    )
    assert done.stderr == b""
    findings = map(orjson.loads, done.stdout.splitlines())
    return {finding["check"]: finding for finding in findings}


async def test_the_doctor_finds_a_good_proxy_good(tmp_path: Path) -> None:
    async with behind(tmp_path) as both:
        found = await examined(both)

    for check in ("page", "websocket", "welcome", "streaming"):
        assert found[check]["status"] == "ok", found[check]


@pytest.mark.parametrize(
    ("without", "remedy"),
    [
        ("Upgrade $http_upgrade", "Upgrade"),
        ("proxy_http_version", "HTTP/1.1"),
        ("Host $http_host", "Host header"),
    ],
)
async def test_the_doctor_names_the_line_that_is_missing(
    tmp_path: Path, without: str, remedy: str
) -> None:
    async with behind(tmp_path, without=without) as both:
        found = await examined(both)

    assert found["websocket"]["status"] == "fail"
    assert remedy in found["websocket"]["remedy"]


async def test_the_doctor_tells_when_only_the_proxy_is_there(tmp_path: Path) -> None:
    async with behind(tmp_path) as both:
        await both.server.kill()
        found = await examined(both)

    assert found["page"]["status"] == "fail"
    assert "is the server running" in found["page"]["remedy"]


async def test_the_doctor_does_not_trust_any_certificate(tmp_path: Path) -> None:
    async with behind(tmp_path) as both:
        found = await examined(both, trusts=False)

    assert found["page"]["status"] == "fail"
    assert "its certificate: self-signed certificate" in found["page"]["says"]
    assert "websocket" not in found
