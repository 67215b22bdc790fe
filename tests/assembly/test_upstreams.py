from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import date
from functools import reduce
from math import inf
from pathlib import Path
from typing import Any, Self

import pytest

from tests.assembly.chain import asked_in_turn
from tests.fakes.rig import NoMetrics
from wsserver.assembly.upstreams import OPENAI_DEFAULT_MODEL, Upstreams, open_upstreams
from wsserver.engine.limits import TurnLimits
from wsserver.providers import local
from wsserver.providers.demo import DEFAULT_MODEL, DemoProvider
from wsserver.providers.fallback import Fallback
from wsserver.settings import Model, Settings, SettingsError
from wsserver.turns.models import ModelTable
from wsserver.turns.services import Target


@pytest.fixture
async def table() -> AsyncIterator[Any]:
    async with AsyncExitStack() as stack:

        async def make(
            environ: dict[str, str] | None = None, **settings: Any
        ) -> ModelTable:
            upstreams = Upstreams(Settings(**settings), environ or {}, stack)
            return upstreams.chained(
                await upstreams.table(), metrics=NoMetrics(), jitter=lambda: 0.5
            )

        yield make


async def test_without_an_upstream_there_is_the_demo(table: Any) -> None:
    models = await table()
    assert models.default == DEFAULT_MODEL
    assert isinstance(models.resolve("demo/long").provider, DemoProvider)
    assert models.resolve("demo/nothing") is None
    assert models.resolve("gpt") is None


@pytest.mark.parametrize(
    "given", [{"openai_api_key": "k"}, {"openai_base_url": "http://up.invalid/v1"}]
)
async def test_with_one_any_other_name_goes_there(
    table: Any, given: dict[str, str]
) -> None:
    models = await table(**given)
    assert models.default == OPENAI_DEFAULT_MODEL
    assert models.resolve("gpt").model == "gpt"
    assert models.resolve("gpt").context_tokens == Settings().context_tokens
    assert isinstance(models.resolve("demo/long").provider, DemoProvider)


async def test_metrics_know_the_provider_of_each_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class NoServer:
        base_url, api_key, name = "http://127.0.0.1:1/v1", "k", "weights"

        def __init__(self, settings: local.LocalSettings) -> None:
            assert settings.weights.name == "weights.gguf"

        async def __aenter__(self) -> Self:
            return self

        async def __aexit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(local, "LocalServer", NoServer)
    monkeypatch.setattr(local, "find_weights", lambda _: Path("weights.gguf"))
    chain = Model(base_url="http://a.invalid/v1", fallback=("local", "demo/echo"))
    settings = Settings(
        local_model_path="weights.gguf",
        openai_api_key="k",
        models={"chain": chain, "plain": Model(base_url="http://a.invalid/v1")},
    )
    own = {"shout": Target(provider=DemoProvider(), model="loud")}
    async with AsyncExitStack() as stack:
        upstreams = Upstreams(settings, {}, stack)
        plain = await upstreams.table(own)
        models = upstreams.chained(plain, metrics=NoMetrics(), jitter=lambda: 0.5)
    names = {
        "chain": "openai", "plain": "openai", "any": "openai", "local": "local",
        "demo/echo": "demo", "demo/nothing": None, "shout": "custom",
    }  # fmt: skip
    assert {name: models.provider_name(name) for name in names} == names


async def test_a_model_of_the_file_goes_where_it_says(table: Any) -> None:
    one = Model(base_url="http://a.invalid/v1", model="theirs", context_tokens=9)
    other = Model(base_url="http://a.invalid/v1", api_key_env="KEY")
    models = await table({"KEY": "k"}, models={"ours": one, "other": other})
    assert models.default == "ours"
    target = models.resolve("ours")
    assert (target.model, target.context_tokens) == ("theirs", 9)
    assert models.resolve("other").model == "other"
    assert models.resolve("other").provider is not target.provider
    assert models.resolve("gpt") is None


async def test_certificates_that_are_not_there_are_missed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))
    async with open_upstreams(Settings(openai_base_url="https://up.example/v1")) as up:
        await up.table()
        with pytest.raises(SettingsError, match=r"SSL_CERT_FILE: .*gone\.pem"):
            await up.warm_up()


async def test_models_of_one_upstream_share_its_pool(table: Any) -> None:
    model = Model(base_url="http://a.invalid/v1")
    models = await table(models={"a": model, "b": model})
    assert models.resolve("a").provider is models.resolve("b").provider


async def test_where_a_model_leads_can_be_logged_without_keys(table: Any) -> None:
    urls = {
        "a": "http://user:secret@a.invalid:81/token/v1",
        "b": "https://b.invalid/v1",
    }
    models = await table(
        models={name: Model(base_url=url) for name, url in urls.items()}
        | {"chain": Model(base_url="https://c.invalid/v1", fallback=("a",))}
    )
    assert models.resolve("a").address == "http://a.invalid:81"
    assert models.resolve("b").address == "https://b.invalid"
    assert models.resolve("demo/long").address is None
    chain = models.resolve("chain").provider
    assert [one.address for one in chain._candidates] == [
        "https://c.invalid", "http://a.invalid:81"
    ]  # fmt: skip


async def test_a_key_that_is_not_there_is_missed(table: Any) -> None:
    model = Model(base_url="http://a.invalid/v1", api_key_env="KEY")
    with pytest.raises(SettingsError, match=r"models\.a: KEY is not set"):
        await table(models={"a": model})


async def test_the_default_is_what_was_set(table: Any) -> None:
    assert (await table(default_model="demo/long")).default == "demo/long"
    with pytest.raises(SettingsError, match="leads nowhere"):
        await table(default_model="gpt")


async def test_a_model_with_a_fallback_is_a_chain(table: Any) -> None:
    url = "http://a.invalid/v1"
    large = Model(base_url=url, fallback=("small", "demo/long"), context_tokens=900)
    small = Model(
        base_url=url,
        model="theirs",
        context_tokens=700,
        first_token_timeout_seconds=3,
        fallback=("large",),
    )
    models = await table(models={"large": large, "small": small})
    chain = models.resolve("large")
    assert isinstance(chain.provider, Fallback)
    members = chain.provider._candidates
    assert [member.name for member in members] == ["large", "small", "demo/long"]
    assert [member.model for member in members] == ["large", "theirs", "demo/long"]
    assert not any(isinstance(member.provider, Fallback) for member in members)
    assert [member.first_token_seconds for member in members] == [60, 3, 60]
    assert chain.context_tokens == 700, "every one of them has to take the prompt"
    assert chain.first_token_seconds > 60 + 3 + 60
    # A model has one breaker, in whichever chains it is.
    again = models.resolve("small").provider._candidates
    assert [member.breaker for member in again] == [
        members[1].breaker,
        members[0].breaker,
    ]
    assert models.names()[:2] == ["large", "small"]


async def test_a_model_may_have_a_patience_of_its_own(table: Any) -> None:
    model = Model(base_url="http://a.invalid/v1", first_token_timeout_seconds=3)
    target = (await table(models={"a": model})).resolve("a")
    limits = target.limits(TurnLimits())
    assert limits.patience.first_token_seconds == 3
    assert limits.patience.idle_seconds == TurnLimits().patience.idle_seconds
    usual = Target(provider=target.provider, model="m")
    assert usual.limits(TurnLimits()) == TurnLimits()


@pytest.mark.parametrize(
    ("fallback", "message"),
    [
        (("b",), r"models\.a: 'b' in `fallback` leads nowhere"),
        (("demo/nothing",), "'demo/nothing' in `fallback` leads nowhere"),
        (("a",), "'a' in `fallback` stands there twice"),
        (("demo/long", "demo/long"), "'demo/long' in `fallback` stands there twice"),
    ],
)
async def test_a_fallback_that_can_not_be_is_refused(
    table: Any, fallback: tuple[str, ...], message: str
) -> None:
    model = Model(base_url="http://a.invalid/v1", fallback=fallback)
    with pytest.raises(SettingsError, match=message):
        await table(models={"a": model})


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"stream": False}, r"models\.a\.params\.stream: the server says this"),
        ({"x": date(2026, 1, 1)}, r"models\.a\.params\.x: JSON has no dates"),
        ({"x": [{"y": inf}]}, r"models\.a\.params\.x: JSON has no dates"),
        (
            {"seed": 10**30},
            r"models\.a\.params\.seed: an integer beyond 64 bits; write a smaller one",
        ),
        ({"x": {"y": [2**64]}}, r"models\.a\.params\.x\.y\[0\]: an integer beyond"),
        (
            {"x": reduce(lambda inner, _: [inner], range(3000), [])},
            r"models\.a\.params\.x: tables and lists that stand more than 64 deep",
        ),
    ],
)
async def test_params_that_can_not_be_sent(
    table: Any, params: dict[str, Any], expected: str
) -> None:
    model = Model(base_url="http://a.invalid/v1", params=params)
    with pytest.raises(SettingsError, match=expected):
        await table(models={"a": model})


async def test_each_model_of_a_chain_is_asked_with_its_own_params() -> None:
    one, two = await asked_in_turn(
        {"params": {"max_tokens": 5, "top_k": 1}},
        {"params": {"max_tokens": 7}},
        params={"temperature": 0.5},
    )
    assert one["max_tokens"] == 5
    assert two["max_tokens"] == 7
    assert (one["top_k"], two["temperature"]) == (1, 0.5)
    assert "top_k" not in two
