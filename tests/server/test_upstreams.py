from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from wsserver.providers.demo import DEFAULT_MODEL, DemoProvider
from wsserver.settings import Model, Settings
from wsserver.sources import SettingsError
from wsserver.turns.models import ModelTable
from wsserver.upstreams import OPENAI_DEFAULT_MODEL, Upstreams


@pytest.fixture
async def table() -> AsyncIterator[Any]:
    async with AsyncExitStack() as stack:

        async def make(
            environ: dict[str, str] | None = None, **settings: Any
        ) -> ModelTable:
            return await Upstreams(Settings(**settings), environ or {}, stack).table()

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


async def test_models_of_one_upstream_share_its_pool(table: Any) -> None:
    model = Model(base_url="http://a.invalid/v1")
    models = await table(models={"a": model, "b": model})
    assert models.resolve("a").provider is models.resolve("b").provider


async def test_a_key_that_is_not_there_is_missed(table: Any) -> None:
    model = Model(base_url="http://a.invalid/v1", api_key_env="KEY")
    with pytest.raises(SettingsError, match=r"models\.a: KEY is not set"):
        await table(models={"a": model})


async def test_the_default_is_what_was_set(table: Any) -> None:
    assert (await table(default_model="demo/long")).default == "demo/long"
    with pytest.raises(SettingsError, match="leads nowhere"):
        await table(default_model="gpt")
