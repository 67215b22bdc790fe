"""A model and the one that stands in for it, each at an upstream of its own."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from protocol.content import Config
from tests.fakes.replies import json_reply, streamed, text_events
from tests.fakes.rig import NoMetrics
from tests.fakes.upstream import FakeUpstream
from wsserver.assembly.upstreams import Upstreams
from wsserver.engine.prompt import PromptFold
from wsserver.settings import Model, Settings
from wsserver.turns.request import model_request


async def asked_in_turn(
    first: Mapping[str, Any], second: Mapping[str, Any], params: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns what two models of a chain are asked; the first one fails.

    Args:
        first: The settings of the one that is asked first.
        second: Those of the one that stands in for it.
        params: What the conversation sets.
    """
    async with FakeUpstream() as one, FakeUpstream() as two, AsyncExitStack() as stack:
        one.script(json_reply({"error": {"message": "no"}}, 503))
        two.script(streamed(text_events("a")))
        models = {
            "a": Model(base_url=one.base_url, fallback=("b",), **first),
            "b": Model(base_url=two.base_url, **second),
        }
        upstreams = Upstreams(Settings(models=models), {}, stack)
        table = upstreams.chained(
            await upstreams.table(), metrics=NoMetrics(), jitter=lambda: 0.5
        )
        target = table.resolve("a")
        assert target is not None
        request = model_request(Config(params=params), target, PromptFold(), "r")
        async with target.provider.stream(request) as stream:
            await stream.pump(lambda _: None)
        return one.requests[0].json, two.requests[0].json
