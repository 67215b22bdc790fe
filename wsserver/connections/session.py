"""Who a connection acts for: `hello`, `refresh`, and what each verb may do."""

from collections.abc import Callable

import anyio

from protocol.commands import Hello
from protocol.ids import VERSION
from wsserver.auth.principal import (
    Authority,
    ForbiddenError,
    Principal,
    UnauthorizedError,
    Verb,
)
from wsserver.connections.quotas import Quotas, Share
from wsserver.connections.transport import Handshake
from wsserver.turns.errors import CommandError, refusal


class Session:
    """The identity of one connection.

    Attributes:
        connection: The connection's id.
        client: What the client calls itself, for the log.
    """

    def __init__(
        self,
        connection: str,
        handshake: Handshake,
        authority: Authority,
        quotas: Quotas,
        wall: Callable[[], float],
    ) -> None:
        """Begins with nobody; `wall` returns seconds since the epoch."""
        self.connection = connection
        self.client: str | None = None
        self._handshake = handshake
        self._authority = authority
        self._wall = wall
        self._quotas = quotas
        self._share: Share | None = None
        self._principal: Principal | None = None

    @property
    def greeted(self) -> bool:
        """Whether `hello` was said and believed."""
        return self._principal is not None

    @property
    def principal(self) -> Principal:
        """Who the connection acts for."""
        assert self._principal is not None, "no command is handled before hello"
        return self._principal

    @property
    def share(self) -> Share:
        """What it shares with other connections of the principal."""
        assert self._share is not None, "no command is handled before hello"
        return self._share

    @property
    def expires_in(self) -> float | None:
        """Seconds until the credentials end; None for never."""
        if self._principal is None or self._principal.expires_at is None:
            return None
        return self._principal.expires_at - self._wall()

    @property
    def stands(self) -> bool:
        """Whether the credentials were not taken back."""
        return self._principal is None or self._authority.stands(self._principal)

    def check_version(self) -> None:
        """Refuses a client that offered subprotocols without ours.

        Raises:
            CommandError: `unsupported_protocol`.
        """
        if not self._handshake.common_version:
            raise _unsupported()

    async def hello(self, frame: Hello) -> None:
        """Believes the client, or not; if so, `leave` has to follow.

        A token in the frame goes before one of the handshake.

        Raises:
            CommandError: `unsupported_protocol`, or `rate_limited`: its principal
                has too many connections.
            UnauthorizedError: The credentials are no good.
            ForbiddenError: They are, but not for this.
        """
        if frame.protocol != VERSION:
            raise _unsupported()
        token = self._handshake.token if frame.token is None else frame.token
        principal = await self._authenticate(token)
        self._share = self._quotas.join(principal.space, anyio.current_time())
        self._principal = principal
        if frame.client is not None:
            version = frame.client.version
            self.client = frame.client.name + (f" {version}" if version else "")

    def leave(self) -> None:
        """Ends it; harmless when nobody was believed."""
        if self._share is not None:
            self._quotas.leave(self.principal.space, anyio.current_time())
            self._share = None

    def take(self, now: float, cost: float) -> float:
        """Takes what a frame costs of all that the principal may send.

        Returns 0, or by how many seconds the frame is too early.
        """
        return 0.0 if self._share is None else self._share.take(now, cost)

    async def refresh(self, token: str) -> None:
        """Takes new credentials of the same principal.

        Raises:
            CommandError: They are another principal's.
            UnauthorizedError: They are no good; the old ones stay.
        """
        renewed, now = await self._authenticate(token), self.principal
        if (renewed.name, renewed.space) != (now.name, now.space):
            raise refusal(
                "forbidden",
                "The credentials are another principal's; connect anew to act for it.",
                param="$.token",
            )
        self._principal = renewed

    def authorize(self, verb: Verb, conversation: str) -> str:
        """Returns the conversation's key, if the principal may do the verb.

        Raises:
            ForbiddenError: It may not.
        """
        principal = self.principal
        key = principal.key(conversation)
        self._authority.authorize(principal, verb, key)
        return key

    def may(self, verb: Verb, conversation: str) -> bool:
        """Returns whether the principal may do the verb."""
        try:
            self.authorize(verb, conversation)
        except ForbiddenError:
            return False
        return True

    async def _authenticate(self, token: str | None) -> Principal:
        principal = await self._authority.authenticate(token)
        if principal.expires_at is not None and principal.expires_at <= self._wall():
            raise UnauthorizedError("the credentials have expired")
        return principal


def _unsupported() -> CommandError:
    return refusal(
        "unsupported_protocol",
        f"This server speaks version {VERSION} (`wsserver.v{VERSION}`).",
        param="$.protocol",
    )
