"""The HTTP connections to one upstream, as a transport under the openai SDK.

It stands on aiohttp and does what the SDK's own transport does not: every fault
becomes an `UpstreamError` that says which it was, the body of an error answer is
read within bounds, and an answer can be closed without waiting, so that a
cancellation at any point gives the connection back or closes it.

Importing this module is slow (aiohttp, httpx2, TLS): `openai_chat` does it late and
in a thread.
"""

import io
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Final, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import anyio
import httpx2
from aiohttp.http import HttpProcessingError

from wsserver.engine.model import Failure, UpstreamError
from wsserver.providers.exact_json import read_json
from wsserver.providers.failures import failure_from_status, read_retry_after

# A handler's error page is cut here; what matters stands at its beginning.
_MAX_ERROR_BYTES: Final = 64 * 1024
_ERROR_BODY_SECONDS: Final = 5.0
# Shorter than what servers allow (uvicorn: 5 s), so that a connection that is about
# to be closed over there is not used for one more request.
_KEEPALIVE_SECONDS: Final = 4.0

_TRANSPORT_ERRORS: Final = (aiohttp.ClientError, HttpProcessingError, OSError)

_EXTENSION: Final = "wsserver.body"


class UpstreamBody(httpx2.AsyncByteStream):
    """The body of a 2xx answer."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @property
    def content_type(self) -> str | None:
        """The answer's `Content-Type`, or None."""
        return self._response.headers.get("Content-Type")

    async def read(self) -> bytes:
        """Returns what has come since the last read; b"" at the proper end.

        Raises:
            ConnectionError: The connection broke. What came before is returned
                first.
        """
        content = self._response.content
        try:
            return await content.readany()
        except _TRANSPORT_ERRORS as error:
            # aiohttp puts the fault before the bytes that came ahead of it.
            content.set_exception(cast(BaseException, None))
            data = content.read_nowait()
            content.set_exception(error)
            if data:
                return data
            raise ConnectionError("the answer broke off") from error

    def close(self) -> None:
        """Closes the connection at once, unless the answer was read to its end."""
        self._response.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self.read():
            yield data

    async def aclose(self) -> None:
        """Does as `close`."""
        self.close()


class UpstreamTransport(httpx2.AsyncBaseTransport):
    """Sends requests to an upstream over pooled connections.

    The pool has no limit of its own: aiohttp loses a wake-up when a task that waits
    for a connection is cancelled as it gets one. `openai_chat` counts instead.

    Args:
        base_url: Where the upstream is.
        connect_timeout_seconds: For the TCP and the TLS handshake together. Nothing
            else has a limit here.
        trust_environment: Whether the usual variables name proxies and certificates.
    """

    def __init__(
        self, base_url: str, *, connect_timeout_seconds: float, trust_environment: bool
    ) -> None:
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=connect_timeout_seconds
        )
        # Found once. aiohttp's own `trust_env` would look for each request, and add
        # a password of a netrc file to the key.
        self._proxy = _proxy_for(base_url) if trust_environment else None
        self._tls = httpx2.create_ssl_context(trust_env=trust_environment)
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends `request` and returns the answer once its headers are there.

        Raises:
            UpstreamError: There is no answer, or it is no 2xx.
        """
        try:
            response = await self._open_session().request(
                request.method,
                str(request.url),
                headers=request.headers,
                data=io.BytesIO(request.content),
                allow_redirects=False,
                proxy=self._proxy,
            )
        except (*_TRANSPORT_ERRORS, ValueError) as error:
            raise UpstreamError(_failure_of(error)) from error
        if not 200 <= response.status < 300:
            try:
                raise UpstreamError(await _refusal_of(response))
            finally:
                response.close()
        body = UpstreamBody(response)
        return httpx2.Response(
            response.status,
            headers=list(response.raw_headers),
            stream=body,
            extensions={_EXTENSION: body},
            request=request,
        )

    async def aclose(self) -> None:
        """Closes all connections, those in use too."""
        if self._session is not None:
            await self._session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        # Not in __init__: a session needs the running event loop.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=_KEEPALIVE_SECONDS, ssl=self._tls
                ),
                # Cookies would tie the turns of different people together.
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=self._timeout,
            )
        return self._session


def _proxy_for(base_url: str) -> str | None:
    parts = urlsplit(base_url)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def body_of(response: httpx2.Response) -> UpstreamBody:
    """Returns the body of a response that this transport made."""
    body = response.extensions[_EXTENSION]
    assert isinstance(body, UpstreamBody), "no other transport is in use"
    return body


async def _refusal_of(response: aiohttp.ClientResponse) -> Failure:
    content = bytearray()
    with anyio.move_on_after(_ERROR_BODY_SECONDS):
        try:
            while len(content) < _MAX_ERROR_BYTES:
                data = await response.content.readany()
                if not data:
                    break
                content += data
        except _TRANSPORT_ERRORS:
            pass  # What came of it is enough.
    text = bytes(content[:_MAX_ERROR_BYTES])
    try:
        payload = read_json(text)
    except ValueError:
        payload = text.decode("utf-8", "replace")
    headers = {name.lower(): value for name, value in response.headers.items()}
    retry_after_s = read_retry_after(headers, datetime.now(UTC))
    return failure_from_status(response.status, payload, retry_after_s)


def _failure_of(error: Exception) -> Failure:
    """Says why there is no answer, without names and addresses of the network."""
    kind = type(error)
    match error:
        case aiohttp.ServerTimeoutError() | TimeoutError():
            code, message = "upstream_timeout", "The upstream took too long to connect."
        case aiohttp.ClientConnectorDNSError():
            code, message = "upstream_unavailable", "The upstream's name is not known."
        case aiohttp.ClientConnectorCertificateError():
            code, message = "upstream_unavailable", "The upstream's certificate is bad."
        case aiohttp.ClientSSLError() | ssl.SSLError():
            code, message = "upstream_unavailable", "No TLS with the upstream."
        case aiohttp.ClientConnectorError():
            code, message = "upstream_unavailable", "The upstream can't be reached."
        case aiohttp.ClientConnectionError() | OSError():
            code, message = "upstream_unavailable", "The upstream hung up."
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            code, message = "upstream_error", "The upstream's address is no HTTP URL."
        case _:
            code, message = "upstream_error", "The upstream's answer is no HTTP."
    final: tuple[type[Exception], ...] = (
        aiohttp.ClientConnectorCertificateError,
        aiohttp.InvalidURL,
        aiohttp.NonHttpUrlClientError,
    )
    return Failure(
        code=code,
        message=message,
        retryable=not isinstance(error, final),
        upstream_code=kind.__name__,
    )
