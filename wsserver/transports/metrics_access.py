"""Who may read the metrics: rules about a request, before it is answered.

Metrics hold nothing that people or models say, but they tell which models there
are and how much is going on.
"""

import hmac
from http import HTTPStatus
from typing import Literal

from websockets.datastructures import Headers

from wsserver.transports.addresses import is_loopback
from wsserver.transports.handshake import RefusedError, bearer

Rule = Literal["loopback", "token", "open"]

_PASSED_ON = ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via")


class MetricsAccess:
    """The rule of one server.

    Attributes:
        rule: `loopback`: programs of this machine, with no proxy between. `token`:
            whoever sends the token. `open`: everybody.
    """

    def __init__(self, rule: Rule = "loopback", token: str = "") -> None:
        """Takes the rule and, for `token`, a bearer token, which is never shown."""
        self.rule: Rule = rule
        self._token = token

    def take(self, token: str) -> None:
        """Wants this token from now on."""
        self._token = token

    def check(self, remote: str | None, headers: Headers) -> None:
        """Returns if the request may be answered.

        Args:
            remote: Whose socket it came from; None where that is not known.
            headers: The request's headers.

        Raises:
            RefusedError: It may not.
        """
        match self.rule:
            case "open":
                pass
            case "token":
                given = bearer(headers) or ""
                if not hmac.compare_digest(given.encode(), self._token.encode()):
                    raise RefusedError(
                        HTTPStatus.UNAUTHORIZED,
                        "Metrics need the bearer token of metrics_token_file.",
                    )
            case "loopback":
                passed_on = any(name in headers for name in _PASSED_ON)
                if passed_on or remote is None or not is_loopback(remote):
                    raise RefusedError(
                        HTTPStatus.FORBIDDEN,
                        "Metrics are for programs on the server's machine;"
                        " metrics_access lets others read them.",
                    )
