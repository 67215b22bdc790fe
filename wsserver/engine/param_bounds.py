"""Which request members clients may set, and how large. Pure.

A bound is told to a client when it sets a member, and is in force again in each model
call: settings may be older than the bound, and another model may answer.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

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

THINKING_TOKENS: Final = (
    "budget_tokens",
    "max_thinking_tokens",
    "reasoning_max_tokens",
    "thinking_budget",
    "thinking_budget_tokens",
    "thinking_token_budget",
)
"""Names of how long a model may think. It is a part of the answer, for which some
gateways raise the answer's own limit."""

MOST: Final = 2**53
"""The highest bound: above it a JSON number is not exact everywhere."""

_LONGEST_NAME = 64
"""A client's member may have a name as long as a frame; no error is."""

_LONGEST_PATH = 160
"""Of where it stands the end is told, where it is longer."""

_OF_THE_CLIENT: Final = "metadata"
"""The member that holds text by names that the client makes up, which upstreams keep."""

_MOST_NAMES = 12
"""So many members are named to whoever sets one that is not allowed."""


Steps = tuple[str | int, ...]
"""Where a member stands: names of members, and places in lists."""


_Kinds = tuple[type, ...]


class BeyondBoundsError(Exception):
    """A client may not set a member so.

    Attributes:
        steps: Which one; none for one whose name is too long to be told.
    """

    def __init__(self, steps: Steps, why: str) -> None:
        super().__init__(why)
        self.steps = steps


class ParamBounds(Struct, frozen=True, kw_only=True):
    """What clients may set of one model's request members.

    Attributes:
        allowed: Names of those that they may set; None for any.
        most: Upper bounds by name, each a number from 0 to `MOST`, at most one of them
            of `ANSWER_TOKENS`.

    Raises:
        ValueError: A bound is none, or two are of one thing, or a name is a path;
            begins with the name.
    """

    allowed: frozenset[str] | None = None
    most: Mapping[str, Number] = {}

    def __post_init__(self) -> None:
        """Checks the names and the bounds."""
        for name in self.allowed or ():
            if "." in name:
                raise ValueError(
                    f"{name}: a member is allowed with all that it holds, by a name"
                    f" without dots; write {name.partition('.')[0]}"
                )
        names: dict[str, str] = {}
        for name, most in self.most.items():
            if not _fits(most, MOST):
                raise ValueError(
                    f"{name}: {most!r} is no bound; write a number from 0 to {MOST}"
                )
            if "." in name:
                raise ValueError(
                    f"{name}: a bound holds at any depth, for names without dots; write"
                    f" {name.rpartition('.')[2]}"
                )
            folded = _folded(name)
            known = _ANSWER.get(folded)
            thing = folded if known is None else ANSWER_TOKENS[0]
            if thing in names:
                raise ValueError(
                    f"{name}: {names[thing]} is there too, a name of the same thing;"
                    " leave the one that the upstream takes, which bounds both"
                )
            if known is not None and name != known:
                raise ValueError(f"{name}: upstreams know it as {known}; write that")
            names[thing] = name

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuses what a client may not set.

        Raises:
            BeyondBoundsError: Which member that is, why, and what to do.
        """
        if self.allowed is not None:
            for name in params:
                if name not in self.allowed:
                    steps = (name,) if len(name) <= _LONGEST_NAME else ()
                    raise BeyondBoundsError(steps, self._not_allowed(name))
        for steps, most in self.beyond(params):
            told = spelt_out(steps)
            if len(told) > _LONGEST_PATH:
                steps, told = (), f"…{told[-_LONGEST_PATH:]}"
            raise BeyondBoundsError(
                steps,
                f"`{told}` may be a number from 0 to {most}; correct it, or leave it out",
            )

    def beyond(self, params: Mapping[str, Any]) -> Iterator[tuple[Steps, Number]]:
        """Yields the members that are beyond a bound, at any depth, and the bound."""
        if self.most:
            yield from _beyond(params, self._limits())

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
        if not self.most:
            return members
        if any(True for _ in self.beyond(members)):
            members = _lowered(members, self._limits())
        theirs, ours, both = (self._spelt(each) for each in (params, own, members))
        for bound, most in self.most.items():
            said = _said(params, theirs[bound]) or _said(own, ours[bound])
            for name in both[bound]:
                del members[name]
            if said or bound in ANSWER_TOKENS:
                fitting = [value if _fits(value, most) else most for value in said]
                members[bound] = min(fitting, default=most)
        return members

    def _spelt(self, params: Mapping[str, Any]) -> dict[str, list[str]]:
        """Returns by bound the members that it is of, however they are spelt."""
        found: dict[str, list[str]] = {bound: [] for bound in self.most}
        bounds = {
            folded: bound
            for bound in self.most
            for folded in (_ANSWER if bound in ANSWER_TOKENS else (_folded(bound),))
        }
        for name in params:
            bound = bounds.get(_folded(name))
            if bound is not None:
                found[bound].append(name)
        return found

    def _limits(self) -> dict[str, Number]:
        """Returns how large members may be, by their names as `_folded` has them."""
        limits = {_folded(name): most for name, most in self.most.items()}
        for name, most in self.most.items():
            if name in ANSWER_TOKENS:
                same = map(_folded, (*ANSWER_TOKENS, *THINKING_TOKENS))
                limits = dict.fromkeys(same, most) | limits
        return limits

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


def spelt_out(steps: Steps) -> str:
    """Returns what a person is told of where a member stands."""
    return ".".join(map(str, steps))


def _folded(name: str) -> str:
    """Returns what is the same for all spellings of a name.

    Some upstreams take `Max_Tokens` and `maxTokens` for `max_tokens`.
    """
    return name.casefold().replace("_", "")


_ANSWER: Final = {_folded(name): name for name in ANSWER_TOKENS}


def _beyond(
    value: object, limits: Mapping[str, Number], free: _Kinds = ()
) -> Iterator[tuple[Steps, Number]]:
    """Yields the members that are beyond a bound, at any depth: where, and the bound."""
    for step, each in _parts(value):
        most = _passed(step, each, limits, free)
        if most is not None:
            yield (step,), most
        if isinstance(each, dict | list):
            within = cast("object", each)
            for steps, bound in _beyond(within, limits, _free_within(step, free)):
                yield (step, *steps), bound


def _lowered(value: Any, limits: Mapping[str, Number], free: _Kinds = ()) -> Any:
    """Returns a value with the bound in place of each member that is beyond it."""
    if not isinstance(value, dict | list):
        return value
    parts: list[tuple[str | int, Any]] = []
    for step, each in _parts(cast("object", value)):
        most = _passed(step, each, limits, free)
        if most is None:
            most = _lowered(each, limits, _free_within(step, free))
        parts.append((step, most))
    return dict(parts) if isinstance(value, dict) else [each for _, each in parts]


def _parts(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, dict):
        return cast("dict[str | int, object]", value).items()
    return enumerate(cast("list[object]", value))


def _passed(
    step: str | int, value: object, limits: Mapping[str, Number], free: _Kinds
) -> Number | None:
    """Returns the bound that a member is beyond; None for one that is not.

    Args:
        step: Its name, or its place in a list.
        value: What it is.
        limits: By names as `_folded` has them.
        free: What is not bounded where it stands.
    """
    most = limits.get(_folded(step)) if isinstance(step, str) else None
    if most is None or value is None or isinstance(value, free) or _fits(value, most):
        return None
    return most


def _free_within(step: str | int, free: _Kinds) -> _Kinds:
    """Returns what is not bounded inside of a member.

    What holds others is no number there, but may be a schema that describes it. Nor is
    text of the client's own.
    """
    own_text = not free and step == _OF_THE_CLIENT
    return (dict, list, str) if own_text else (dict, list)


def _said(params: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    values = [params[name] for name in names]
    return [value for value in values if value is not None]


def _fits(value: object, most: Number) -> bool:
    """Whether a value is within a bound.

    A negative one is not: some upstreams take it for no bound at all.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= most
