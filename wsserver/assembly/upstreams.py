"""From the settings to the models: which name leads to which provider.

What is slow to import, or to start, is only touched when the settings ask for it.
"""

import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
from msgspec import structs

from wsserver.assembly.model_params import (
    general_bounds,
    model_bounds,
    model_params,
    program_bounds,
)
from wsserver.assembly.upstream_headers import upstream_headers
from wsserver.engine.breaker import Breaker, BreakerPolicy
from wsserver.engine.param_bounds import UNBOUNDED
from wsserver.engine.secrets import without_userinfo
from wsserver.providers.demo import DEFAULT_MODEL, DemoProvider
from wsserver.providers.fallback import Candidate, Fallback, FallbackMetrics
from wsserver.settings import Model, Settings, SettingsError
from wsserver.turns.models import DEMO_PREFIX, ModelTable
from wsserver.turns.services import Target

if TYPE_CHECKING:
    from wsserver.providers.chat.provider import OpenAIChat

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_DEFAULT_MODEL = "gpt-4o-mini"
"""What conversations get that name no model, with an upstream and no
`default_model`."""

LOCAL_MODEL = "local"
_OPENAI = "openai"  # whoever speaks its API
_ENDPOINT = "/chat/completions"

_CHAIN_MARGIN_SECONDS = 1.0
_NONE: Mapping[str, Target] = {}
_NO_HEADERS: Mapping[str, str] = {}
_LOCAL_STOP_SECONDS = 0.4  # part of what a drain may take


class Upstreams:
    """Providers that are open, and the names that lead to them.

    Attributes:
        breakers: Of the models in chains of fallbacks, by name.
    """

    def __init__(
        self, settings: Settings, environ: Mapping[str, str], stack: AsyncExitStack
    ) -> None:
        """Makes nothing yet; `stack` closes what is made."""
        self.breakers: dict[str, Breaker] = {}
        self._settings = settings
        self._bounds = UNBOUNDED
        self._environ = environ
        self._stack = stack
        self._chats: dict[
            tuple[str, str | None, frozenset[tuple[str, str]]], OpenAIChat
        ] = {}

    async def table(self, own: Mapping[str, Target] = _NONE) -> ModelTable:
        """Returns which name leads where, each to one upstream.

        Args:
            own: Names that lead to providers of the program's own. Those that say
                nothing of what clients may set have what the settings say.

        Raises:
            SettingsError: A model can't be had as the settings say.
        """
        settings, demo = self._settings, DemoProvider()
        self._bounds = general_bounds(settings)
        configured = {name: self._bounded(name, each) for name, each in own.items()}
        for name, model in settings.models.items():
            configured.setdefault(name, self._configured(name, model))
        if settings.local_model_path or settings.default_model == LOCAL_MODEL:
            configured.setdefault(LOCAL_MODEL, await self._local())
        upstream: Target | None = None
        if settings.openai_api_key or settings.openai_base_url:
            base_url = settings.openai_base_url or OPENAI_URL
            chat = self._chat("openai_base_url", base_url, settings.openai_api_key)
            upstream = self._target(chat, OPENAI_DEFAULT_MODEL)
        fallback = DEFAULT_MODEL if upstream is None else OPENAI_DEFAULT_MODEL
        default = settings.default_model or next(iter(configured), fallback)
        if default.startswith(DEMO_PREFIX) and default not in configured:
            fault = demo.fault(default)
            if fault is not None:
                raise SettingsError(f"default_model: {default!r}: {fault}")
        elif default not in configured and upstream is None:
            raise SettingsError(
                f"default_model: {default!r} leads nowhere; add [models.{default!r}] to"
                " the file, or set OPENAI_BASE_URL or OPENAI_API_KEY"
            )
        table = ModelTable(
            default=default,
            configured=configured,
            demo=Target(
                provider=demo,
                model=DEFAULT_MODEL,
                bounds=self._bounds,
                provider_name="demo",
            ),
            demo_names=list(demo.models()),
            accepts_demo=demo.accepts,
            upstream=upstream,
        )
        for name, model in settings.models.items():
            _check_fallback(name, model.fallback, table)
        return table

    def chained(
        self,
        table: ModelTable,
        *,
        metrics: FallbackMetrics,
        jitter: Callable[[], float],
    ) -> ModelTable:
        """Returns the table with chains where models have others to fall back on.

        What these are told to fall back on themselves does not count.

        Args:
            table: What `table` returned.
            metrics: Counts fallbacks.
            jitter: Returns a random number in [0, 1).
        """
        chains: dict[str, Target] = {}
        for name, model in self._settings.models.items():
            if model.fallback:
                names = (name, *model.fallback)
                chain = Fallback(
                    [self._candidate(one, table) for one in names],
                    metrics=metrics,
                    jitter=jitter,
                )
                targets = [table.resolve(one) for one in names]
                assert targets[0] is not None, "it is configured"
                windows = [one.context_tokens for one in targets if one is not None]
                chains[name] = Target(
                    provider=chain,
                    model=name,
                    provider_name=table.provider_name(name) or _OPENAI,
                    context_tokens=min(filter(None, windows), default=None),
                    bounds=targets[0].bounds,
                    passes_params=True,
                    # The chain gives up before that, and says why.
                    first_token_seconds=chain.first_token_seconds
                    + _CHAIN_MARGIN_SECONDS,
                )
        return table.replacing(chains)

    async def warm_up(self) -> None:
        """Loads what the first turn would have to wait for.

        Raises:
            SettingsError: The certificates of authorities can't be read.
        """
        for chat in self._chats.values():
            try:
                await chat.warm_up()
            except OSError as error:  # ssl.SSLError is one
                path = self._environ.get("SSL_CERT_FILE", "its default")
                raise SettingsError(
                    f"SSL_CERT_FILE: {path} can't be used: {error.strerror or error};"
                    " name a file of certificates in PEM, or unset it"
                ) from None

    def _bounded(self, name: str, target: Target) -> Target:
        bounds = program_bounds(name, target.params, target.bounds, self._bounds)
        return structs.replace(target, bounds=bounds)

    def _configured(self, name: str, model: Model) -> Target:
        key = None
        if model.api_key_env is not None:
            key = self._environ.get(model.api_key_env)
            if not key:
                raise SettingsError(
                    f"models.{name}: {model.api_key_env} is not set; set it to the API"
                    " key, or leave api_key_env out"
                )
        headers = upstream_headers(name, model, self._environ)
        chat = self._chat(f"models.{name}", model.base_url, key, headers)
        target = self._target(chat, model.model or name, model.context_tokens)
        seconds = model.first_token_timeout_seconds
        return structs.replace(
            target,
            params=model_params(name, model),
            bounds=model_bounds(name, model, self._bounds),
            first_token_seconds=seconds,
        )

    def _candidate(self, name: str, table: ModelTable) -> Candidate:
        settings, target = self._settings, table.resolve(name)
        assert target is not None, "the names of a chain were checked"
        policy = BreakerPolicy(
            failures=settings.breaker_failures,
            window_seconds=settings.breaker_window_seconds,
            open_seconds=settings.breaker_open_seconds,
        )
        return Candidate(
            name=name,
            provider=target.provider,
            model=target.model,
            address=target.address,
            params=target.params,
            bounds=target.bounds or UNBOUNDED,
            first_token_seconds=target.first_token_seconds
            or settings.upstream_first_token_timeout_seconds,
            breaker=self.breakers.setdefault(name, Breaker(policy)),
        )

    def _target(
        self, chat: "OpenAIChat", model: str, context_tokens: int | None = None
    ) -> Target:
        context_tokens = context_tokens or self._settings.context_tokens
        return Target(
            provider=chat,
            model=model,
            context_tokens=context_tokens,
            bounds=self._bounds,
            provider_name=_OPENAI,
            address=chat.address,
        )

    def _chat(
        self,
        setting: str,
        base_url: str,
        api_key: str | None,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> "OpenAIChat":
        from wsserver.providers.chat.provider import OpenAIChat, OpenAIChatSettings

        if base_url.rstrip("/").endswith(_ENDPOINT):
            raise SettingsError(
                f"{setting}: {without_userinfo(base_url)!r} is no base URL; leave"
                f" {_ENDPOINT} out, as the server adds it"
            )
        path = re.split("[?#]", base_url)[0]
        if path != base_url:  # what follows may be a secret
            raise SettingsError(
                f"{setting}: {without_userinfo(path)!r} is followed by"
                f" {base_url[len(path)]!r}; end it there, as the server adds paths to it"
            )
        same = (base_url, api_key, frozenset(headers.items()))
        chat = self._chats.get(same)
        if chat is None:
            settings = self._settings
            try:
                chat = OpenAIChat(
                    OpenAIChatSettings(
                        base_url=base_url,
                        api_key=api_key,
                        connect_timeout_seconds=settings.upstream_connect_timeout_seconds,
                        pool_size=settings.upstream_pool_size,
                        headers=headers,
                        trust_environment=True,
                    )
                )
            except ValueError:
                raise SettingsError(
                    f"{setting}: {without_userinfo(base_url)!r} is no HTTP URL; write one such as"
                    " http://localhost:8000/v1"
                ) from None
            self._chats[same] = chat
            self._stack.push_async_callback(chat.aclose)
        return chat

    async def _local(self) -> Target:
        from wsserver.providers.local import (
            LocalModelError,
            LocalServer,
            LocalSettings,
            find_weights,
        )

        path = self._settings.local_model_path
        try:
            weights = await anyio.to_thread.run_sync(
                find_weights, None if path is None else Path(path)
            )
            settings = LocalSettings(
                weights=weights, stop_timeout_seconds=_LOCAL_STOP_SECONDS
            )
            local = await self._stack.enter_async_context(LocalServer(settings))
        except LocalModelError as error:
            raise SettingsError(f"local_model_path: {error}") from None
        chat = self._chat("local_model_path", local.base_url, local.api_key)
        slot_tokens = settings.context_tokens // settings.slots
        target = self._target(chat, local.name, slot_tokens)
        return structs.replace(target, provider_name="local")


def _check_fallback(name: str, others: Sequence[str], table: ModelTable) -> None:
    named = {name}
    for other in others:
        if other in named or table.resolve(other) is None:
            why = "stands there twice" if other in named else "leads nowhere"
            remedy = "name different models that there are"
            if other.startswith(DEMO_PREFIX):
                remedy = DemoProvider().fault(other) or remedy
            raise SettingsError(
                f"models.{name}: {other!r} in `fallback` {why}; {remedy}"
            )
        named.add(other)


@asynccontextmanager
async def open_upstreams(settings: Settings) -> AsyncGenerator[Upstreams]:
    """Yields the upstreams, and closes them after."""
    async with AsyncExitStack() as stack:
        yield Upstreams(settings, os.environ, stack)
