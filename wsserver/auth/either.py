"""Two kinds of credentials side by side."""

import anyio

from wsserver.auth.principal import (
    Authority,
    Principal,
    UnauthorizedError,
    Verb,
    check,
)


class EitherAuthority:
    """Believes what one of two authorities believes.

    Their spaces are the same: a name stands for the same space in both.
    """

    def __init__(self, first: Authority, second: Authority) -> None:
        """Takes the two; `first` is asked first."""
        self._first = first
        self._second = second

    async def authenticate(self, token: str | None) -> Principal:
        """Returns whose token it is.

        Raises:
            UnauthorizedError: It is nobody's for both.
            ForbiddenError: It is somebody's who may do nothing here.
        """
        try:
            return await self._first.authenticate(token)
        except UnauthorizedError:
            return await self._second.authenticate(token)

    def authorize(self, principal: Principal, verb: Verb, conversation: str) -> None:
        """Allows what the principal may do, within its space.

        Raises:
            ForbiddenError: It may not, or the conversation's key lies in another.
        """
        check(principal, verb, conversation)

    def stands(self, principal: Principal) -> bool:
        """Whether neither has taken the credentials back."""
        return self._first.stands(principal) and self._second.stands(principal)

    async def run(self) -> None:
        """Keeps up to date what both know."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._first.run)
            tasks.start_soon(self._second.run)
