"""From the settings to what each room is given: limits, times, credentials."""

import ssl
from pathlib import Path

import structlog

from protocol.content import Limits, ServerInfo
from wsserver import __version__
from wsserver.auth.keys import KeyAuthority, KeysError
from wsserver.auth.open import OpenAuthority
from wsserver.connections.settings import ConnectionSettings
from wsserver.engine.deadlines import Patience
from wsserver.engine.tools import ToolTimes
from wsserver.engine.turn import TurnLimits
from wsserver.settings import Settings
from wsserver.sources import SettingsError
from wsserver.transports.listener import Endpoint
from wsserver.turns.directory import Retention
from wsserver.turns.services import ConversationLimits, Models

FRAME_OVERHEAD_BYTES = 2_048
"""Of a frame, what is not its content."""

IDEMPOTENCY_SECONDS = 86_400
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
                turn=settings.turn_timeout_seconds,
                first_token=settings.upstream_first_token_timeout_seconds,
                idle=settings.upstream_idle_timeout_seconds,
            ),
            tool_times=ToolTimes(default=settings.tool_timeout_seconds),
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


def connection_settings(settings: Settings, models: Models) -> ConnectionSettings:
    """Returns what connections may take, and what `welcome` says of it."""
    return ConnectionSettings(
        server=ServerInfo(name="wsserver", version=__version__),
        models=tuple(models.names()),
        limits=Limits(
            frame_bytes=settings.max_frame_bytes,
            conversations=settings.max_conversations,
            active_turns=settings.max_active_turns,
            queued=settings.max_queued,
            pending_tools=settings.max_pending_tools,
            tool_output_bytes=settings.max_tool_output_bytes,
            idempotency_s=IDEMPOTENCY_SECONDS,
        ),
        hello_seconds=settings.hello_timeout_seconds,
        heartbeat_seconds=settings.heartbeat_seconds,
        dead_after_seconds=settings.dead_after_seconds,
        slow_after_seconds=settings.slow_after_seconds,
        transport_pings=True,
    )


def endpoint(settings: Settings) -> Endpoint:
    """Returns where to listen.

    Raises:
        SettingsError: The certificate can't be used.
    """
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
        ping_seconds=settings.heartbeat_seconds,
        tls=tls,
    )


def authority(settings: Settings) -> KeyAuthority | OpenAuthority:
    """Returns who decides who may do what.

    Raises:
        SettingsError: The keys can't be used.
    """
    if settings.auth_keys_file is None:
        return OpenAuthority()
    try:
        keys = KeyAuthority.load(Path(settings.auth_keys_file))
    except KeysError as error:
        raise SettingsError(f"auth_keys_file: {error}") from None
    for warning in keys.warnings:
        log.warning("auth_keys_file", about=warning)
    return keys
