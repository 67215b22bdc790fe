"""Visiting a server through its public URL, as a page in a browser would.

What stands in between (a proxy, a load balancer) is what is examined: does it pass
on plain requests and handshakes? The conversation after that is `dialogue`'s.
"""

import http.client
import ipaddress
import ssl
from http import HTTPStatus
from urllib.parse import urlsplit

import anyio.to_thread
from msgspec import Struct
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidHandshake, InvalidStatus
from websockets.typing import Origin, Subprotocol

from protocol.ids import SUBPROTOCOL
from wsserver.engine.secrets import without_userinfo
from wsserver.operations.checks.dialogue import Dialogue
from wsserver.operations.checks.findings import Finding, Tell, fail, ok, warn
from wsserver.transports.http import CHAT_PATH

CONNECT_SECONDS = 10.0

_LONGEST_WORDS = 200
_UNREACHED = {HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT}
_PROXY_GUIDE = "docs/how-to/nginx.md and caddy.md have settings that work"
_REMEDIES: dict[int, str] = {
    HTTPStatus.BAD_REQUEST: "let the proxy pass the Upgrade and Connection headers as"
    f" they came: {_PROXY_GUIDE}",
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED: "let the proxy speak HTTP/1.1 to the server"
    f" (nginx: proxy_http_version): {_PROXY_GUIDE}",
    HTTPStatus.UPGRADE_REQUIRED: "let the proxy pass the Upgrade and Connection"
    f" headers: {_PROXY_GUIDE}",
    HTTPStatus.FORBIDDEN: "let the proxy pass the Host header, or name the page's"
    " origin in allowed_origins",
    HTTPStatus.MISDIRECTED_REQUEST: "give the server credentials (auth_keys_file), or"
    " name the proxy's origin in allowed_origins",
    HTTPStatus.UNAUTHORIZED: "the proxy itself asks for credentials: let it not",
    HTTPStatus.NOT_FOUND: "something else answers there: let the proxy pass all paths",
    HTTPStatus.SERVICE_UNAVAILABLE: "wait until it has started, or is no longer full",
}
# What OpenSSL makes of an answer that is none of TLS.
_NO_TLS_THERE = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"}
_OTHER_REMEDY = f"look into the proxy's log; {_PROXY_GUIDE}"


class PublicUrl(Struct, frozen=True, kw_only=True):
    """Where a server is said to be.

    Attributes:
        secure: Whether over TLS.
        host: The name or address.
        port: The port.
        authority: Host and port as they were written.
        prefix: What stands before the server's own paths; "" or `/x`.
    """

    secure: bool
    host: str
    port: int
    authority: str
    prefix: str

    @classmethod
    def parse(cls, text: str) -> "PublicUrl":
        """Reads `https://HOST`, `wss://HOST/v1/chat`, `http://HOST`, or just `HOST`.

        Raises:
            ValueError: It is none of these.
        """
        parts = urlsplit(text if "://" in text else f"https://{text}")
        if parts.scheme not in ("http", "https", "ws", "wss") or not parts.hostname:
            shown = without_userinfo(text)
            raise ValueError(f"{shown!r} is no URL such as https://chat.example.org")
        secure = parts.scheme in ("https", "wss")
        return cls(
            secure=secure,
            host=parts.hostname,
            port=parts.port or (443 if secure else 80),
            authority=parts.netloc.rpartition("@")[2],
            prefix=parts.path.removesuffix(CHAT_PATH).rstrip("/"),
        )

    @property
    def origin(self) -> str:
        """What a browser sends as `Origin` for a page from there."""
        return f"http{'s' if self.secure else ''}://{self.authority.lower()}"

    @property
    def other_origin(self) -> str:
        """The same with TLS if it has none, without if it has."""
        return f"http{'' if self.secure else 's'}://{self.authority.lower()}"

    @property
    def chat(self) -> str:
        """Where clients connect."""
        scheme = "wss" if self.secure else "ws"
        return f"{scheme}://{self.authority}{self.prefix}{CHAT_PATH}"

    @property
    def is_here(self) -> bool:
        """Whether it leads to this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


async def visit(
    url: PublicUrl, *, token: str | None, idle_seconds: float, tell: Tell
) -> None:
    """Visits the server and tells what came of it.

    Args:
        url: Where it is.
        token: Credentials for it.
        idle_seconds: How long to stay silent on the connection.
        tell: Gets each finding.
    """
    if not await _pages(url, tell):
        return
    try:
        connection = await connect(
            url.chat,
            origin=Origin(url.origin),
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            compression=None,
            open_timeout=CONNECT_SECONDS,
            ping_interval=None,
            user_agent_header="wsserver-doctor",
        )
    except (InvalidHandshake, OSError, TimeoutError) as error:
        tell(_refused(error))
        return
    try:
        tell(ok("websocket", f"{url.chat} accepts"))
        await Dialogue(connection, tell).hold(token, idle_seconds)
    finally:
        await connection.close()


async def _pages(url: PublicUrl, tell: Tell) -> bool:
    """Asks for pages; returns whether it makes sense to go on."""
    try:
        alive = await anyio.to_thread.run_sync(_get, url, "/healthz")
        page = await anyio.to_thread.run_sync(_get, url, "/")
        metrics = await anyio.to_thread.run_sync(_get, url, "/metrics")
    except ssl.SSLCertVerificationError as error:
        remedy = "renew it, or let SSL_CERT_FILE name the authority that signed it"
        tell(fail("page", f"its certificate: {error.verify_message}", remedy))
        return False
    except (OSError, http.client.HTTPException) as error:
        says = f"can't reach {url.host}:{url.port}: {error or type(error).__name__}"
        tell(fail("page", says, _remedy(error, url)))
        return False
    tell(_judge_page(alive, page))
    if metrics.status == HTTPStatus.OK and not url.is_here:
        tell(_judge_metrics(f"{url.origin}{url.prefix}/metrics", metrics))
    return alive.status not in _UNREACHED


def _remedy(error: Exception, url: PublicUrl) -> str:
    """Says what to do where nothing answered a plain request."""
    if isinstance(error, ssl.SSLError) and error.reason in _NO_TLS_THERE:
        return (
            f"it has no TLS there: write {url.other_origin}, or let the proxy have it"
        )
    if isinstance(error, http.client.HTTPException | ConnectionResetError):
        return f"if it has TLS there, write {url.other_origin}"
    return "is the proxy running, does the name lead to it, is the port open?"


class _Answer(Struct, frozen=True, kw_only=True):
    status: int
    words: str
    from_here: bool


def _get(url: PublicUrl, path: str) -> _Answer:
    connect_to = (
        http.client.HTTPSConnection if url.secure else http.client.HTTPConnection
    )
    connection = connect_to(url.host, url.port, timeout=CONNECT_SECONDS)
    try:
        connection.connect()
        # Debian has a machine's own name lead to 127.0.1.1.
        address = ipaddress.ip_address(connection.sock.getpeername()[0])
        connection.request("GET", url.prefix + path, headers={"Host": url.authority})
        response = connection.getresponse()
        kind = response.getheader("Content-Type", "")
        return _Answer(
            status=response.status,
            words=_words(kind, response.read(2048)),
            from_here=address.is_loopback,
        )
    finally:
        connection.close()


def _judge_page(alive: _Answer, page: _Answer) -> Finding:
    if alive.status in _UNREACHED:
        says = f"the proxy says {alive.status}: it does not reach the server"
        return fail(
            "page", says, "is the server running, and does the proxy know where?"
        )
    for path, answer in (("/healthz", alive), ("/", page)):
        if answer.status != HTTPStatus.OK:
            remedy = _REMEDIES.get(answer.status, _OTHER_REMEDY)
            return fail(
                "page", f"{path} answers {answer.status} {answer.words}", remedy
            )
    return ok("page", "the chat page and /healthz are there")


def _judge_metrics(page: str, metrics: _Answer) -> Finding:
    """Says who can read them: this machine may, where nobody else does."""
    if metrics.from_here:
        says = f"{page} can be read from here, and its name leads to this machine"
        return warn(
            "metrics", says, "ask from another machine: it should be refused there"
        )
    says = f"anyone can read {page}"
    return warn(
        "metrics", says, "let the proxy refuse that path, or set metrics_access"
    )


def _refused(error: Exception) -> Finding:
    """Says why there was no WebSocket."""
    if not isinstance(error, InvalidStatus):
        says = f"no handshake: {error or 'no answer in time'}"
        return fail("websocket", says, _OTHER_REMEDY)
    response = error.response
    kind = response.headers.get("Content-Type", "")
    says = f"refused with {response.status_code} {_words(kind, bytes(response.body or b''))}"
    remedy = _REMEDIES.get(response.status_code, _OTHER_REMEDY)
    return fail("websocket", says.rstrip(), remedy)


def _words(content_type: str, body: bytes) -> str:
    """Returns what an answer says to a person; a page of HTML says nothing."""
    if not content_type.startswith("text/plain"):
        return ""
    return body.decode("utf-8", "replace").strip()[:_LONGEST_WORDS]
