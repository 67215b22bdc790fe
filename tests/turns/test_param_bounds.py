"""Request members that a model's clients may not set, in commands and in model calls."""

from typing import Any

import pytest

from protocol.content import Config
from tests.fakes.rig import ALICE
from tests.fakes.scripted import ScriptedProvider, says
from tests.turns.talk import Talk, talking
from wsserver.engine.param_bounds import UNBOUNDED, ParamBounds
from wsserver.turns.admission import MAX_PARTS
from wsserver.turns.errors import CommandError
from wsserver.turns.services import Target

STRICT = ParamBounds(
    allowed=frozenset({"temperature", "max_tokens", "a-b"}),
    most={"max_tokens": 10, "a-b": 1},
)


class Models:
    """`free` is without bounds, `strict` and the default have some."""

    default = "strict"

    def __init__(self, provider: ScriptedProvider) -> None:
        self._provider = provider
        self.bounds = {"free": UNBOUNDED, "strict": STRICT}

    def names(self) -> list[str]:
        return list(self.bounds)

    def resolve(self, name: str) -> Target | None:
        if name not in self.bounds:
            return None
        return Target(
            provider=self._provider,
            model=name,
            params={"seed": 7},
            bounds=self.bounds[name],
        )


def bound(talk: Talk) -> Models:
    models = talk.rig.services.models = Models(talk.provider)
    return models


BEYOND: list[tuple[dict[str, Any], str, str]] = [
    (
        {"params": {"service_tier": "priority"}},
        "$.config.params.service_tier",
        (
            "With the model strict `service_tier` may not be set; leave it out"
            " (what may: `a-b`, `max_tokens`, `temperature`)."
        ),
    ),
    (
        {"model": "strict", "params": {"max_tokens": 11}},
        "$.config.params.max_tokens",
        (
            "With the model strict `max_tokens` may be a number from 0 to 10; correct it, or"
            " leave it out."
        ),
    ),
    (
        {"params": {"y" * 100_000: 2}},
        "$.config.params",
        (
            f"With the model strict `{'y' * 64}…` may not be set; leave it out"
            " (what may: `a-b`, `max_tokens`, `temperature`)."
        ),
    ),
    (
        {"params": {"temperature": {"x": [{"a-b": 2}]}}},
        '$.config.params.temperature.x[0]["a-b"]',
        (
            "With the model strict `temperature.x.0.a-b` may be a number from 0 to 1; correct"
            " it, or leave it out."
        ),
    ),
    (
        {"params": {"a-b": 2}},
        '$.config.params["a-b"]',
        (
            "With the model strict `a-b` may be a number from 0 to 1; correct it, or leave it"
            " out."
        ),
    ),
]


@pytest.mark.parametrize(("change", "param", "says_"), BEYOND)
async def test_what_goes_beyond_is_refused_and_changes_nothing(
    change: dict[str, Any], param: str, says_: str
) -> None:
    async with talking(says("a")) as talk:
        bound(talk)
        talk.configure(params={"temperature": 1})
        before, config = await talk.kinds(), talk.conversation.state.config
        with pytest.raises(CommandError) as caught:
            talk.configure(**change)
        body = caught.value.body
        assert (body.code, body.param, body.message) == ("bad_frame", param, says_)
        assert not body.retryable
        assert (await talk.kinds(), talk.conversation.state.config) == (before, config)
        directory = talk.rig.directory
        with pytest.raises(CommandError) as caught:
            await directory.create("alice/new", Config(**change), ALICE)
        assert caught.value.body == body
        assert directory.loaded("alice/new") is None
        assert await talk.rig.store.meta("alice/new") is None


async def test_lists_and_objects_in_them_are_counted() -> None:
    async with talking() as talk:
        # With the params themselves and the list in them.
        params = {"x": [{"y": {}}, *([[]] * (MAX_PARTS - 4)), *range(9)]}
        talk.configure(params=params)
        params["x"].append({})
        with pytest.raises(CommandError) as caught:
            talk.configure(params=params)
        body = caught.value.body
        assert (body.code, body.param) == ("bad_frame", "$.config.params")
        assert body.message == (
            "There are more than 5000 lists and objects in `params`; send fewer."
        )
        with pytest.raises(CommandError) as caught:
            await talk.rig.directory.create("alice/new", Config(params=params), ALICE)
        assert caught.value.body == body


async def test_another_model_brings_its_own_bounds() -> None:
    async with talking(says("a")) as talk:
        bound(talk)
        talk.configure(model="free", params={"max_tokens": 99, "store": True})
        with pytest.raises(CommandError) as caught:
            talk.configure(model="strict", params={"store": True})
        assert caught.value.body.param == "$.config.params.store"
        with pytest.raises(CommandError):
            talk.configure(model=None, params={"store": True})  # as strict
        assert talk.conversation.state.config.model == "free"
        talk.configure(model="strict")  # what was set for another model is no fault
        talk.send()
        await talk.done()
        assert talk.provider.requests[0].params == {"seed": 7, "max_tokens": 10}


async def test_settings_that_are_older_than_a_bound_end_no_turn() -> None:
    async with talking(says("a"), says("b"), says("c")) as talk:
        models = bound(talk)
        models.bounds["strict"] = UNBOUNDED
        talk.configure(params={"store": True, "n_predict": 99, "temperature": 1})
        models.bounds["strict"] = STRICT
        talk.configure(instructions="be brief")  # says nothing of members
        assert talk.send().ok
        await talk.done()
        reply = await talk.fork(talk.conversation.log.head)
        fork = await talk.another(reply.conversation or "")
        fork.send(conversation=reply.conversation)
        await fork.done()
        assert await talk.dones() == ["completed"]
        assert await fork.dones() == ["completed", "completed"]
        bounded = {"seed": 7, "max_tokens": 10, "temperature": 1}
        assert [request.params for request in talk.provider.requests] == [bounded] * 2
