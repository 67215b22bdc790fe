"""What clients may set of a model's requests, by the settings."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.assembly.chain import asked_in_turn
from tests.fakes.rig import NoMetrics
from tests.fakes.scripted import ScriptedProvider, says
from wsserver.assembly.upstreams import Upstreams
from wsserver.engine.param_bounds import UNBOUNDED, ParamBounds
from wsserver.settings import Model, Settings, SettingsError
from wsserver.turns.models import ModelTable
from wsserver.turns.services import Target

URL = "http://a.invalid/v1"


@pytest.fixture
async def table() -> AsyncIterator[Any]:
    async with AsyncExitStack() as stack:

        async def make(
            own: Mapping[str, Target] | None = None, **settings: Any
        ) -> ModelTable:
            upstreams = Upstreams(Settings(**settings), {}, stack)
            return upstreams.chained(
                await upstreams.table(own or {}),
                metrics=NoMetrics(),
                jitter=lambda: 0.5,
            )

        yield make


def bounds(table: ModelTable, name: str) -> ParamBounds:
    target = table.resolve(name)
    assert target is not None
    assert target.bounds is not None
    return target.bounds


async def test_nothing_is_bounded_unless_it_is_said(table: Any) -> None:
    models = await table(openai_base_url=URL, models={"a": Model(base_url=URL)})
    for name in ("a", "gpt", "demo/echo"):
        assert bounds(models, name) == ParamBounds()


async def test_what_a_model_does_not_say_the_server_says(table: Any) -> None:
    models = await table(
        openai_base_url=URL,
        params_allowed=("top_p",),
        params_max={"max_tokens": 5},
        models={
            "silent": Model(base_url=URL, fallback=("open",)),
            "own": Model(
                base_url=URL, params_allowed=("n",), params_max={"max_new_tokens": 7}
            ),
            "open": Model(base_url=URL, params_allowed=("n", "*"), params_max={}),
            "shut": Model(base_url=URL, params_allowed=()),
        },
    )
    general = ParamBounds(allowed=frozenset({"top_p"}), most={"max_tokens": 5})
    for name in ("silent", "gpt", "demo/echo", "demo/long:tokens=3"):
        assert bounds(models, name) == general
    own = ParamBounds(allowed=frozenset({"n"}), most={"max_new_tokens": 7})
    assert bounds(models, "own") == own
    assert bounds(models, "open") == ParamBounds()
    shut = ParamBounds(allowed=frozenset(), most={"max_tokens": 5})
    assert bounds(models, "shut") == shut


@pytest.mark.parametrize(
    ("general", "its", "expected"),
    [
        (
            {"params_allowed": ("model",)},
            {},
            r"^params_allowed\.model: the server says",
        ),
        (
            {},
            {"params_allowed": ("stream",)},
            r"^models\.a\.params_allowed\.stream: the",
        ),
        (
            {"params_max": {"messages": 1}},
            {},
            r"^params_max\.messages: the server says",
        ),
        (
            {"params_max": {"Model": 1}},
            {},
            r"^params_max\.Model: the server says",
        ),
        (
            {"params_max": {"max_tokens": 0.5}},
            {},
            r"^params_max\.max_tokens: 0\.5 is no number of tokens; write a whole one$",
        ),
        (
            {},
            {"params_max": {"max_tokens": 1, "max_completion_tokens": 1}},
            (
                r"^models\.a\.params_max\.max_completion_tokens: max_tokens is there too,"
                " a name of the same thing; leave the one that the upstream takes, which"
                " bounds both$"
            ),
        ),
        (
            {"params_max": {"n": 1, "N": 2}},
            {},
            r"^params_max\.N: n is there too, a name of the same thing; leave the one",
        ),
        (
            {"params_max": {"\u017feed": 1, "seed": 2}},
            {},
            r"^params_max\.seed: \u017feed is there too",
        ),
        (
            {},
            {"params_max": {"Max_Tokens": 1}},
            (
                r"^models\.a\.params_max\.Max_Tokens: upstreams know it as max_tokens;"
                " write that$"
            ),
        ),
        (
            {"params_max": {"reasoning.max_tokens": 1}},
            {},
            (
                r"^params_max\.reasoning\.max_tokens: a bound holds at any depth, for names"
                " without dots; write max_tokens$"
            ),
        ),
        (
            {"params_allowed": ("n", "*", "reasoning.max_tokens")},
            {},
            (
                r"^params_allowed\.reasoning\.max_tokens: a member is allowed with all that"
                " it holds, by a name without dots; write reasoning$"
            ),
        ),
        (
            {},
            {"params_allowed": ("a.b",)},
            r"^models\.a\.params_allowed\.a\.b: a member is .*; write a$",
        ),
        *(
            (
                {"params_max": {name: value}},
                {},
                rf"^params_max\.{name}: {value} is no bound; write a number from 0 to {2**53}$",
            )
            for value in (float("inf"), float("nan"), -1, True)
            for name in ("max_tokens", "n")
        ),
        *(
            (
                general,
                {"params": {"max_completion_tokens": 11}, **own},
                (
                    r"^models\.a\.params\.max_completion_tokens: "
                    rf"{which} takes a number from 0 to 10 only; correct the one or the"
                    " other$"
                ),
            )
            for general, own, which in (
                ({"params_max": {"max_tokens": 10}}, {}, "params_max"),
                ({}, {"params_max": {"max_tokens": 10}}, r"models\.a\.params_max"),
            )
        ),
    ],
)
async def test_what_can_not_be_meant_is_refused(
    table: Any, general: dict[str, Any], its: dict[str, Any], expected: str
) -> None:
    with pytest.raises(SettingsError, match=expected):
        await table(models={"a": Model(base_url=URL, **its)}, **general)


async def test_nor_may_objects_of_its_own_params_be_beyond(table: Any) -> None:
    model = Model(base_url=URL, params={"reasoning": {"max_tokens": 11}})
    expected = r"^models\.a\.params\.reasoning\.max_tokens: params_max takes a number"
    with pytest.raises(SettingsError, match=expected):
        await table(models={"a": model}, params_max={"max_tokens": 10})


async def test_a_number_of_tokens_is_sent_without_a_point(table: Any) -> None:
    models = await table(openai_base_url=URL, params_max={"max_tokens": 1e3, "x": 0.5})
    members = bounds(models, "gpt").members({}, {})
    assert str(members) == "{'max_tokens': 1000}"


def own(**members: Any) -> Target:
    """Returns a model as a program brings it."""
    return Target(provider=ScriptedProvider(says("a")), model="own", **members)


async def test_a_model_that_a_program_brings_has_what_the_server_says(
    table: Any,
) -> None:
    tight = ParamBounds(most={"n": 1})
    models = await table(
        {"silent": own(), "open": own(bounds=UNBOUNDED), "tight": own(bounds=tight)},
        params_allowed=("top_p",),
        params_max={"max_tokens": 5},
        models={"chain": Model(base_url=URL, fallback=("silent",))},
    )
    general = ParamBounds(allowed=frozenset({"top_p"}), most={"max_tokens": 5})
    assert bounds(models, "silent") == general
    assert bounds(models, "open") == UNBOUNDED
    assert bounds(models, "tight") == tight
    silent = models.resolve("silent")
    assert silent.members({"max_tokens": 9, "n": 2}) == {"max_tokens": 5}


async def test_nor_may_its_own_params_be_beyond(table: Any) -> None:
    with pytest.raises(SettingsError, match=r"^models\.a\.params\.n: params_max takes"):
        await table({"a": own(params={"n": 2})}, params_max={"n": 1})
    tight = ParamBounds(most={"n": 1})
    with pytest.raises(SettingsError, match=r"^models\.a\.params\.n: its bound takes"):
        await table({"a": own(params={"n": 2}, bounds=tight)})


async def test_what_only_clients_may_not_set_the_operator_may(table: Any) -> None:
    model = Model(base_url=URL, params={"service_tier": "flex"}, params_allowed=())
    target = (await table(models={"a": model})).resolve("a")
    assert target.members({"service_tier": "priority"}) == {"service_tier": "flex"}


async def test_each_model_of_a_chain_is_asked_within_its_own_bounds() -> None:
    one, two = await asked_in_turn(
        {"params_max": {"max_completion_tokens": 50}},
        {
            "params": {"max_tokens": 7},
            "params_allowed": ("n", "max_completion_tokens"),
            "params_max": {"max_tokens": 20, "n": 1},
        },
        params={"n": 2, "store": True},
    )
    said = {"n": 2, "store": True, "max_completion_tokens": 50}
    assert said.items() <= one.items()
    assert {"n": 1, "max_tokens": 7}.items() <= two.items()
    assert not two.keys() & {"store", "max_completion_tokens"}
