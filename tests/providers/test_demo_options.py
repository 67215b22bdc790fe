"""Options of a demo model: in its name, in the parameters, and the limits."""

from typing import Any

import pytest

from tests.fakes.clocks import jumping_time  # noqa: F401 - a fixture
from wsserver.engine.model import Finished, ModelRequest, Text, UpstreamError
from wsserver.providers.demo import DemoOptions, DemoProvider
from wsserver.providers.demo.options import read_options, split_name

provider = DemoProvider()


async def answer(model: str, **params: Any) -> tuple[str, int, Finished]:
    """Returns the text, the number of tokens and the end."""
    request = ModelRequest(
        model=model,
        messages=[{"role": "user", "content": "Go on."}],
        params=params,
        request_id="r",
    )
    text = ""
    tokens = 0
    async with provider.stream(request) as batches:
        async for batch in batches:
            for event in batch:
                if isinstance(event, Finished):
                    return text, tokens, event
                tokens += 1
                text += event.text if isinstance(event, Text) else ""
    raise AssertionError("a stream ends with Finished")


def test_a_name_is_taken_apart():
    assert split_name("demo/long:tokens=8,seed=1") == (
        "long",
        {"tokens": "8", "seed": "1"},
    )
    assert split_name("demo/fast") == split_name("fast:") == ("fast", {})


def test_parameters_win_over_the_name():
    options = read_options(
        {"tokens": "8", "tokens_per_second": "0.5"},
        {"demo_tokens": 9, "temperature": 0, "max_tokens": 3},
    )
    assert options == DemoOptions(tokens=9, tokens_per_second=0.5, max_tokens=3)


def test_the_newer_name_of_the_token_limit_wins():
    params = {"max_tokens": 3, "max_completion_tokens": 4}
    assert read_options({}, params).max_tokens == 4


@pytest.mark.parametrize(
    "params",
    [
        {"demo_tokens": 0},
        {"demo_tokens": 10**9},
        {"demo_tokens": "many"},
        {"demo_tokens_per_second": -1},
        {"demo_first_token_ms": float("nan")},
        {"demo_colour": "red"},
        {"max_tokens": 0},
    ],
)
async def test_a_bad_option_is_refused(params: dict[str, Any]):
    with pytest.raises(UpstreamError) as caught:
        await answer("demo/fast", **params)
    assert caught.value.failure.code == "upstream_error"
    assert not caught.value.failure.retryable
    assert "demo options" in caught.value.failure.message


def test_options_in_a_name_are_checked_with_it():
    assert provider.accepts("demo/long:tokens=8,tokens_per_second=0")
    assert not provider.accepts("demo/long:tokens=0")
    assert not provider.accepts("demo/long:colour=red")


@pytest.mark.parametrize("tokens", [1, 7, 3000])
@pytest.mark.parametrize(
    "model",
    ["demo/markdown", "demo/fast", "demo/chinese", "demo/reasoning", "demo/length"],
)
async def test_an_answer_has_exactly_the_length_asked_for(model: str, tokens: int):
    _, given, finished = await answer(model, demo_tokens=tokens)
    assert given == tokens
    assert finished.usage is not None
    assert finished.usage.output_tokens == tokens


async def test_length_does_not_break_json_or_make_something_of_nothing():
    assert (await answer("demo/json", demo_tokens=3))[0].endswith("}")
    assert (await answer("demo/empty", demo_tokens=3))[1] == 0


async def test_a_limit_on_tokens_finishes_with_length():
    text, given, finished = await answer("demo/fast", max_tokens=10)
    assert given == 10
    assert finished.reason == "length"
    whole, given, finished = await answer("demo/fast", max_tokens=500)
    assert whole.startswith(text)
    assert given == 500
    assert finished.reason == "stop"


async def test_a_seed_gives_another_answer():
    texts = {(await answer(f"demo/fast:seed={seed}"))[0] for seed in range(4)}
    assert len(texts) == 4
