"""From the settings to what each room is given: limits, times, credentials."""

import ssl
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from protocol.commands import MAX_DELAY_MS
from protocol.content import Limits, ServerInfo
from protocol.nesting import MAX_DEPTH
from wsserver import __version__
from wsserver.auth.either import EitherAuthority
from wsserver.auth.keys import KeyAuthority, KeysError
from wsserver.auth.open import OpenAuthority
from wsserver.auth.principal import Authority
from wsserver.connections.settings import ConnectionSettings
from wsserver.engine.deadlines import Patience
from wsserver.engine.limits import TurnLimits
from wsserver.engine.tools import ToolTimes
from wsserver.log.store import RECEIPTS_KEPT_SECONDS, Store
from wsserver.settings import Settings
from wsserver.settings_error import SettingsError
from wsserver.transports.addresses import read_networks
from wsserver.transports.listener import Endpoint
from wsserver.transports.metrics_access import MetricsAccess
from wsserver.turns.retention import Retention
from wsserver.turns.server_tools import ServerTools
from wsserver.turns.services import ConversationLimits, Models

if TYPE_CHECKING:
    from wsserver.auth.signing_keys import SigningKeys

FRAME_OVERHEAD_BYTES = 2_048
"""Of a frame, what is not its content."""

BURST = 5
"""Of frames, so many seconds' worth may come at once."""

DAY_SECONDS = 86_400.0

log = structlog.get_logger(__name__)


def conversation_limits(settings: Settings) -> ConversationLimits:
    """Returns what conversations and turns may take."""
    return ConversationLimits(
        active_turns=settings.max_active_turns,
        queued=settings.max_queued,
        content_bytes=settings.max_frame_bytes - FRAME_OVERHEAD_BYTES,
        tool_output_bytes=settings.max_tool_output_bytes,
        detach_grace_seconds=settings.detach_grace_seconds,
        turn=TurnLimits(
            patience=Patience(
                turn_seconds=settings.turn_timeout_seconds,
                first_token_seconds=settings.upstream_first_token_timeout_seconds,
                idle_seconds=settings.upstream_idle_timeout_seconds,
            ),
            tool_times=ToolTimes(default_seconds=settings.tool_timeout_seconds),
            turn_bytes=settings.max_turn_bytes,
            rounds=settings.max_tool_rounds,
            calls=settings.max_pending_tools,
        ),
    )


def retention(settings: Settings) -> Retention:
    """Returns how much of a conversation is kept."""
    days = settings.retention_days
    return Retention(
        seconds=None if days is None else days * DAY_SECONDS,
        bytes=settings.retention_bytes,
    )


def features(settings: Settings, store: Store, tools: ServerTools) -> tuple[str, ...]:
    """Returns the optional parts of the protocol that this server has."""
    has = {
        "durable_history": store.durable,
        "gathered_text": True,
        "server_tools": bool(settings.mcp or tools.names()),
        "fallback": any(model.fallback for model in settings.models.values()),
        "expiring_credentials": settings.has_jwt,
    }
    return tuple(name for name, there in has.items() if there)


def connection_settings(
    settings: Settings, models: Models, features: tuple[str, ...]
) -> ConnectionSettings:
    """Returns what connections may take, and what `welcome` says of it."""
    # Without credentials everybody is the same principal.
    shared = settings.has_credentials
    principal_connections = settings.max_principal_connections if shared else None
    principal_conversations = settings.max_principal_conversations if shared else None
    principal_frames = settings.max_principal_frames_per_second if shared else None
    return ConnectionSettings(
        server=ServerInfo(name="wsserver", version=__version__),
        models=tuple(models.names()),
        features=features,
        limits=Limits(
            frame_bytes=settings.max_frame_bytes,
            conversations=settings.max_conversations,
            active_turns=settings.max_active_turns,
            queued=settings.max_queued,
            pending_tools=settings.max_pending_tools,
            tool_output_bytes=settings.max_tool_output_bytes,
            idempotency_s=round(RECEIPTS_KEPT_SECONDS),
            depth=MAX_DEPTH,
            turn_bytes=settings.max_turn_bytes,
            tool_rounds=settings.max_tool_rounds,
            frames_per_second=settings.max_frames_per_second,
            frames_burst=BURST * settings.max_frames_per_second,
            principal_frames_per_second=principal_frames,
            principal_connections=principal_connections,
            principal_conversations=principal_conversations,
            address_connections=settings.max_address_connections,
            max_delay_ms=MAX_DELAY_MS,
        ),
        frames_per_second=settings.max_frames_per_second,
        frames_burst=BURST * settings.max_frames_per_second,
        principal_connections=principal_connections,
        principal_conversations=principal_conversations,
        principal_frames_per_second=principal_frames,
        principal_frames_burst=BURST * (principal_frames or 0),
        hello_seconds=settings.hello_timeout_seconds,
        heartbeat_seconds=settings.heartbeat_seconds,
        dead_after_seconds=settings.dead_after_seconds,
        slow_after_seconds=settings.slow_after_seconds,
        transport_pings=True,
    )


def endpoint(settings: Settings) -> Endpoint:
    """Returns where to listen.

    Raises:
        SettingsError: The certificate can't be used, or a proxy has no such address.
    """
    try:
        proxies = read_networks(settings.trusted_proxies)
    except ValueError as error:
        raise SettingsError(
            f"trusted_proxies: {error}; use addresses, and networks such as 10.0.0.0/8"
        ) from None
    tls = None
    if settings.tls_cert_file is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            tls.load_cert_chain(settings.tls_cert_file, settings.tls_key_file)
        except OSError as error:  # ssl.SSLError is one
            raise SettingsError(
                f"tls_cert_file: {settings.tls_cert_file} and {settings.tls_key_file}"
                f" are no certificate and key in PEM: {error.strerror or error}"
            ) from None
    return Endpoint(
        host=settings.host,
        port=settings.port,
        max_frame_bytes=settings.max_frame_bytes,
        max_connections=settings.max_connections,
        max_address_connections=settings.max_address_connections,
        trusted_proxies=proxies,
        ping_seconds=settings.heartbeat_seconds,
        tls=tls,
    )


def metrics_access(settings: Settings) -> MetricsAccess:
    """Returns who may read the metrics.

    Raises:
        SettingsError: The token can't be read.
    """
    if settings.metrics_token_file is None:
        return MetricsAccess(rule=settings.metrics_access)
    path = Path(settings.metrics_token_file)
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(f"metrics_token_file: {path}: {reason}") from None
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(
            f"metrics_token_file: {path} has to hold one token of visible ASCII"
            " characters, and nothing else"
        )
    return MetricsAccess(rule=settings.metrics_access, token=token)


Warn = Callable[[str, str], None]


def _log_warning(setting: str, about: str) -> None:
    log.warning(setting, about=about)


def authority(
    settings: Settings, wall: Callable[[], float], warn: Warn = _log_warning
) -> Authority:
    """Returns who decides who may do what.

    Args:
        settings: What was set.
        wall: Returns seconds since the epoch.
        warn: Told the setting and what the operator should know; the log else.

    Raises:
        SettingsError: The keys can't be used.
    """
    file = settings.auth_keys_file
    keys = None if file is None else _keys(file, warn)
    tokens = _tokens(settings, wall, warn) if settings.has_jwt else None
    if keys is not None and tokens is not None:
        return EitherAuthority(keys, tokens)
    return keys or tokens or OpenAuthority()


def _keys(file: str, warn: Warn) -> Authority:
    try:
        keys = KeyAuthority.load(Path(file))
    except KeysError as error:
        raise SettingsError(f"auth_keys_file: {error}") from None
    for warning in keys.warnings:
        warn("auth_keys_file", warning)
    return keys


def _tokens(settings: Settings, wall: Callable[[], float], warn: Warn) -> Authority:
    for package in ("jwt", "cryptography"):
        if find_spec(package) is None:
            raise SettingsError(
                f"auth_jwt_algorithms: {package} is not installed; JSON Web Tokens"
                " need the extra `jwt`: pip install 'wsserver[jwt]'"
            )
    from wsserver.auth.jwt import Claims, JwtAuthority

    assert settings.auth_jwt_audience is not None, "the settings were checked"
    return JwtAuthority(
        _signing_keys(settings, warn),
        algorithms=frozenset(settings.auth_jwt_algorithms),
        audience=settings.auth_jwt_audience,
        issuer=settings.auth_jwt_issuer,
        leeway_seconds=settings.auth_jwt_leeway_seconds,
        claims=Claims(
            principal=settings.auth_jwt_principal_claim,
            space=settings.auth_jwt_space_claim,
            scope=settings.auth_jwt_scope_claim,
        ),
        wall=wall,
    )


def _signing_keys(settings: Settings, warn: Warn) -> "SigningKeys":
    from wsserver.auth.signing_keys import KeyFile, KeyFileError

    algorithms = frozenset(settings.auth_jwt_algorithms)
    if settings.auth_jwt_key_file is not None:
        try:
            keys = KeyFile.load(Path(settings.auth_jwt_key_file), algorithms)
        except KeyFileError as error:
            raise SettingsError(f"auth_jwt_key_file: {error}") from None
        for warning in keys.warnings:
            warn("auth_jwt_key_file", warning)
        return keys
    from wsserver.auth.fetch import fetch
    from wsserver.auth.key_set import KeySet

    url = settings.auth_jwt_jwks_url
    assert url is not None, "the settings were checked"
    if url.startswith("http:"):
        warn(
            "auth_jwt_jwks_url",
            "keys that come without TLS may be anybody's on the way; use https",
        )
    return KeySet(partial(fetch, url), algorithms)
