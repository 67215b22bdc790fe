"""The provider for every upstream that speaks the Chat Completions API.

The openai SDK makes and authenticates the request, `http.transport` sends it, `decoder`
reads the raw bytes of the answer: building the SDK's typed chunks would cost 80 times as
much. The body is encoded here, for going through its members takes the SDK a while.
Nothing is retried here and no timer runs but that of connecting: the turn's timers
stop a model call by cancelling it.
"""

import math
from collections.abc import (
    AsyncGenerator,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from wsserver.engine.model import (
    Finished,
    ModelEvent,
    ModelRequest,
    UpstreamError,
)
from wsserver.engine.secrets import without_userinfo
from wsserver.providers.chat.decoder import ChatDecoder
from wsserver.providers.chat.request import request_body
from wsserver.providers.chat.usage_asked import UsageAsked
from wsserver.providers.faults.failures import StatusError, keys, without_key
from wsserver.providers.http.unpacking import UnreadableError

if TYPE_CHECKING:
    import openai

    from wsserver.providers.http.transport import UpstreamBody

# How long the rest of an answer is waited for that ended already: the end mark of
# the body, without which the connection can't be used again.
_DRAIN_SECONDS: Final = 0.1
# How long, after the upstream reported an error, for what else it has to say.
_ERROR_SECONDS: Final = 1.0

# With what servers answer members that they don't know: OpenAI's and vLLM's with the
# first, Mistral's and whatever is made of FastAPI with the second.
_UNKNOWN_MEMBER: Final = frozenset({400, 422})

# llama.cpp goes on generating after a disconnect when it sees this one.
_NEVER_SENT: Final = frozenset({"x-conversation-id"})


class OpenAIChatSettings(Struct, frozen=True, kw_only=True):
    """Where an upstream is and how it is called.

    Attributes:
        base_url: What stands before `/chat/completions`, usually ending in `/v1`.
        api_key: Sent as a bearer token; None sends none.
        connect_timeout_seconds: For the TCP and the TLS handshake together.
        pool_size: How many model calls run at a time; more wait for their turn.
        headers: Sent with each request.
        params: Request members that each request has unless it brings its own.
        trust_environment: Whether the usual environment variables name proxies and
            certificates.
    """

    base_url: str
    api_key: str | None = None
    connect_timeout_seconds: float = 10.0
    pool_size: int = 1000
    headers: Mapping[str, str] = {}
    params: Mapping[str, Any] = {}
    trust_environment: bool = False

    def __repr__(self) -> str:
        # The key must not get into a log.
        return f"OpenAIChatSettings(base_url={without_userinfo(self.base_url)!r})"


class OpenAIChat:
    """Answers model requests from one upstream; see `wsserver.engine.provider`.

    Attributes:
        address: Where that is, without path and user, as both may hold a key.

    Raises:
        ValueError: `base_url` is no HTTP URL, or has a query or a fragment.
    """

    def __init__(self, settings: OpenAIChatSettings) -> None:
        _check_url(settings.base_url)
        url = urlsplit(settings.base_url)
        self.address = f"{url.scheme}://{url.netloc.rpartition('@')[2]}"
        # Whole: the SDK would put it together anew for each request.
        self._url = f"{settings.base_url.rstrip('/')}/chat/completions"
        self._settings = settings
        self._key = keys(settings.api_key, settings.headers, settings.base_url)
        self._slots = anyio.Semaphore(settings.pool_size)
        self._building = anyio.Lock()
        self._client: openai.AsyncOpenAI | None = None
        self._usage = UsageAsked()

    async def warm_up(self) -> None:
        """Loads the SDK, which takes seconds, so that no turn waits for it."""
        await self._ready_client()

    async def aclose(self) -> None:
        """Closes all connections; no request may be made any more."""
        if self._client is not None:
            await self._client.close()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator["_Batches"]:
        """Makes one model call; see `wsserver.engine.provider.Provider.stream`.

        Raises:
            UpstreamError: The upstream can't be reached, or refuses the request.
        """
        async with self._slots:
            body = await self._send(request)
            try:
                batches = _Batches(body, self._key)
                yield batches
                await batches.drain()
            finally:
                body.close()

    async def _send(self, request: ModelRequest) -> "UpstreamBody":
        asks_usage = self._usage.asks(request.model, anyio.current_time())
        try:
            return await self._post(request, asks_usage=asks_usage)
        except StatusError as error:
            if not (asks_usage and _minds_usage(error)):
                raise
        body = await self._post(request, asks_usage=False)
        self._usage.minded(request.model, anyio.current_time())
        return body

    async def _post(self, request: ModelRequest, *, asks_usage: bool) -> "UpstreamBody":
        client = await self._ready_client()
        import httpx2
        import openai

        from wsserver.providers.http.transport import body_of

        body = request_body(request, self._settings.params, asks_usage=asks_usage)
        try:
            # Left open: `stream` closes the body. Nothing is awaited in between
            # that a cancellation could hit.
            response = await client.post(
                self._url,
                cast_to=httpx2.Response,
                content=body,
                options={"headers": self._own_headers(request)},
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
        except StatusError as error:
            failure = without_key(error.failure, self._key)
            raise StatusError(failure, error.status) from None
        except UpstreamError as error:
            failure = without_key(error.failure, self._key)
            raise UpstreamError(failure) from error.__cause__
        assert isinstance(response, httpx2.Response), "it was asked for as it is"
        return body_of(response)

    def _own_headers(self, request: ModelRequest) -> "dict[str, str | openai.Omit]":
        import openai

        headers: dict[str, str | openai.Omit] = {"X-Request-Id": request.request_id}
        given = {name.lower() for name in self._settings.headers}
        if self._settings.api_key is None and "authorization" not in given:
            headers["Authorization"] = openai.Omit()
        return headers

    async def _ready_client(self) -> "openai.AsyncOpenAI":
        if self._client is None:
            async with self._building:
                if self._client is None:
                    self._client = await anyio.to_thread.run_sync(
                        _build_client, self._settings, abandon_on_cancel=True
                    )
        return self._client


class _Batches:
    """The events of one answer, one batch for each read."""

    __slots__ = (
        "_body", "_deadline", "_decoder", "_sink",
    )  # fmt: skip

    def __init__(self, body: "UpstreamBody", key: str | None) -> None:
        self._body = body
        self._decoder = ChatDecoder(content_type=body.content_type, key=key)
        self._sink: Callable[[Sequence[ModelEvent]], None] | None = None
        # When what follows an error is not waited for any more.
        self._deadline = math.inf

    async def pump(self, sink: Callable[[Sequence[ModelEvent]], None]) -> None:
        """Gives each batch to `sink` where it arrives; returns after the last."""
        decoder, self._sink = self._decoder, sink
        try:
            await self._body.pump(self._take)
        except OSError as fault:
            if not decoder.finished:
                sink(self._broken_off(fault))
            return
        if decoder.failed:
            async for batch in self:  # More may be said of the error, for a while.
                sink(batch)
        elif not decoder.finished:
            sink(decoder.close())

    def _broken_off(self, fault: OSError) -> list[ModelEvent]:
        """Ends an answer that can't be read to its end."""
        *events, end = self._decoder.close(aborted=True)
        assert isinstance(end, Finished), "it is the last event of every answer"
        if isinstance(fault, UnreadableError) and end.reason == "incomplete":
            end = replace(end, reason="error", failure=fault.failure)
        return [*events, end]

    def _take(self, data: bytes) -> None:
        assert self._sink is not None, "it pumps"
        decoder = self._decoder
        batch = decoder.feed(data)
        if decoder.finished or decoder.failed:
            self._body.stop_pump()
        self._sink(batch)

    def __aiter__(self) -> "_Batches":
        return self

    async def __anext__(self) -> Sequence[ModelEvent]:
        decoder = self._decoder
        if decoder.finished:
            raise StopAsyncIteration
        try:
            data = await (self._body.read() if not decoder.failed else self._rest())
        except OSError as fault:
            return self._broken_off(fault)
        return decoder.feed(data) if data else decoder.close()

    async def drain(self) -> None:
        """Reads on to the end of the body, so that the connection can be kept."""
        if self._decoder.finished:
            with anyio.move_on_after(_DRAIN_SECONDS):
                await self._to_end()

    async def _rest(self) -> bytes:
        """Reads on after an error; b"" also when nothing came in time."""
        if self._deadline == math.inf:
            self._deadline = anyio.current_time() + _ERROR_SECONDS
        with anyio.CancelScope(deadline=self._deadline):
            return await self._body.read()
        return b""

    async def _to_end(self) -> None:
        try:
            while await self._body.read():
                pass
        except OSError:
            pass  # Then it is not kept.


def _check_url(base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname)
        is_url = is_url and not (parts.query or parts.fragment)  # a path is added
        _ = parts.port  # Raises when it is no number.
    except ValueError:
        is_url = False
    if not is_url:
        raise ValueError(f"base_url is no HTTP URL: {without_userinfo(base_url)!r}")


def _minds_usage(error: StatusError) -> bool:
    if error.status not in _UNKNOWN_MEMBER:
        return False  # It may quote the request for whatever reason.
    message = error.failure.message
    return any(name in message for name in ("stream_options", "include_usage"))


def _build_client(settings: OpenAIChatSettings) -> "openai.AsyncOpenAI":
    import openai

    from wsserver.providers.http.transport import UpstreamTransport

    transport = UpstreamTransport(
        settings.base_url,
        connect_timeout_seconds=settings.connect_timeout_seconds,
        trust_environment=settings.trust_environment,
    )
    headers = {
        name: value
        for name, value in settings.headers.items()
        if name.lower() not in _NEVER_SENT
    }
    # Compression would hold tokens back.
    headers["Accept-Encoding"] = "identity"
    return openai.AsyncOpenAI(
        base_url=settings.base_url,
        # The SDK would look for one in the environment.
        api_key=settings.api_key or "none",
        max_retries=0,
        timeout=None,
        default_headers=headers,
        http_client=openai.DefaultAsyncHttpxClient(
            transport=transport, follow_redirects=False, trust_env=False
        ),
    )
