"""Which request members clients may set, and how large. Pure.

A bound is told to a client when it sets a member, and is in force again in each model
call: settings may be older than the bound, and another model may answer.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

Number = int | float

ANSWER_TOKENS: Final = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "n_predict",
    "num_predict",
)
"""Names of one thing: how long an answer may be. Upstreams know one or more of them;
llama.cpp goes by `n_predict` where `max_tokens` stands beside it."""

MOST: Final = 2**53
"""The highest bound: above it a JSON number is not exact everywhere."""

_LONGEST_NAME = 64
"""A client's member may have a name as long as a frame; no error is."""

_MOST_NAMES = 12
"""So many members are named to whoever sets one that is not allowed."""


class BeyondBoundsError(Exception):
    """A client may not set a member so.

    Attributes:
        member: Which one; None for one whose name is too long to be told.
    """

    def __init__(self, member: str | None, why: str) -> None:
        super().__init__(why)
        self.member = member


class ParamBounds(Struct, frozen=True, kw_only=True):
    """What clients may set of one model's request members.

    Attributes:
        allowed: Names of those that they may set; None for any.
        most: Upper bounds by name, each a number from 0 to `MOST`, at most one of them
            of `ANSWER_TOKENS`.

    Raises:
        ValueError: A bound is none, or two are of one thing; begins with its name.
    """

    allowed: frozenset[str] | None = None
    most: Mapping[str, Number] = {}

    def __post_init__(self) -> None:
        """Checks the bounds."""
        names: dict[str, str] = {}
        for name, most in self.most.items():
            if not _fits(most, MOST):
                raise ValueError(
                    f"{name}: {most!r} is no bound; write a number from 0 to {MOST}"
                )
            folded = name.casefold()
            thing = ANSWER_TOKENS[0] if folded in ANSWER_TOKENS else folded
            if thing in names:
                raise ValueError(
                    f"{name}: {names[thing]} is there too, a name of the same thing;"
                    " leave the one that the upstream takes, which bounds both"
                )
            if folded in ANSWER_TOKENS and name != folded:
                raise ValueError(
                    f"{name}: upstreams take it in lower case; write {folded}"
                )
            names[thing] = name

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuses what a client may not set.

        Raises:
            BeyondBoundsError: Which member that is, why, and what to do.
        """
        if self.allowed is not None:
            for name in params:
                if name not in self.allowed:
                    told = name if len(name) <= _LONGEST_NAME else None
                    raise BeyondBoundsError(told, self._not_allowed(name))
        for name, most in self.beyond(params):
            raise BeyondBoundsError(
                name,
                f"`{name}` may be a number from 0 to {most}; lower it, or leave it out",
            )

    def beyond(self, params: Mapping[str, Any]) -> Iterator[tuple[str, Number]]:
        """Yields the members that are beyond a bound, and the bound."""
        for bound, most in self.most.items():
            for name in _spelt(params, bound):
                value = params[name]
                if value is not None and not _fits(value, most):
                    yield name, most

    def members(
        self, own: Mapping[str, Any], params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Returns the members of a request.

        How long an answer may be is always said where there is a bound, under the
        name that the bound has: an upstream may know no other, and without a word from
        anybody it would take a length of its own. Any other bounded member is sent
        only where somebody sets it.

        Args:
            own: What the operator sets; within the bounds.
            params: What the client sets, which goes before it. What is not allowed is
                left out, what is beyond a bound becomes the bound.
        """
        if self.allowed is not None:
            params = {k: v for k, v in params.items() if k in self.allowed}
        members = {**own, **params}
        for bound, most in self.most.items():
            said = _said(params, bound) or _said(own, bound)
            for name in _spelt(members, bound):
                del members[name]
            if said or bound in ANSWER_TOKENS:
                fitting = [value if _fits(value, most) else most for value in said]
                members[bound] = min(fitting, default=most)
        return members

    def _not_allowed(self, name: str) -> str:
        named = sorted(self.allowed or ())
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}…"
        if not named:
            return f"`{name}` may not be set, nor any other member; leave it out"
        some = ", ".join(f"`{each}`" for each in named[:_MOST_NAMES])
        if len(named) > _MOST_NAMES:
            some += f" and {len(named) - _MOST_NAMES} more"
        return f"`{name}` may not be set; leave it out (what may: {some})"


UNBOUNDED: Final = ParamBounds()
"""Any member, of any value."""


def _spelt(params: Mapping[str, Any], bound: str) -> list[str]:
    """Returns the members that a bound is of, however they are spelt.

    Some upstreams take `Max_Tokens` for `max_tokens`.
    """
    folded = bound.casefold()
    same = ANSWER_TOKENS if folded in ANSWER_TOKENS else (folded,)
    return [name for name in params if name.casefold() in same]


def _said(params: Mapping[str, Any], bound: str) -> list[Any]:
    values = [params[name] for name in _spelt(params, bound)]
    return [value for value in values if value is not None]


def _fits(value: object, most: Number) -> bool:
    """Whether a value is within a bound.

    A negative one is not: some upstreams take it for no bound at all.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= most
