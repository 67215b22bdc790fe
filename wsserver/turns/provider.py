"""What a turn needs of a provider. Providers stand beside this, not on it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from wsserver.engine.model import ModelEvent, ModelRequest

Sink = Callable[[Sequence[ModelEvent]], None]
"""Takes what one read of the upstream held, at once."""


class ModelStream(Protocol):
    """What a model says in one call."""

    async def pump(self, sink: Sink) -> None:
        """Gives each read's events to `sink`, where and when they arrive.

        An empty batch is a sign of life without content. Returns after the batch
        that ends with `Finished`; raises what `sink` raises.
        """
        ...


class Provider(Protocol):
    """Answers model requests."""

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[ModelStream]:
        """Makes one model call.

        Entering the context sends the request and returns when the upstream
        has answered with headers. Leaving the context, also by cancellation at
        any point, closes the upstream connection unless the response was read to
        its end. Never retries.

        Raises:
            UpstreamError: On entering, when no stream could be had. Once the
                stream began, faults arrive as its `Finished` event.
        """
        ...
