"""The entrance to the demo models: a provider that needs nothing."""

import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager

import anyio
import anyio.lowlevel

from wsserver.engine.model import Failure, ModelRequest, UpstreamError
from wsserver.providers.batches import Batches
from wsserver.providers.demo.answer import finish, limited, resized
from wsserver.providers.demo.options import (
    PREFIX,
    DemoOptions,
    read_options,
    split_name,
)
from wsserver.providers.demo.personalities import (
    DEFAULT_NAME,
    PERSONALITIES,
    Personality,
)
from wsserver.providers.demo.playback import Pace, play
from wsserver.providers.demo.question import read_question
from wsserver.providers.demo.tokens import count_input_tokens

DEFAULT_MODEL = PREFIX + DEFAULT_NAME


class DemoProvider:
    """Answers `demo/…` models, the same request always in the same way.

    Input tokens are counted as `tokens.count_input_tokens` says; each output
    token is one event.
    """

    def models(self) -> Mapping[str, str]:
        """Returns the models' names, the default first, with a line on each."""
        return {
            PREFIX + name: personality.description
            for name, personality in PERSONALITIES.items()
        }

    def accepts(self, model: str) -> bool:
        """Says whether `model` is one of the models, options in the name included."""
        return self.fault(model) is None

    def fault(self, model: str) -> str | None:
        """Says why `model` is none of the models; None where it is one."""
        try:
            _personality(model)
            read_options(split_name(model)[1], {})
        except ValueError as error:
            return str(error)
        except UpstreamError as error:
            return error.failure.message
        return None

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[Batches]:
        """Makes one model call; see `wsserver.engine.provider.Provider.stream`.

        Raises:
            UpstreamError: The model is unknown, an option is, or the model is one
                that fails before it begins.
        """
        requested_at = anyio.current_time()
        await anyio.lowlevel.checkpoint()
        personality, options = _read_model(request)
        if personality.unavailable is not None:
            raise UpstreamError(personality.unavailable)
        answer = personality.answer(read_question(request, options))
        if options.tokens is not None:
            answer = resized(answer, options.tokens)
        if options.max_tokens is not None:
            answer = limited(answer, options.max_tokens)
        finished = finish(answer, count_input_tokens(request.messages))
        pace = _pace(personality, options)
        async with aclosing(
            play(answer.events, finished, pace, requested_at)
        ) as batches:
            yield Batches(batches)


def _read_model(request: ModelRequest) -> tuple[Personality, DemoOptions]:
    try:
        _, written = split_name(request.model)
        return _personality(request.model), read_options(written, request.params)
    except ValueError as error:
        raise _refused(str(error)) from None


def _personality(model: str) -> Personality:
    name, _ = split_name(model)
    personality = PERSONALITIES.get(name)
    if personality is None:
        known = ", ".join(PREFIX + known for known in PERSONALITIES)
        raise _refused(f"there is no demo model {name!r}; there are {known}")
    return personality


def _refused(message: str) -> UpstreamError:
    return UpstreamError(
        Failure(code="upstream_error", message=message, retryable=False)
    )


def _pace(personality: Personality, options: DemoOptions) -> Pace:
    usual = personality.pace
    first_token_seconds = usual.first_token_seconds
    if options.first_token_ms is not None:
        first_token_seconds = options.first_token_ms / 1000
    tokens_per_second = usual.tokens_per_second
    if options.tokens_per_second is not None:
        tokens_per_second = options.tokens_per_second or math.inf
    return Pace(
        first_token_seconds=first_token_seconds, tokens_per_second=tokens_per_second
    )
