"""Who may connect: rules about a request's headers, before anything is upgraded.

Pure. Messages never repeat what a client sent, for it may be a credential.
"""

import re
from collections.abc import Set as AbstractSet
from http import HTTPStatus

from msgspec import Struct
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHeader
from websockets.headers import parse_subprotocol

from protocol.ids import SUBPROTOCOL
from wsserver.connections.transport import Handshake

_BEARER = "bearer."
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_PORT = re.compile(r":\d+$")
_AUTHORITY = re.compile(r"[a-z0-9_.-]+(:\d+)?|\[[0-9a-f:.]+\](:\d+)?")


class RefusedError(Exception):
    """The request is refused.

    Attributes:
        status: The HTTP status.
        message: One line for a person.
    """

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class OriginError(RefusedError):
    """A page may not connect.

    Attributes:
        origin: Its origin.
    """

    def __init__(self, origin: str) -> None:
        super().__init__(
            HTTPStatus.FORBIDDEN,
            "Pages of that origin may not connect; allowed_origins names those"
            " that may.",
        )
        self.origin = origin


class Admission(Struct, frozen=True, kw_only=True):
    """The rules of one server.

    Attributes:
        allowed_origins: Origins that may connect besides the server's own.
        loopback_only: Whether the server has no credentials. Then a page whose
            name was made to point at this machine ("DNS rebinding") is kept out
            by the `Host` it sends: only loopback names, and the hosts of
            `allowed_origins`, are taken.
    """

    allowed_origins: AbstractSet[str]
    loopback_only: bool

    def check_host(self, headers: Headers) -> None:
        """Returns if the `Host` header names this server.

        Raises:
            RefusedError: It does not.
        """
        if not self.loopback_only:
            return
        host = (_one(headers, "Host") or "").lower()
        # Any port: an SSH tunnel may have changed it, and it proves nothing.
        name = _PORT.sub("", host)
        proxies = {_host_of(origin) for origin in self.allowed_origins}
        if name not in _LOOPBACK_NAMES and not _same_host(host, proxies):
            raise RefusedError(
                HTTPStatus.MISDIRECTED_REQUEST,
                "Without credentials this server answers to localhost only; to put a"
                " proxy before it, name the proxy's origin in allowed_origins.",
            )

    def check_origin(self, headers: Headers) -> None:
        """Returns if the page that connects may.

        Browsers do not apply the same-origin rule to WebSockets; this does. No
        `Origin` means no browser.

        Raises:
            OriginError: It may not.
            RefusedError: A header is malformed.
        """
        origin = _one(headers, "Origin")
        if origin is None or origin in self.allowed_origins:
            return
        host = _one(headers, "Host") or ""
        if not _same_host(host, {_host_of(origin)}):
            raise OriginError(origin)


def read_handshake(headers: Headers, peer: str) -> Handshake:
    """Returns what the headers say of the client.

    Raises:
        RefusedError: A header is malformed.
    """
    try:
        offered = [
            name
            for value in headers.get_all("Sec-WebSocket-Protocol")
            for name in parse_subprotocol(value)
        ]
    except InvalidHeader:
        raise RefusedError(
            HTTPStatus.BAD_REQUEST,
            "Sec-WebSocket-Protocol is malformed; a token with other characters than"
            " HTTP allows there goes into `hello`.",
        ) from None
    tokens = [name[len(_BEARER) :] for name in offered if name.startswith(_BEARER)]
    return Handshake(
        peer=peer,
        token=bearer(headers) or next(iter(tokens), None),
        common_version=not offered or SUBPROTOCOL in offered,
    )


def bearer(headers: Headers) -> str | None:
    """Returns the bearer token of the `Authorization` header, None without one.

    Raises:
        RefusedError: There are several such headers.
    """
    scheme, _, token = (_one(headers, "Authorization") or "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _one(headers: Headers, name: str) -> str | None:
    values = headers.get_all(name)
    if len(values) > 1:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{name} was sent more than once.")
    return values[0] if values else None


def _host_of(origin: str) -> tuple[str, str]:
    """Returns scheme and host of an origin, the scheme's own port left out."""
    scheme, _, host = origin.lower().partition("://")
    return scheme, host.removesuffix(_DEFAULT_PORTS.get(scheme, "/"))


def _same_host(host: str, origins: AbstractSet[tuple[str, str]]) -> bool:
    """Says whether `host` is that of one of the origins.

    A proxy may have taken TLS off, so either scheme is taken to be ours.
    """
    host = host.lower()
    return _AUTHORITY.fullmatch(host) is not None and any(
        scheme in _DEFAULT_PORTS and host.removesuffix(_DEFAULT_PORTS[scheme]) == name
        for scheme, name in origins
    )
