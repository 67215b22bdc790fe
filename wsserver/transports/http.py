"""What plain GET and HEAD get on the port of the WebSocket.

The page, the schemas, and what an operator's tools ask for. websockets hands over
the request and closes the connection after the answer; bodies of requests (POST)
it can't read.
"""

from collections.abc import Callable, Mapping
from email.utils import formatdate
from http import HTTPStatus

from websockets.datastructures import Headers
from websockets.http11 import Response

from wsserver.transports.files import File

CHAT_PATH = "/v1/chat"
METRICS_PATH = "/metrics"
PROBES = frozenset({"/healthz", "/readyz"})
"""They tell nothing, so they are answered under any name."""

_TEXT = "text/plain; charset=utf-8"
_METRICS = "text/plain; version=0.0.4; charset=utf-8"
_SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'"
        " data:; font-src 'self'; manifest-src 'self'; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Site:
    """Answers requests that want no WebSocket."""

    def __init__(
        self,
        *,
        files: Mapping[str, File],
        not_ready: Callable[[], str | None],
        metrics: Callable[[], bytes],
    ) -> None:
        """Takes what there is to be told.

        Args:
            files: Files by the path they are served at.
            not_ready: Says why the server should get no new clients; None while
                it should.
            metrics: Renders the metrics as Prometheus text.
        """
        self._files = files
        self._not_ready = not_ready
        self._metrics = metrics

    def answer(self, method: str, path: str, headers: Headers) -> Response:
        """Answers one request; what HEAD gets has its body still.

        Args:
            method: The HTTP method.
            path: The path, without a query.
            headers: The request's headers.
        """
        response = self._route(path, headers)
        if response is None:
            return respond(HTTPStatus.NOT_FOUND, "There is nothing here.")
        if method not in ("GET", "HEAD"):
            response = respond(
                HTTPStatus.METHOD_NOT_ALLOWED, "Only GET and HEAD are answered."
            )
            response.headers["Allow"] = "GET, HEAD"
        return response

    def _route(self, path: str, headers: Headers) -> Response | None:
        match path:
            case "/healthz":
                return respond(HTTPStatus.OK, "ok")
            case "/readyz":
                reason = self._not_ready()
                status = HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK
                return respond(status, reason or "ready")
            case _ if path == METRICS_PATH:
                return _response(HTTPStatus.OK, self._metrics(), _METRICS)
            case _ if path == CHAT_PATH:
                return upgrade_required()
            case _ if file := self._files.get(path):
                return _serve(file, headers)
            case _:
                return None


def respond(status: HTTPStatus, message: str) -> Response:
    """Makes an answer of one line of text."""
    return _response(status, f"{message}\n".encode(), _TEXT)


def upgrade_required() -> Response:
    """Makes the answer to a request that should have been a handshake."""
    response = respond(
        HTTPStatus.UPGRADE_REQUIRED, "This is a WebSocket; connect with a client."
    )
    response.headers["Upgrade"] = "websocket"
    return response


def _serve(file: File, headers: Headers) -> Response:
    known = ",".join(headers.get_all("If-None-Match"))
    if file.etag in known:
        response = _response(HTTPStatus.NOT_MODIFIED, b"", file.content_type)
        del response.headers["Content-Length"]
    else:
        response = _response(HTTPStatus.OK, file.body, file.content_type)
    del response.headers["Cache-Control"]
    response.headers["Cache-Control"] = "no-cache"
    response.headers["ETag"] = file.etag
    return response


def _response(status: HTTPStatus, body: bytes, content_type: str) -> Response:
    headers = Headers(
        {
            "Date": formatdate(usegmt=True),
            "Connection": "close",
            "Content-Length": str(len(body)),
            "Content-Type": content_type,
            "Cache-Control": "no-store",
        }
        | _SECURITY
    )
    return Response(status.value, status.phrase, headers, body)
