"""Whether a server would start with the settings."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import msgspec

from wsserver.assembly import rooms
from wsserver.assembly.credentials import authority, called
from wsserver.assembly.inspection import check_recording
from wsserver.assembly.server_tools import load_tools
from wsserver.assembly.store_file import store_file
from wsserver.assembly.upstreams import LOCAL_MODEL, open_upstreams
from wsserver.auth.keys import KeyAuthority, KeysError
from wsserver.lifecycle.reload import Reload
from wsserver.log.store import StoreError
from wsserver.operations.checks.findings import Finding, fail, ok, taken_apart, warn
from wsserver.operations.checks.store import check_place, unusable
from wsserver.settings import Settings, SettingsError
from wsserver.settings.checks import is_loopback
from wsserver.settings.flags import Load
from wsserver.settings.sources import DEFAULT, FIELDS, Loaded

_CORRECT = "correct it, or leave it out"


def check(load: Load) -> Iterator[Finding]:
    """Yields what there is to say of the settings and of what they name.

    Makes no store, binds no port and asks no upstream. It may be asked while a server
    runs, so what that has in use is no failure: the port, and the store. Failures of the
    settings themselves are the last findings.
    """
    try:
        loaded = load()
    except SettingsError as error:
        yield from failures("settings", error)
        return
    yield from check_loaded(loaded)
    yield from _store(loaded.settings)


def check_loaded(loaded: Loaded) -> Iterator[Finding]:
    """Yields the same for settings that could be loaded."""
    settings = loaded.settings
    given = sum(origin != DEFAULT for origin in loaded.origins.values())
    yield ok("settings", f"{given} given, {len(FIELDS) - given} by default")
    for warning in loaded.warnings:
        yield warn("settings", *taken_apart(warning, _CORRECT))
    yield from _credentials(settings)
    yield from _endpoint(settings)
    yield _metrics(settings)
    yield _models(settings)
    yield from _tools(settings)
    if settings.record is not None:
        yield _recording(settings.record)


def _recording(path: str) -> Finding:
    try:
        check_recording(path)
    except SettingsError as error:
        return failure("recording", error)
    return ok("recording", f"can be made: {path}")


def _store(settings: Settings) -> Iterator[Finding]:
    """Yields a failure if there is no store, nor could this user make one.

    How fast it could be written says `doctor`.
    """
    try:
        path = store_file(settings)
        if path is None:
            return
        finding = check_place(path)
        if finding is not None:
            yield finding
    except (SettingsError, StoreError) as error:
        yield unusable(error)


def _credentials(settings: Settings) -> Iterator[Finding]:
    if not settings.has_credentials:
        yield ok(
            "credentials", f"none, so only this machine may connect ({settings.host})"
        )
    if settings.auth_keys_file is not None:
        yield from _keys(settings.auth_keys_file)
    if settings.has_jwt:
        yield from _tokens(settings)
    if settings.auth_call is not None:
        yield from _call(settings.auth_call)


def _keys(file: str) -> Iterator[Finding]:
    try:
        keys = KeyAuthority.load(Path(file))
    except KeysError as error:
        yield failure("credentials", error)
        return
    yield ok("credentials", f"keys in {file}")
    for warning in keys.warnings:
        yield warn("credentials", *taken_apart(warning, _CORRECT))


def _tokens(settings: Settings) -> Iterator[Finding]:
    warnings: list[str] = []
    try:
        authority(
            msgspec.structs.replace(settings, auth_keys_file=None, auth_call=None),
            lambda: 0.0,
            Reload(),
            lambda _, about: warnings.append(about),
        )
    except SettingsError as error:
        yield failure("credentials", error)
        return
    yield ok("credentials", "JSON Web Tokens")
    for warning in warnings:
        yield warn("credentials", *taken_apart(warning, _CORRECT))


def _call(path: str) -> Iterator[Finding]:
    try:
        called(path)
    except SettingsError as error:
        yield failure("credentials", error)
    else:
        yield ok("credentials", f"what {path} believes")


def _endpoint(settings: Settings) -> Iterator[Finding]:
    try:
        rooms.endpoint(settings, Reload())
    except SettingsError as error:
        yield failure("endpoint", error)
        return
    scheme = "http" if settings.tls_cert_file is None else "https"
    yield ok("endpoint", f"{scheme} on {settings.host}, port {settings.port}")
    if settings.port == 0:
        yield warn("endpoint", "another port at each start", "set port")


def _metrics(settings: Settings) -> Finding:
    try:
        rule = rooms.metrics_access(settings, Reload()).rule
    except SettingsError as error:
        return failure("metrics", error)
    match rule:
        case "loopback":
            return ok("metrics", "for programs on this machine, with no proxy between")
        case "token":
            return ok("metrics", "for whoever has the token")
        case "open":
            if is_loopback(settings.host):
                return ok("metrics", "for whoever reaches this machine's own address")
            return warn(
                "metrics",
                f"anyone who reaches {settings.host} can read /metrics",
                'set metrics_access = "token", or let a firewall or proxy refuse it',
            )


def _models(settings: Settings) -> Finding:
    try:
        if settings.local_model_path or settings.default_model == LOCAL_MODEL:
            _find_weights(settings.local_model_path)
        names = anyio.run(_names, settings)
    except SettingsError as error:
        return failure("models", error)
    default = settings.default_model or names[0]
    return ok("models", f"{default} unless clients choose; offered: {len(names)}")


async def _names(settings: Settings) -> Sequence[str]:
    async with open_upstreams(without_local(settings)) as upstreams:
        return (await upstreams.table()).names()


def without_local(settings: Settings) -> Settings:
    """Returns the settings without the model on this machine, which would start."""
    default = settings.default_model
    return msgspec.structs.replace(
        settings,
        local_model_path=None,
        default_model=None if default == LOCAL_MODEL else default,
    )


def _tools(settings: Settings) -> Iterator[Finding]:
    if not (settings.tools or settings.mcp or settings.default_tools):
        return
    try:
        anyio.run(load_tools, settings, os.environ)
    except SettingsError as error:
        yield failure("tools", error)
        return
    says = f"{len(settings.tools)} by name"
    if settings.mcp:
        says += f", and those of MCP servers, which were not asked: {', '.join(settings.mcp)}"
    yield ok("tools", says)


def _find_weights(path: str | None) -> None:
    from wsserver.providers.local import LocalModelError, find_weights

    try:
        find_weights(None if path is None else Path(path))
    except LocalModelError as error:
        raise SettingsError(f"local_model_path: {error}") from None


def failures(check: str, error: SettingsError) -> Iterator[Finding]:
    """Makes the findings of settings that can't be used."""
    for fault in error.args:
        yield fail(check, *taken_apart(str(fault), _CORRECT))


def failure(check: str, error: Exception) -> Finding:
    """Makes the finding of an error about settings."""
    return fail(check, *taken_apart(str(error), _CORRECT))
