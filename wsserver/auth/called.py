"""Credentials that a function of the operator's own knows: sessions, rows of a database.

The function runs in the event loop. What it raises, but for the two errors of
`principal`, is a fault of its own: it ends the connection that it was asked for (1011,
so that the client comes again), and no other.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import msgspec
import structlog

from wsserver.auth.principal import Principal, Verb, check, is_name
from wsserver.foreign_code import stops

ANSWER_SECONDS: Final = 10.0

log = structlog.get_logger(__name__)


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
            found = await self._ask(token)
        try:
            return _checked(found)
        except msgspec.ValidationError as error:
            log.warning("auth_call_wrong", about=str(error))
            raise

    async def _ask(self, token: str | None) -> object:
        try:
            return await self._authenticate(token)
        except BaseException as error:
            if isinstance(error, Exception) or not stops(error):
                raise
            raise RuntimeError(f"auth_call raised {error!r}") from None

    def authorize(self, principal: Principal, verb: Verb, conversation: str) -> None:
        """Allows what the principal's verbs allow, within its space.

        Raises:
            ForbiddenError: They do not, or the conversation's key lies in another.
        """
        check(principal, verb, conversation)

    def stands(self, principal: Principal) -> bool:
        """Takes nothing back: what is to end says when."""
        del principal
        return True

    async def run(self) -> None:
        """Has nothing to keep up to date."""


def _checked(found: object) -> Principal:
    """Returns a principal that events and keys can name.

    Raises:
        ValidationError: It is none; says why.
    """
    if not isinstance(found, Principal):
        kind = type(found).__name__
        raise msgspec.ValidationError(f"it gave {kind}, which is no Principal")
    principal = msgspec.convert(msgspec.structs.asdict(found), Principal)
    for member in ("name", "space"):
        if not is_name(getattr(principal, member)):
            raise msgspec.ValidationError(f"a Principal's {member} can't be like that")
    return principal
