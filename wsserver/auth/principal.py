"""Who acts, on what, and the one seam that decides whether it may."""

from typing import Final, Literal, Protocol, get_args

from msgspec import Struct

Verb = Literal[
    "open", "create", "configure", "send", "interrupt", "tool_result",
    "tool_progress", "fork", "ack", "close", "delete",
]  # fmt: skip
"""The commands that concern a conversation, and `create`: an `open` or a `fork` that
makes one."""

VERBS: frozenset[Verb] = frozenset(get_args(Verb))


LONGEST_NAME: Final = 255
"""Of a principal or a space, in characters; OpenID Connect allows so many."""


class Principal(Struct, frozen=True, kw_only=True):
    """Who a connection acts for.

    Attributes:
        name: As it stands in events (`by`) and in logs.
        space: The namespace its conversation ids live in. Principals of one
            space share their conversations; for all others those do not exist,
            so an id that is foreign and one that is unknown are the same thing.
        verbs: What it may do in its space.
        expires_at: When the credentials end, in seconds since the epoch; None
            for never.
        credential: What the authority knows the credentials by, where they can be
            taken back; never what they are. None where they can't.
    """

    name: str
    space: str
    verbs: frozenset[Verb] = VERBS
    expires_at: float | None = None
    credential: bytes | None = None

    def key(self, conversation: str) -> str:
        """Returns the key that logs and stores know the conversation by."""
        return f"{self.space}/{conversation}"


def is_name(text: str) -> bool:
    """Whether a principal or a space can be called so."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable()


class UnauthorizedError(Exception):
    """The credentials are missing, wrong or expired.

    What it says is for the operator: it names no credential, and clients are told
    less.
    """


class ForbiddenError(Exception):
    """The principal may not do this."""


class Authority(Protocol):
    """Decides who somebody is and what they may do."""

    async def authenticate(self, token: str | None) -> Principal:
        """Returns whose token it is, within a few seconds.

        Raises:
            UnauthorizedError: It is nobody's.
            ForbiddenError: It is somebody's who may do nothing here.
        """
        ...

    def authorize(self, principal: Principal, verb: Verb, conversation: str) -> None:
        """Returns when the principal may do `verb` on the conversation's key.

        Whether there is such a conversation makes no difference.

        Raises:
            ForbiddenError: It may not.
        """
        ...

    def stands(self, principal: Principal) -> bool:
        """Whether it would still say the same of the credentials it knew.

        That is, whether they were taken back; when they end says `expires_at`.
        """
        ...

    async def run(self) -> None:
        """Keeps what it knows up to date, until cancelled or there is nothing to."""
        ...


def check(principal: Principal, verb: Verb, conversation: str) -> None:
    """Does what `Authority.authorize` says, by the principal alone.

    Raises:
        ForbiddenError: It may not.
    """
    if verb not in principal.verbs:
        raise ForbiddenError("the credentials do not allow this")
    if conversation.rpartition("/")[0] != principal.space:
        raise ForbiddenError("the conversation belongs to another space")
