"""Who acts, on what, and the one seam that decides whether it may."""

from typing import Literal, Protocol

from msgspec import Struct

Verb = Literal[
    "open", "configure", "send", "interrupt", "tool_result", "tool_progress", "fork",
    "ack", "close", "delete",
]  # fmt: skip


class Principal(Struct, frozen=True, kw_only=True):
    """Who a connection acts for.

    Attributes:
        name: As it stands in events (`by`) and in logs.
        space: The namespace its conversation ids live in. Principals of one
            space share their conversations; for all others those do not exist,
            so an id that is foreign and one that is unknown are the same thing.
        expires_at: When the credentials end, in seconds since the epoch; None
            for never.
    """

    name: str
    space: str
    expires_at: float | None = None

    def key(self, conversation: str) -> str:
        """Returns the key that logs and stores know the conversation by."""
        return f"{self.space}/{conversation}"


class Unauthorized(Exception):
    """The credentials are missing, wrong or expired."""


class Forbidden(Exception):
    """The principal may not do this."""


class Authority(Protocol):
    """Decides who somebody is and what they may do."""

    def authenticate(self, token: str | None) -> Principal:
        """Returns whose token it is.

        Raises:
            Unauthorized: It is nobody's.
        """
        ...

    def authorize(self, principal: Principal, verb: Verb, conversation: str) -> None:
        """Returns when the principal may do `verb` on the conversation's key.

        Raises:
            Forbidden: It may not.
        """
        ...
