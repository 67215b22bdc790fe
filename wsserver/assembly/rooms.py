"""From the settings to what each room is given: limits, times, addresses.

What takes more than handing on has a module of its own: `credentials`, `upstreams`,
`server_tools`, `inspection`.
"""

import ssl
from functools import partial
from pathlib import Path

import orjson

from protocol.commands import MAX_DELAY_MS
from protocol.content import LONGEST_MODEL, Limits, ServerInfo
from protocol.nesting import MAX_DEPTH
from wsserver import __version__
from wsserver.assembly.open_files import spare
from wsserver.connections.settings import ConnectionSettings
from wsserver.engine.deadlines import Patience
from wsserver.engine.limits import TurnLimits
from wsserver.engine.tools import ToolTimes
from wsserver.lifecycle.reload import Reload, Renewable
from wsserver.log.store import RECEIPTS_KEPT_SECONDS, Store
from wsserver.settings import Settings, SettingsError
from wsserver.settings.checks import FRAME_OVERHEAD_BYTES
from wsserver.small_files import read_small
from wsserver.transports.addresses import read_networks
from wsserver.transports.certificate import (
    Certificate,
    CertificateError,
    read_certificate,
)
from wsserver.transports.listener import Endpoint
from wsserver.transports.metrics_access import MetricsAccess
from wsserver.turns.retention import Retention
from wsserver.turns.server_tools import ServerTools
from wsserver.turns.services import ConversationLimits, Models

BURST_SECONDS = 5
"""So many seconds' worth of frames may come at once."""

DAY_SECONDS = 86_400.0


def conversation_limits(settings: Settings) -> ConversationLimits:
    """Returns what conversations and turns may take."""
    return ConversationLimits(
        stored=_stored(settings),
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


def _stored(settings: Settings) -> int | None:
    # Without credentials everybody is the same principal.
    return (
        settings.max_principal_stored_conversations
        if settings.has_credentials
        else None
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
        "expiring_credentials": settings.has_jwt or settings.auth_call is not None,
    }
    return tuple(name for name, there in has.items() if there)


def connection_settings(
    settings: Settings, models: Models, features: tuple[str, ...]
) -> ConnectionSettings:
    """Returns what connections may take, and what `welcome` says of it.

    Raises:
        SettingsError: No frame can hold the models' names, or no client ask for one.
    """
    names = tuple(models.names())
    longest = max(names, key=len)
    if len(longest) > LONGEST_MODEL:
        raise SettingsError(
            f"models: the name {longest[:20]}… has {len(longest)} characters, and"
            f" clients can ask for {LONGEST_MODEL}; choose a shorter one"
        )
    size, most = len(orjson.dumps(names)), settings.max_frame_bytes
    if size > most - FRAME_OVERHEAD_BYTES:
        raise SettingsError(
            f"models: their names take {size} bytes, which is more than a frame of"
            f" {most} bytes has room for; configure fewer, or raise max_frame_bytes"
        )
    # Without credentials everybody is the same principal.
    shared = settings.has_credentials
    principal_frames = settings.max_principal_frames_per_second if shared else None
    return ConnectionSettings(
        server=ServerInfo(name="wsserver", version=__version__),
        models=names,
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
            frames_burst=BURST_SECONDS * settings.max_frames_per_second,
            principal_frames_per_second=principal_frames,
            principal_connections=settings.max_principal_connections
            if shared
            else None,
            principal_conversations=settings.max_principal_conversations
            if shared
            else None,
            principal_stored_conversations=_stored(settings),
            address_connections=settings.max_address_connections,
            max_delay_ms=MAX_DELAY_MS,
        ),
        principal_frames_burst=BURST_SECONDS * (principal_frames or 0),
        hello_seconds=settings.hello_timeout_seconds,
        heartbeat_seconds=settings.heartbeat_seconds,
        dead_after_seconds=settings.dead_after_seconds,
        slow_after_seconds=settings.slow_after_seconds,
        transport_pings=True,
    )


def endpoint(settings: Settings, reload: Reload) -> Endpoint:
    """Returns where to listen.

    Args:
        settings: What was set.
        reload: Is given the certificate, to read it again.

    Raises:
        SettingsError: The certificate can't be used, or a proxy has no such address.
    """
    try:
        proxies = read_networks(settings.trusted_proxies)
    except ValueError as error:
        raise SettingsError(
            f"trusted_proxies: {error}; use addresses, and networks such as 10.0.0.0/8"
        ) from None
    return Endpoint(
        host=settings.host,
        port=settings.port,
        max_frame_bytes=settings.max_frame_bytes,
        max_connections=settings.max_connections,
        spare_connections=spare(settings.max_connections),
        max_address_connections=settings.max_address_connections,
        trusted_proxies=proxies,
        ping_seconds=settings.heartbeat_seconds,
        tls=_tls(settings, reload),
    )


def _tls(settings: Settings, reload: Reload) -> ssl.SSLContext | None:
    file, key = settings.tls_cert_file, settings.tls_key_file
    if file is None or key is None:
        return None
    read = partial(_read_certificate, file, key)
    certificate = Certificate(read())
    reload.add(
        Renewable(
            setting="tls_cert_file",
            file=file,
            beside=(key,),
            read=read,
            take=certificate.take,
        )
    )
    return certificate.context


def _read_certificate(file: str, key: str) -> ssl.SSLContext:
    try:
        return read_certificate(file, key)
    except CertificateError as error:
        raise SettingsError(f"tls_cert_file: {error}") from None


def metrics_access(settings: Settings, reload: Reload) -> MetricsAccess:
    """Returns who may read the metrics.

    Args:
        settings: What was set.
        reload: Is given the file with the token, to read it again.

    Raises:
        SettingsError: The token can't be read.
    """
    if settings.metrics_token_file is None:
        return MetricsAccess(settings.metrics_access)
    file = settings.metrics_token_file
    read = partial(_read_token, Path(file))
    access = MetricsAccess(settings.metrics_access, read())
    reload.add(
        Renewable(setting="metrics_token_file", file=file, read=read, take=access.take)
    )
    return access


def _read_token(path: Path) -> str:
    try:
        token = read_small(path).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(
            f"metrics_token_file: {path}: {reason}; name a file with one token"
        ) from None
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(
            f"metrics_token_file: {path} holds something else than a token; write one"
            " of visible ASCII characters there"
        )
    return token
