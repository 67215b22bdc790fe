"""Accepts connections on one port: handshakes to the handler, the rest to the site."""

import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, cast

import structlog
from anyio.abc import TaskGroup
from msgspec import Struct
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from protocol.ids import SUBPROTOCOL
from wsserver.connections.transport import Handshake, Transport
from wsserver.transports.accept_queues import AcceptQueues
from wsserver.transports.addresses import AddressCounts, Network, client_address
from wsserver.transports.handshake import (
    Admission,
    OriginError,
    RefusedError,
    read_handshake,
)
from wsserver.transports.http import (
    METRICS_PATH,
    PROBES,
    Site,
    respond,
    upgrade_required,
)
from wsserver.transports.metrics_access import MetricsAccess
from wsserver.transports.secure import FILES_AT_FIRST, SecureWebSocket
from wsserver.transports.turned_away import Reason, TurnedAway
from wsserver.transports.websocket import (
    CLOSE_SECONDS,
    HIGH_WATER_BYTES,
    LOW_WATER_BYTES,
    WebSocket,
)

OPEN_SECONDS = 10.0
FRAME_LIMIT_FACTOR = 4
"""So far above the product's own limit lies the hard one: between the two a frame
gets an error, above it the connection is closed."""

_COME_BACK_SECONDS = "5"
_FULL = "all connections are taken"
_UNSENT_BYTES = 65_536
_BUFFERED_FRAMES = 16

log = structlog.get_logger(__name__)

Handler = Callable[[Transport, Handshake], Awaitable[None]]


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where and how to listen.

    Attributes:
        host: The address to bind.
        port: The port; 0 takes a free one.
        max_frame_bytes: The product's own limit for frames.
        max_connections: Handshakes beyond so many connections are refused.
        spare_connections: So many more are listened to, to be answered: what wants
            the page or the metrics, and who is refused. Others are told to come back
            before they have said anything. For as many again there are files, so
            that those can be accepted.
        max_address_connections: Handshakes beyond so many connections of one
            address are refused; None for no limit.
        trusted_proxies: Whose `X-Forwarded-For` is believed.
        ping_seconds: How often peers are asked for a sign of life.
        tls: Certificate and key; None for no TLS.
    """

    host: str
    port: int
    max_frame_bytes: int
    max_connections: int
    spare_connections: int = 4096
    max_address_connections: int | None = None
    trusted_proxies: tuple[Network, ...] = ()
    ping_seconds: float = 20.0
    tls: ssl.SSLContext | None = None


class Listener:
    """One listening port with all its connections."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        admission: Admission,
        metrics_access: MetricsAccess,
        site: Site,
        handlers: Mapping[str, Handler],
        refusing: Callable[[], str | None],
        tasks: TaskGroup,
        turned_away: Callable[[Reason], None] = lambda _: None,
        stricter: Mapping[str, Admission] = MappingProxyType({}),
    ) -> None:
        """Takes its parts; `start` begins.

        Args:
            endpoint: Where and how to listen.
            admission: Who may connect.
            metrics_access: Who may read the metrics.
            site: Answers what is no handshake.
            handlers: By the path of a WebSocket, who serves one client there; the
                connection ends with it. What it raises is logged, and closes the
                connection with 1011.
            refusing: Says why new clients are refused; None while they are not.
            tasks: Runs handshakes of TLS; has to outlive `stop`.
            turned_away: Counts a client that was, by why.
            stricter: By path, rules that hold there in the place of `admission`.
        """
        self._endpoint = endpoint
        self._admission = admission
        self._metrics_access = metrics_access
        self._site = site
        self._handlers = handlers
        self._refusing = refusing
        self._tasks = tasks
        self._turned_away = TurnedAway(turned_away)
        self._accept_queues = AcceptQueues(
            endpoint.max_connections + 2 * endpoint.spare_connections,
            files=1 if endpoint.tls is None else FILES_AT_FIRST,
        )
        self._stricter = stricter
        self._live = set[WebSocket]()
        self._addresses = AddressCounts(endpoint.max_address_connections)
        self._counted: dict[WebSocket, str] = {}
        self._server: Server | None = None
        self._stopped = False

    async def start(self) -> int:
        """Begins to accept connections, and returns the port.

        Raises:
            OSError: The address can't be bound.
        """
        endpoint = self._endpoint
        # Not registered, so that nobody turns on its debug lines: they show headers.
        logger = logging.Logger("websockets.server", logging.ERROR)  # noqa: LOG001
        logger.parent = logging.root
        self._server = await serve(
            self._serve,
            endpoint.host,
            endpoint.port,
            process_request=self._process_request,
            select_subprotocol=_select_subprotocol,
            compression=None,
            server_header=None,
            open_timeout=OPEN_SECONDS,
            ping_interval=None,
            ping_timeout=None,
            close_timeout=CLOSE_SECONDS,
            max_size=FRAME_LIMIT_FACTOR * endpoint.max_frame_bytes,
            write_limit=(HIGH_WATER_BYTES, LOW_WATER_BYTES),
            logger=logger,
            create_connection=cast("type[ServerConnection]", self._make()),
            backlog=self._accept_queues.size,
        )
        for listening in self._server.sockets:
            _limit_unsent(listening)
        self._accept_queues.watch(self._server.sockets)
        return cast("int", self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Accepts no more, drops whatever is still connected, and waits for that."""
        if self._server is None:
            return
        self._stopped = True
        self._accept_queues.close()
        self._server.close(close_connections=False)
        for connection in list(self._live):
            connection.abort()
        await self._server.wait_closed()
        self._turned_away.tell()

    def _make(self) -> Callable[..., WebSocket]:
        make = partial(
            WebSocket if self._endpoint.tls is None else SecureWebSocket,
            max_buffered_bytes=_BUFFERED_FRAMES * self._endpoint.max_frame_bytes,
            made=self._connected,
            lost=self._lost,
        )
        if self._endpoint.tls is None:
            return make
        return partial(
            make,
            context=self._endpoint.tls,
            open_seconds=OPEN_SECONDS,
            tasks=self._tasks,
            late=lambda: self._turned_away.add("handshake"),
        )

    def _connected(self, connection: WebSocket) -> None:
        endpoint = self._endpoint
        self._live.add(connection)
        if self._stopped:
            # It was accepted just before, and gets here just after.
            connection.abort()
        elif len(self._live) > endpoint.max_connections + endpoint.spare_connections:
            self._turned_away.add("crowd")
            self._drop(connection)
        self._accept_queues.fit(len(self._live))

    def _drop(self, connection: WebSocket) -> None:
        """Turns away who has not said anything yet."""
        if self._endpoint.tls is not None:
            connection.abort()  # nothing can be said before the handshake of TLS
            return
        full = _come_back(HTTPStatus.SERVICE_UNAVAILABLE, _FULL)
        connection.transport.write(full.serialize())
        connection.transport.close()

    def _lost(self, connection: WebSocket) -> None:
        self._live.discard(connection)
        self._accept_queues.fit(len(self._live))
        address = self._counted.pop(connection, None)
        if address is not None:
            self._addresses.leave(address)

    async def _serve(self, connection: ServerConnection) -> None:
        assert isinstance(connection, WebSocket), "create_connection makes them"
        connection.begin()
        connection.keep_pinging(self._endpoint.ping_seconds)
        await self._handlers[connection.path](connection, connection.client)

    def _process_request(
        self, connection: ServerConnection, request: Request
    ) -> Response | None:
        assert isinstance(connection, WebSocket), "create_connection makes them"
        response = self._respond(connection, request)
        if response is not None and request.method == "HEAD":
            response.body = b""
        return response

    def _respond(self, connection: WebSocket, request: Request) -> Response | None:
        """Returns the answer to what is no handshake, or to one that is refused."""
        path = request.path.partition("?")[0]
        admission = self._stricter.get(path, self._admission)
        try:
            if path not in PROBES:
                admission.check_host(request.headers)
            if path == METRICS_PATH:
                self._metrics_access.check(connection.remote, request.headers)
            if path not in self._handlers or request.method != "GET":
                return self._site.answer(request.method, path, request.headers)
            if "Upgrade" not in request.headers:
                return upgrade_required()
            admission.check_origin(request.headers)
            address, peer = self._origin(connection, request.headers)
            connection.path = path
            connection.client = read_handshake(request.headers, peer)
        except RefusedError as refused:
            if isinstance(refused, OriginError):
                self._turned_away.add_page(refused.origin)
            log.debug("refused", status=refused.status.value, about=refused.message)
            response = respond(refused.status, refused.message)
            if refused.status is HTTPStatus.UNAUTHORIZED:
                response.headers["WWW-Authenticate"] = "Bearer"
            return response
        return self._find_room(connection, address)

    def _find_room(self, connection: WebSocket, address: str) -> Response | None:
        """Counts a client in; else returns what it is told."""
        reason = self._refusing()
        if reason is not None:
            self._turned_away.add("draining")
            return _come_back(HTTPStatus.SERVICE_UNAVAILABLE, reason)
        if len(self._counted) >= self._endpoint.max_connections:
            self._turned_away.add("full")
            return _come_back(HTTPStatus.SERVICE_UNAVAILABLE, _FULL)
        if connection in self._live:  # else nobody would count it out
            if not self._addresses.enter(address):
                self._turned_away.add("address")
                reason = "too many connections are open from this address"
                log.debug("refused", status=429, about=reason)
                return _come_back(HTTPStatus.TOO_MANY_REQUESTS, reason)
            self._counted[connection] = address
        return None

    def _origin(self, connection: WebSocket, headers: Headers) -> tuple[str, str]:
        """Returns the client's address, and the peer as the log names it."""
        if not isinstance(connection.peer_name, tuple):
            return "", "unknown"  # it left before it was asked
        host, port, *_ = cast("tuple[str, int]", connection.peer_name)
        forwarded = headers.get_all("X-Forwarded-For")
        address = client_address(host, forwarded, self._endpoint.trusted_proxies)
        if address != host:
            return address, address
        return host, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _come_back(status: HTTPStatus, reason: str) -> Response:
    response = respond(status, reason)
    response.headers["Retry-After"] = _COME_BACK_SECONDS
    return response


def _select_subprotocol(
    connection: ServerConnection, offered: Sequence[Subprotocol]
) -> Subprotocol | None:
    # Never another item: it may be a credential.
    del connection
    ours = Subprotocol(SUBPROTOCOL)
    return ours if ours in offered else None


def _limit_unsent(listening: Any) -> None:
    """Keeps what the kernel holds for a peer that does not read small.

    Otherwise it takes megabytes, all of it too old to be merged, before anything
    here can see that the peer is slow. Accepted sockets inherit the option.
    """
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    if option is not None:
        listening.setsockopt(socket.IPPROTO_TCP, option, _UNSENT_BYTES)
