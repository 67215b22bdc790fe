"""Which request members clients may set, and how large."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsserver.engine.param_bounds import (
    ANSWER_TOKENS,
    UNBOUNDED,
    BeyondBoundsError,
    Number,
    ParamBounds,
)


def bounds(*allowed: str, **most: Number) -> ParamBounds:
    return ParamBounds(allowed=frozenset(allowed) if allowed else None, most=most)


@pytest.mark.parametrize(
    ("bound", "params"),
    [
        (UNBOUNDED, {"service_tier": "priority", "max_tokens": 10**9}),
        (bounds("temperature"), {}),
        (bounds("temperature"), {"temperature": 2}),
        (bounds(max_tokens=10), {"max_tokens": 10, "n": 5}),
        (bounds(max_tokens=10), {"max_completion_tokens": 0}),
        (bounds(max_tokens=10), {"max_tokens": None}),
        (bounds(n=1.5), {"n": 1.5}),
        (bounds(max_tokens=10), {"reasoning": {"max_tokens": 10, "effort": "low"}}),
        (bounds(max_tokens=10, budget_tokens=99), {"thinking": {"budget_tokens": 99}}),
        (bounds(n=1), {"thinking": {"budget_tokens": 99}}),
        # A schema names members too, and bounds none of them.
        (bounds(max_tokens=10), {"x": {"properties": {"max_tokens": {"maximum": 99}}}}),
        (bounds(n=1), {"x": {"n": [5, None]}, "y": [[{"n": None}]]}),
        # Text that an upstream keeps for the client, and reads no number from.
        (bounds(n=1, max_tokens=9), {"metadata": {"n": "x", "max_tokens": "99"}}),
    ],
)
def test_what_is_within_the_bounds_is_taken(
    bound: ParamBounds, params: dict[str, Any]
) -> None:
    bound.check(params)


@pytest.mark.parametrize(
    ("bound", "params", "member", "why"),
    [
        (
            bounds("top_p", "temperature"),
            {"temperature": 1, "store": True},
            "store",
            r"`store` may not be set; leave it out \(what may: `temperature`, `top_p`\)",
        ),
        (
            ParamBounds(allowed=frozenset()),
            {"x" * 65: 1},
            None,
            f"^`{'x' * 64}…` may not be set, nor any other member; leave it out$",
        ),
        (
            ParamBounds(allowed=frozenset()),
            {"n": None},
            "n",
            "`n` may not be set, nor any other member; leave it out",
        ),
        (
            ParamBounds(allowed=frozenset(f"m{n:02}" for n in range(20))),
            {"n": 1},
            "n",
            "`m11` and 8 more",
        ),
        (
            bounds(max_completion_tokens=10),
            {"max_tokens": 11},
            "max_tokens",
            "`max_tokens` may be a number from 0 to 10; correct it, or leave it out",
        ),
        (bounds(max_tokens=10), {"n_predict": 11}, "n_predict", "0 to 10"),
        (bounds(n=1), {"n": 2}, "n", "0 to 1"),
        (bounds(n=1), {"n": -1}, "n", "0 to 1"),
        (bounds(n=1), {"n": "1"}, "n", "0 to 1"),
        (bounds(n=1), {"n": True}, "n", "0 to 1"),
        (bounds(n=1), {"n": [1]}, "n", "0 to 1"),
        (bounds(n=1), {"N": 2}, "N", "0 to 1"),
        (bounds(max_tokens=10), {"Max_Token\u017f": 11}, "Max_Token\u017f", "0 to 10"),
        (bounds(max_tokens=10), {"maxOutputTokens": 11}, "maxOutputTokens", "0 to 10"),
        (
            bounds(max_completion_tokens=10),
            {"reasoning": {"max_tokens": 11}},
            "reasoning.max_tokens",
            r"`reasoning\.max_tokens` may be a number from 0 to 10; correct it, or leave",
        ),
        (
            bounds(max_tokens=10),
            {"thinking": {"type": "enabled", "budget_tokens": 11}},
            "thinking.budget_tokens",
            "0 to 10",
        ),
        (
            bounds(max_tokens=10),
            {"extra_body": {"google": {"thinking_config": {"thinkingBudget": -1}}}},
            "extra_body.google.thinking_config.thinkingBudget",
            "0 to 10",
        ),
        (bounds(max_tokens=10), {"thinking_budget": 11}, "thinking_budget", "0 to 10"),
        (bounds(max_tokens=10), {"x": {"max_tokens": "11"}}, "x.max_tokens", "0 to 10"),
        (bounds(n=1), {"extra_body": [1, {"N": 2}]}, "extra_body.1.N", "0 to 1"),
        (bounds(n=1), {"metadata": {"n": 2}}, "metadata.n", "0 to 1"),
        (bounds(n=1), {"metadata": {"x": {"n": "2"}}}, "metadata.x.n", "0 to 1"),
        (bounds(n=1), {"x": {"metadata": {"n": "2"}}}, "x.metadata.n", "0 to 1"),
        (bounds(metadata=1), {"metadata": "2"}, "metadata", "0 to 1"),
        (bounds(n=1), {"x" * 160: {"n": 2}}, None, r"^`…x{158}\.n` may be"),
        # Underscores do not count, so a bounded name may be as long as a frame.
        (bounds(n=1), {"_" * 999 + "N": 2}, None, "^`…_{159}N` may be a number"),
        (bounds(n=1), {"x": {"n" + "_" * 999: 2}}, None, "^`…_{160}` may be a number"),
    ],
)
def test_what_is_beyond_is_refused(
    bound: ParamBounds, params: dict[str, Any], member: str | None, why: str
) -> None:
    with pytest.raises(BeyondBoundsError, match=why) as caught:
        bound.check(params)
    steps = caught.value.steps
    assert (".".join(map(str, steps)) or None) == member


@pytest.mark.parametrize(
    "most",
    [
        {"n": float("inf")},
        {"n": float("nan")},
        {"n": -1},
        {"n": 2**53 + 1},
        {"n": True},
        {"n": "1"},
        {"n": 1, "N": 1},
        {"max_tokens": 1, "n_predict": 1},
        {"MAX_TOKENS": 1},
        {"maxTokens": 1},
        {"top_k": 1, "topK": 1},
    ],
)
def test_what_bounds_nothing_is_no_bound(most: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{list(most)[-1]}: "):
        ParamBounds(most=most)


def test_a_path_allows_nothing() -> None:
    with pytest.raises(ValueError, match=r"^a\.b: .*; write a$"):
        ParamBounds(allowed=frozenset({"a.b", "c"}))


@pytest.mark.parametrize(
    ("bound", "own", "params", "members"),
    [
        (UNBOUNDED, {"a": 1, "b": 2}, {"b": 3, "c": None}, {"a": 1, "b": 3, "c": None}),
        # What is not allowed is left out; the operator's own members are not concerned.
        (bounds("c"), {"a": 1}, {"a": 2, "b": 3, "c": 4}, {"a": 1, "c": 4}),
        # The length of an answer is always said, under the name of the bound.
        (bounds(max_tokens=9), {}, {}, {"max_tokens": 9}),
        (bounds(max_tokens=9), {}, {"max_tokens": None}, {"max_tokens": 9}),
        (bounds(max_tokens=9), {}, {"max_tokens": 5}, {"max_tokens": 5}),
        (bounds(max_tokens=9), {}, {"max_tokens": 0}, {"max_tokens": 0}),
        (bounds(max_tokens=9), {}, {"max_tokens": -1}, {"max_tokens": 9}),
        (bounds(max_tokens=9), {}, {"max_tokens": "5"}, {"max_tokens": 9}),
        (bounds(max_tokens=9), {}, {"max_completion_tokens": 5}, {"max_tokens": 5}),
        (bounds(max_tokens=9), {"max_tokens": 4}, {}, {"max_tokens": 4}),
        (bounds(max_tokens=9), {"max_tokens": 4}, {"n_predict": 7}, {"max_tokens": 7}),
        (
            bounds(max_completion_tokens=9),
            {},
            {"max_tokens": 8, "max_completion_tokens": 6},
            {"max_completion_tokens": 6},
        ),
        # What is not allowed does not count either.
        (bounds("n", max_tokens=9), {}, {"max_tokens": 5}, {"max_tokens": 9}),
        # Another bound adds nothing by itself.
        (bounds(n=4), {}, {}, {}),
        (bounds(n=4), {"n": 2}, {}, {"n": 2}),
        (bounds(n=4), {"n": 2}, {"n": None}, {"n": 2}),
        (bounds(n=4), {"n": 2}, {"n": 5}, {"n": 4}),
        (bounds(n=4), {}, {"n": [5]}, {"n": 4}),
        # What gateways take length limits from, too: objects, at any depth.
        (
            bounds(max_tokens=9),
            {"extra_body": {"n": 5}},
            {
                "reasoning": {"max_tokens": 10, "effort": "high"},
                "x": [{"n_predict": -1}],
            },
            {
                "extra_body": {"n": 5},
                "reasoning": {"max_tokens": 9, "effort": "high"},
                "x": [{"n_predict": 9}],
                "max_tokens": 9,
            },
        ),
        (
            bounds(max_tokens=9),
            {},
            {"max_tokens": 4, "thinking": {"budget_tokens": 10}, "thinking_budget": 10},
            {"max_tokens": 4, "thinking": {"budget_tokens": 9}, "thinking_budget": 9},
        ),
        (
            bounds(max_tokens=9),
            {},
            {"max_tokens": 4, "thinking_budget": {"max_tokens": 10}},
            {"max_tokens": 4, "thinking_budget": 9},
        ),
        (
            bounds(n=4),
            {},
            {"extra_body": {"n": 5, "m": {"n": [7]}}},
            {"extra_body": {"n": 4, "m": {"n": [7]}}},
        ),
        (
            bounds(n=4),
            {},
            {"metadata": {"n": "x", "N": 5}},
            {"metadata": {"n": "x", "N": 4}},
        ),
        # Some upstreams do not mind the case of a name.
        (bounds(n=4), {}, {"N": 9}, {"n": 4}),
        (
            bounds(max_tokens=9),
            {},
            {"MAX_TOKENS": 99, "x": 1},
            {"max_tokens": 9, "x": 1},
        ),
    ],
)
def test_what_a_request_has(
    bound: ParamBounds,
    own: dict[str, Any],
    params: dict[str, Any],
    members: dict[str, Any],
) -> None:
    assert bound.members(own, params) == members


NAMES = st.sampled_from([*ANSWER_TOKENS[:3], "n", "temperature", "store"])
SPELT = NAMES | NAMES.map(str.title)
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=2)
PARAMS = st.dictionaries(SPELT, VALUES, max_size=6)
OBJECTS = st.dictionaries(
    SPELT | st.just("o"),
    st.recursive(
        VALUES,
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(SPELT | st.just("thinkingBudget"), inner, max_size=3)
        ),
        max_leaves=5,
    ),
    max_size=4,
)


@st.composite
def any_bounds(draw: st.DrawFn) -> ParamBounds:
    most = draw(st.dictionaries(NAMES, st.integers(0, 9) | st.floats(0, 9), max_size=4))
    length = [name for name in most if name in ANSWER_TOKENS]
    for name in length[1:]:
        del most[name]
    allowed = draw(st.none() | st.frozensets(NAMES))
    return ParamBounds(allowed=allowed, most=most)


@given(any_bounds(), PARAMS)
def test_no_request_is_beyond_the_bounds(
    bound: ParamBounds, params: dict[str, Any]
) -> None:
    members = bound.members({}, params)
    for name, most in bound.most.items():
        same = ANSWER_TOKENS if name in ANSWER_TOKENS else (name,)
        others = [each.casefold() for each in members if each != name]
        assert not set(others).intersection(same)
        if name in ANSWER_TOKENS or name in members:
            assert 0 <= members[name] <= most
    if bound.allowed is not None:
        assert members.keys() <= bound.allowed | bound.most.keys()


@given(any_bounds(), OBJECTS)
def test_nothing_in_an_object_is_beyond_the_bounds(
    bound: ParamBounds, params: dict[str, Any]
) -> None:
    members = bound.members({}, params)
    assert not list(bound.beyond(members)), "what is sent could be set"
    if not list(bound.beyond(params)) and bound.allowed is None:
        others = params.keys() & members.keys() - bound.most.keys()
        # By what is shown: a number that is none equals nothing.
        assert all(repr(members[name]) == repr(params[name]) for name in others)


@given(any_bounds(), PARAMS)
def test_what_was_taken_is_sent_as_it_is(
    bound: ParamBounds, params: dict[str, Any]
) -> None:
    try:
        bound.check(params)
    except BeyondBoundsError:
        return
    members = bound.members({}, params)
    for name, value in params.items():
        if value is None or name.casefold() in {*ANSWER_TOKENS, *bound.most}:
            continue
        assert members[name] is value
    lengths = [
        value
        for name, value in params.items()
        if name.casefold() in ANSWER_TOKENS and value is not None
    ]
    named = [name for name in bound.most if name in ANSWER_TOKENS]
    if named:
        assert members[named[0]] == min(lengths, default=bound.most[named[0]])
