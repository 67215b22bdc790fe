"""What a turn needs of a provider: the contract, for those in here and of your own."""

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
        that ends with `Finished`.

        Raises:
            UpstreamError: No stream could be had, where the upstream is only asked
                as the stream is pumped. Nothing was given to `sink` then but empty
                batches; what fails later arrives as a `Finished` event.
            Exception: What `sink` raised.
        """
        ...


class Provider(Protocol):
    """Answers model requests."""

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[ModelStream]:
        """Makes one model call.

        Entering the context sends the request and returns when the upstream
        has answered with headers; one that chooses between several upstreams may leave
        both to `pump`. Leaving the context, also by cancellation at any point, closes
        the upstream connection unless the response was read to its end.

        The turn makes a call again that failed before anything was shown, if the
        failure is `retryable`. A provider that has done so itself says `retried`.

        Raises:
            UpstreamError: On entering, when no stream could be had.
        """
        ...
