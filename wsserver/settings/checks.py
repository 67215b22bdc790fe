"""What has to hold between settings, whatever each of them says by itself.

It reads no file and asks no upstream: that is for whoever uses what they name.
"""

import ipaddress
import socket
from collections.abc import Iterator, Mapping

from wsserver.settings.error import SettingsError
from wsserver.settings.values import Settings

FRAME_OVERHEAD_BYTES = 2_048
"""What a frame has around its content, at most: ids, a principal's name, numbers."""

HEAD_BYTES = 150
"""What one open conversation takes in a heartbeat, at most."""


def check_together(settings: Settings, origins: Mapping[str, str]) -> None:
    """Refuses settings that contradict each other, or would let anyone in.

    Args:
        settings: Each is of its type and within its bounds.
        origins: For each setting, where its value came from.

    Raises:
        SettingsError: Of two that do not go together: which, why and what to do.
    """
    if (settings.tls_cert_file is None) != (settings.tls_key_file is None):
        given = "tls_key_file" if settings.tls_cert_file is None else "tls_cert_file"
        raise SettingsError(
            f"{given}: {origins[given]} gives one half of the pair; set both"
            " tls_cert_file and tls_key_file"
        )
    if settings.dead_after_seconds <= settings.heartbeat_seconds:
        raise SettingsError(
            f"dead_after_seconds: {settings.dead_after_seconds:g} from"
            f" {origins['dead_after_seconds']} leaves no time for a heartbeat;"
            f" set more than heartbeat_seconds ({settings.heartbeat_seconds:g})"
        )
    _check_frames(settings, origins)
    _check_jwt(settings, origins)
    _check_inspect(settings, origins)
    if (settings.metrics_access == "token") is (settings.metrics_token_file is None):
        raise SettingsError(
            f"metrics_access: {settings.metrics_access} from"
            f" {origins['metrics_access']} and metrics_token_file do not go together;"
            ' set metrics_access = "token" and the file, or neither'
        )
    if not settings.has_credentials and not is_loopback(settings.host):
        raise SettingsError(
            f"host: {settings.host} from {origins['host']} can be reached from other"
            " machines, and no credentials are configured, so anyone could use the"
            " models; set auth_keys_file, or bind 127.0.0.1; JSON Web Tokens"
            " (auth_jwt_key_file, ...) and auth_call are credentials too"
        )


def warnings_together(settings: Settings) -> Iterator[str]:
    """Yields what stops nothing and looks like a mistake.

    Raises:
        SettingsError: As `is_loopback`.
    """
    bare = settings.tls_cert_file is None and not settings.trusted_proxies
    if settings.has_credentials and bare and not is_loopback(settings.host):
        yield (
            f"host: {settings.host} can be reached from other machines, and without TLS:"
            " credentials and conversations go over the network as clear text; set"
            " tls_cert_file and tls_key_file, or name the proxy that has TLS in"
            " trusted_proxies"
        )


def _check_frames(settings: Settings, origins: Mapping[str, str]) -> None:
    """Refuses what would make a frame longer than `max_frame_bytes`."""
    room = settings.max_frame_bytes - FRAME_OVERHEAD_BYTES
    for name, most, what in (
        ("max_tool_output_bytes", room, "bytes of a tool's output"),
        ("max_conversations", room // HEAD_BYTES, "conversations in a heartbeat"),
    ):
        value: int = getattr(settings, name)
        if value > most:
            raise SettingsError(
                f"{name}: {value} from {origins[name]} is too many: a frame of"
                f" {settings.max_frame_bytes} bytes has room for {most} {what}; set no"
                " more than that, or raise max_frame_bytes"
            )


def _check_jwt(settings: Settings, origins: Mapping[str, str]) -> None:
    jwt = {
        "auth_jwt_algorithms": settings.auth_jwt_algorithms,
        "auth_jwt_audience": settings.auth_jwt_audience,
        "auth_jwt_key_file": settings.auth_jwt_key_file,
        "auth_jwt_jwks_url": settings.auth_jwt_jwks_url,
        "auth_jwt_issuer": settings.auth_jwt_issuer,
        "auth_jwt_scope_claim": settings.auth_jwt_scope_claim,
    }
    given = [name for name, value in jwt.items() if value]
    if not given:
        return
    blame = f"{given[0]}: {origins[given[0]]}"
    for name in ("auth_jwt_algorithms", "auth_jwt_audience"):
        if not jwt[name]:
            raise SettingsError(f"{blame} asks for tokens; set {name} too")
    if (settings.auth_jwt_key_file is None) is (settings.auth_jwt_jwks_url is None):
        raise SettingsError(
            f"{blame} asks for tokens; set one of auth_jwt_key_file and"
            " auth_jwt_jwks_url"
        )
    secret = {name.startswith("HS") for name in settings.auth_jwt_algorithms}
    if len(secret) > 1 or (secret == {True} and settings.auth_jwt_jwks_url):
        raise SettingsError(
            f"{blame}: HS256, HS384 and HS512 need a secret, which only"
            " auth_jwt_key_file can be, and go with no other algorithm"
        )


def _check_inspect(settings: Settings, origins: Mapping[str, str]) -> None:
    if not settings.inspect:
        return
    if not is_loopback(settings.host):
        raise SettingsError(
            f"inspect: {settings.host} from {origins['host']} can be reached from"
            " other machines, and the inspector lets anyone look and cut; bind"
            " 127.0.0.1, or set record to have a recording only"
        )
    if settings.has_credentials:
        raise SettingsError(
            "inspect: the inspector asks nobody who they are, and credentials are"
            " configured; inspect a server without them, or set record to have a"
            " recording only"
        )


def is_loopback(host: str) -> bool:
    """Returns whether only this machine can connect to the address.

    Raises:
        SettingsError: The name has no address.
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        addresses = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        raise SettingsError(f"host: {host} has no address; use an IP address") from None
    return all(ipaddress.ip_address(address).is_loopback for address in addresses)
