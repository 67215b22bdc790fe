"""Credentials that a function of the operator's own knows: sessions, rows of a database.

The function runs in the event loop. What it raises, but for the two errors of
`principal`, is a fault of its own: it ends the connection that it was asked for (1011,
so that the client comes again), and no other.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from wsserver.auth.principal import Principal, Verb, check

ANSWER_SECONDS: Final = 10.0


class CalledAuthority:
    """Believes what a function believes."""

    def __init__(self, authenticate: Callable[[str | None], Awaitable[object]]) -> None:
        """Takes the function.

        Args:
            authenticate: Given a token, or None where there is none, returns whose it
                is, or raises as `Authority` says.
        """
        self._authenticate = authenticate

    async def authenticate(self, token: str | None) -> Principal:
        """Returns whose token it is.

        Raises:
            UnauthorizedError: It is nobody's.
            ForbiddenError: It is somebody's who may do nothing here.
            Exception: The function failed, or took longer than ten seconds.
        """
        with anyio.fail_after(ANSWER_SECONDS):
            found = await self._authenticate(token)
        if not isinstance(found, Principal):
            raise TypeError(f"auth_call gave {type(found).__name__}, no Principal")
        return found

    def authorize(self, principal: Principal, verb: Verb, conversation: str) -> None:
        """Allows what the principal's verbs allow, within its space.

        Raises:
            ForbiddenError: They do not, or the conversation's key lies in another.
        """
        check(principal, verb, conversation)

    async def run(self) -> None:
        """Has nothing to keep up to date."""
