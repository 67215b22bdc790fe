"""The connections to one upstream: made when needed, kept for a while."""

import asyncio
import base64
import ipaddress
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import structlog

from wsserver.providers.http.connection import UpstreamConnection
from wsserver.providers.http.dialing import reach

# Shorter than what servers allow (uvicorn: 5 s), so that a connection that is about
# to be closed over there is not used for one more request.
_KEEPALIVE_SECONDS = 4.0
_PORTS = {"http": 80, "https": 443}


class ProxyRefusedError(ConnectionError):
    """The proxy opened no tunnel."""


class UpstreamPool:
    """Gives connections to one origin, over a proxy where there is one.

    It has no limit of its own; `chat.provider` counts.

    Attributes:
        absolute: Whether requests name the whole URL, as a plain proxy wants it.
        proxy_headers: What such a proxy has to be sent with each request.
    """

    def __init__(
        self,
        base_url: str,
        *,
        connect_timeout_seconds: float,
        trust_environment: bool,
        tls: ssl.SSLContext,
    ) -> None:
        """Makes an empty pool.

        Args:
            base_url: Where the upstream is.
            connect_timeout_seconds: For TCP, tunnel and TLS together.
            trust_environment: Whether the usual variables name proxies.
            tls: For `https` URLs.
        """
        self._origin = urlsplit(base_url)
        # Found once: looking for each request would read the environment each time.
        self._proxy = _proxy_for(self._origin) if trust_environment else None
        self._timeout = connect_timeout_seconds
        self._tls = tls
        self._idle: list[UpstreamConnection] = []
        self._used: set[UpstreamConnection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self.absolute = self._proxy is not None and self._origin.scheme == "http"
        self.proxy_headers: list[tuple[bytes, bytes]] = []
        if self._proxy is not None:
            self.proxy_headers = _credentials(self._proxy)

    async def take(self) -> UpstreamConnection:
        """Returns a connection that carries nothing.

        Raises:
            OSError: There is none to be had; TimeoutError when it took too long.
        """
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                self._used.add(connection)
                return connection
        # Not anyio's: the driver below is asyncio's too.
        async with asyncio.timeout(self._timeout):
            with _nobodys():
                connection = await self._connect()
        self._used.add(connection)
        return connection

    def give_back(self, connection: UpstreamConnection) -> None:
        """Keeps a connection whose answer was read to its end, drops any other."""
        self._used.discard(connection)
        if not connection.reusable:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(_KEEPALIVE_SECONDS, self._drop_old)

    def close(self) -> None:
        """Drops all connections, those in use too."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for connection in (*self._idle, *self._used):
            connection.abort()
        self._idle.clear()
        self._used.clear()

    def _drop_old(self) -> None:
        self._sweep = None
        loop = asyncio.get_running_loop()
        before = loop.time() - _KEEPALIVE_SECONDS
        kept: list[UpstreamConnection] = []
        for connection in self._idle:
            if connection.reusable and connection.idle_since > before:
                kept.append(connection)
            else:
                connection.abort()
        self._idle = kept
        if kept:
            oldest = kept[0].idle_since + _KEEPALIVE_SECONDS
            self._sweep = loop.call_at(oldest, self._drop_old)

    async def _connect(self) -> UpstreamConnection:
        secure = self._origin.scheme == "https"
        if self._proxy is None:
            return await _open(self._origin, self._tls if secure else None)
        connection = await _open(self._proxy, self._tls_of(self._proxy))
        if secure:
            try:
                await self._tunnel(connection)
            except BaseException:
                connection.abort()
                raise
        return connection

    def _tls_of(self, url: SplitResult) -> ssl.SSLContext | None:
        return self._tls if url.scheme == "https" else None

    async def _tunnel(self, connection: UpstreamConnection) -> None:
        host = self._origin.hostname or ""
        target = f"{_bracketed(host)}:{self._origin.port or _PORTS['https']}".encode()
        head = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n" % (target, target)
        for name, value in self.proxy_headers:
            head += b"%b: %b\r\n" % (name, value)
        answer = await connection.request(head + b"\r\n", b"")
        if not 200 <= answer.status < 300:
            raise ProxyRefusedError(f"the proxy answered {answer.status}")
        await connection.start_tls(self._tls, host)


async def _open(url: SplitResult, tls: ssl.SSLContext | None) -> UpstreamConnection:
    host, port = url.hostname or "", url.port or _PORTS[url.scheme]
    options: dict[str, Any] = {"server_hostname": host} if tls else {}
    if _is_address(host):
        options |= {"host": host, "port": port}
    else:
        options["sock"] = await reach(host, port)
    _, connection = await asyncio.get_running_loop().create_connection(
        UpstreamConnection, ssl=tls, **options
    )
    return connection


@contextmanager
def _nobodys() -> Generator[None]:
    """Makes what is opened meanwhile nobody's in the log.

    All that a connection reads is handled in the context in which it was opened, and
    it goes on to carry the model calls of other turns.
    """
    ids = structlog.contextvars.get_contextvars()
    structlog.contextvars.clear_contextvars()
    try:
        yield
    finally:
        structlog.contextvars.bind_contextvars(**ids)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _proxy_for(origin: SplitResult) -> SplitResult | None:
    if proxy_bypass(origin.hostname or ""):
        return None
    proxies = getproxies()
    found = proxies.get(origin.scheme) or proxies.get("all")
    if not found:
        return None
    return urlsplit(found if "://" in found else f"http://{found}")


def _credentials(proxy: SplitResult) -> list[tuple[bytes, bytes]]:
    if proxy.username is None:
        return []
    user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    secret = base64.b64encode(user.encode())
    return [(b"Proxy-Authorization", b"Basic " + secret)]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
