"""A real nginx in front of a server, with the configuration that the docs give."""

import os
import re
import shutil
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGHUP

import anyio
import anyio.abc
import pytest

CONF = Path(__file__).parents[2] / "docs" / "how-to" / "nginx.conf"
START_SECONDS = 10.0
STOP_SECONDS = 5.0

# As the guide says to set it, beside the file; and folders that a test may use.
_MAIN = """\
{user}
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
worker_processes 1;
worker_shutdown_timeout 1s;
events {{ worker_connections 512; }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


class Nginx:
    """One nginx.

    Attributes:
        port: Where it listens.
        trust: Believes its certificate.
        certificate: The file of that.
    """

    def __init__(self, folder: Path, process: anyio.abc.Process, port: int) -> None:
        self.port = port
        self.certificate = folder / "certificate.pem"
        self.trust = ssl.create_default_context(cafile=str(self.certificate))
        self._folder = folder
        self._process = process

    @property
    def https(self) -> str:
        """Its address, without a slash at the end."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"wss://127.0.0.1:{self.port}/v1/chat"

    @property
    def logs(self) -> str:
        """All that it has logged."""
        return "".join(path.read_text() for path in self._folder.glob("*.log"))

    def reload(self) -> None:
        """As `nginx -s reload` does: new workers; the old ones end when they may."""
        self._process.send_signal(SIGHUP)


def program() -> str:
    """Returns where nginx is; skips the test where it is not."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    found = os.environ.get("NGINX") or shutil.which("nginx", path=path)
    if found is None:
        pytest.skip("nginx is not installed (NGINX may name another)")
    return found


@asynccontextmanager
async def nginx(
    server: str, folder: Path, *, without: str = "", **values: str
) -> AsyncGenerator[Nginx]:
    """Runs nginx in front of a server.

    Args:
        server: The server's `host:port`.
        folder: Where its files go.
        without: Leaves out the lines that hold this.
        values: Other values of directives of the docs' file.
    """
    binary = program()
    port = _free_port()
    await _make_certificate(folder)
    changes = {
        "server 127.0.0.1:8765": f"server {server}",
        "listen 443": f"listen 127.0.0.1:{port}",
        "/etc/ssl/certs/chat.example.org.pem": f"{folder}/certificate.pem",
        "/etc/ssl/private/chat.example.org.key": f"{folder}/key.pem",
    }
    site = CONF.read_text()
    for old, new in changes.items():
        assert site.count(old) == 1, old
        site = site.replace(old, new)
    for name, value in values.items():
        site, count = re.subn(rf"\b({name}) [^;]+;", rf"\1 {value};", site)
        assert count == 1, name
    if without:
        assert without in site
        lines = site.splitlines(keepends=True)
        site = "".join(line for line in lines if without not in line)
    (folder / "site.conf").write_text(site)
    # Or its workers may not even enter the folder.
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(_MAIN.format(user=user, folder=folder))
    files = ["-p", str(folder), "-c", str(folder / "nginx.conf")]
    process = await anyio.open_process(
        [binary, *files, "-e", str(folder / "error.log"), "-g", "daemon off;"],
        stdout=None,
        stderr=None,
    )
    try:
        await _until_it_listens(port, process)
        yield Nginx(folder, process, port)
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.terminate()
            with anyio.move_on_after(STOP_SECONDS):
                await process.wait()
            await process.aclose()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def _until_it_listens(port: int, process: anyio.abc.Process) -> None:
    with anyio.fail_after(START_SECONDS):
        while process.returncode is None:
            try:
                async with await anyio.connect_tcp("127.0.0.1", port):
                    return
            except OSError:
                await anyio.sleep(0.02)
    raise AssertionError(f"nginx ended with {process.returncode}")


async def _make_certificate(folder: Path) -> None:
    await anyio.run_process(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(folder / "key.pem")),
            *("-out", str(folder / "certificate.pem")),
        ]
    )
