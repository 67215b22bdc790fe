"""What a turn needs of a provider. Providers stand beside this, not on it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from wsserver.engine.model import ModelEvent, ModelRequest

ModelStream = AsyncIterator[Sequence[ModelEvent]]


class Provider(Protocol):
    """Answers model requests."""

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[ModelStream]:
        """Makes one model call.

        Entering the context sends the request and returns when the upstream
        has answered with headers. The stream yields one batch of events for
        each read of the upstream (an empty batch is a sign of life without
        content) and ends with the batch that holds `Finished`. Leaving the
        context, also by cancellation at any point, closes the upstream
        connection unless the response was read to its end. Never retries.

        Raises:
            UpstreamError: On entering, when no stream could be had. Once the
                stream began, faults arrive as its `Finished` event.
        """
        ...
