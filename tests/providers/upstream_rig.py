"""A provider and a scripted upstream that it calls."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from tests.fakes.upstream import FakeUpstream, Reply, Request
from wsserver.engine.model import Failure, ModelEvent, ModelRequest, UpstreamError
from wsserver.providers.chat.provider import OpenAIChat, OpenAIChatSettings

WAIT_SECONDS = 10.0


def request(**members: Any) -> ModelRequest:
    """Returns a small request with these members."""
    given: dict[str, Any] = {
        "model": "toy",
        "messages": [{"role": "user", "content": "hi"}],
        "request_id": "req-1",
    }
    return ModelRequest(**{**given, **members})


@asynccontextmanager
async def provider_for(base_url: str, **settings: Any) -> AsyncGenerator[OpenAIChat]:
    """Gives a provider and closes it."""
    provider = OpenAIChat(OpenAIChatSettings(base_url=base_url, **settings))
    try:
        yield provider
    finally:
        await provider.aclose()


class Rig:
    """One provider with its upstream."""

    def __init__(self, upstream: FakeUpstream, provider: OpenAIChat) -> None:
        self.upstream = upstream
        self.provider = provider

    async def call(self, *replies: Reply, **members: Any) -> list[ModelEvent]:
        """Makes one model call and returns all of its events."""
        if replies:
            self.upstream.script(*replies)
        return await call(self.provider, request(**members))

    async def refusal(self, reply: Reply, **members: Any) -> Failure:
        """Makes a model call that fails before its stream, and returns why."""
        self.upstream.script(reply)
        return await refusal(self.provider, request(**members))

    async def sent(self, **members: Any) -> Request:
        """Makes one model call and returns what the upstream got."""
        await self.call(Reply(body=b"data: [DONE]\n\n"), **members)
        return self.upstream.requests[-1]


@asynccontextmanager
async def rig(**settings: Any) -> AsyncGenerator[Rig]:
    """Gives a rig whose provider has these settings."""
    async with (
        FakeUpstream() as upstream,
        provider_for(upstream.base_url, **settings) as provider,
    ):
        yield Rig(upstream, provider)


async def call(provider: OpenAIChat, asked: ModelRequest) -> list[ModelEvent]:
    """Makes one model call and returns all of its events."""
    events: list[ModelEvent] = []
    with anyio.fail_after(WAIT_SECONDS):
        async with provider.stream(asked) as batches:
            async for batch in batches:
                events += batch
    return events


async def refusal(provider: OpenAIChat, asked: ModelRequest) -> Failure:
    """Makes a model call that fails before its stream, and returns why."""
    try:
        await call(provider, asked)
    except UpstreamError as error:
        return error.failure
    raise AssertionError("the call did not fail")
