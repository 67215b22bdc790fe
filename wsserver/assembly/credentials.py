"""From the settings to who decides who may do what.

What a credential has to be is the business of `wsserver.auth`.
"""

from collections.abc import Callable
from functools import partial, reduce
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from protocol.tool_signature import UnusableToolError, is_async
from wsserver.auth.called import CalledAuthority
from wsserver.auth.either import EitherAuthority
from wsserver.auth.keys import KeyAuthority, KeysError
from wsserver.auth.open import OpenAuthority
from wsserver.auth.principal import Authority
from wsserver.lifecycle.reload import Reload, Renewable
from wsserver.settings import Settings, SettingsError
from wsserver.tools.loading import load

if TYPE_CHECKING:
    from wsserver.auth.signing_keys import KeyFile, SigningKeys

log = structlog.get_logger(__name__)

Warn = Callable[[str, str], None]


def _log_warning(setting: str, about: str) -> None:
    log.warning(setting, about=about)


def authority(
    settings: Settings,
    wall: Callable[[], float],
    reload: Reload,
    warn: Warn = _log_warning,
) -> Authority:
    """Returns who decides who may do what.

    Args:
        settings: What was set.
        wall: Returns seconds since the epoch.
        reload: Is given the files with keys, to read them again.
        warn: Told the setting and what the operator should know; the log else.

    Raises:
        SettingsError: The keys can't be used.
    """
    file = settings.auth_keys_file
    keys = None if file is None else _keys(file, reload, warn)
    tokens = _tokens(settings, wall, reload, warn) if settings.has_jwt else None
    own = None if settings.auth_call is None else called(settings.auth_call)
    found = [one for one in (keys, tokens, own) if one is not None]
    return reduce(EitherAuthority, found) if found else OpenAuthority()


def called(path: str) -> CalledAuthority:
    """Returns the authority of a function, `package.module:function`.

    Raises:
        SettingsError: There is no such function, or it is not async.
    """
    try:
        function = load(path)
        waits = is_async(function)
    except UnusableToolError as error:
        raise SettingsError(f"auth_call: {error}") from None
    if not waits:
        raise SettingsError(f"auth_call: {path} is not async; define it by async def")
    return CalledAuthority(function)


def _keys(file: str, reload: Reload, warn: Warn) -> Authority:
    read = partial(_read_keys, file, warn)
    keys = read()
    reload.add(
        Renewable(setting="auth_keys_file", file=file, read=read, take=keys.take)
    )
    return keys


def _read_keys(file: str, warn: Warn) -> KeyAuthority:
    try:
        keys = KeyAuthority.load(Path(file))
    except KeysError as error:
        raise SettingsError(f"auth_keys_file: {error}") from None
    for warning in keys.warnings:
        warn("auth_keys_file", warning)
    return keys


def _tokens(
    settings: Settings, wall: Callable[[], float], reload: Reload, warn: Warn
) -> Authority:
    for package in ("jwt", "cryptography"):
        if find_spec(package) is None:
            raise SettingsError(
                f"auth_jwt_algorithms: {package} is not installed; JSON Web Tokens"
                " need the extra `jwt`: `requirements/install serve` in a checkout, or"
                " pip install '.[jwt]' there"
            )
    from wsserver.auth.jwt import Claims, JwtAuthority

    assert settings.auth_jwt_audience is not None, "the settings were checked"
    return JwtAuthority(
        _signing_keys(settings, reload, warn),
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


def _signing_keys(settings: Settings, reload: Reload, warn: Warn) -> "SigningKeys":
    algorithms = frozenset(settings.auth_jwt_algorithms)
    file = settings.auth_jwt_key_file
    if file is not None:
        read = partial(_read_signing_key, file, algorithms, warn)
        key = read()
        reload.add(
            Renewable(setting="auth_jwt_key_file", file=file, read=read, take=key.take)
        )
        return key
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


def _read_signing_key(file: str, algorithms: frozenset[str], warn: Warn) -> "KeyFile":
    from wsserver.auth.signing_keys import KeyFile, KeyFileError

    try:
        key = KeyFile.load(Path(file), algorithms)
    except KeyFileError as error:
        raise SettingsError(f"auth_jwt_key_file: {error}") from None
    for warning in key.warnings:
        warn("auth_jwt_key_file", warning)
    return key
