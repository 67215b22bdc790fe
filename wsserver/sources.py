"""Where settings come from: defaults, a TOML file, `WSSERVER_*` variables, flags.

The later source wins. Every fault is one line that names the setting, where its
value came from, and what to do.

msgspec validates here too, rather than pydantic-settings: that would make the start
of the server a sixth longer, and the two things this module is for, blaming the
right source and showing it, would still have to be written.
"""

import difflib
import ipaddress
import socket
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct, inspect

from wsserver.settings import SECRETS, TABLES, Settings

PREFIX = "WSSERVER_"
CONFIG_VARIABLE = "WSSERVER_CONFIG"
FIELDS = {field.name: field for field in msgspec.structs.fields(Settings)}

_CLIENT_VARIABLES = {"WSSERVER_URL", "WSSERVER_TOKEN"}
_FOREIGN_VARIABLES = {
    "OPENAI_API_KEY": "openai_api_key",
    "OPENAI_BASE_URL": "openai_base_url",
}
DEFAULT = "default"
"""The origin of a value that nobody gave."""


class SettingsError(Exception):
    """Settings can't be used; each argument says of one which, why and what to do."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class Loaded(Struct, frozen=True, kw_only=True):
    """Settings and how they came about.

    Attributes:
        settings: The settings.
        origins: For each setting, where its value came from.
        warnings: What looks like a mistake, but stops nothing.
    """

    settings: Settings
    origins: dict[str, str]
    warnings: tuple[str, ...] = ()


class _Found(Struct, frozen=True):
    value: Any
    origin: str


def load(
    *,
    flags: Mapping[str, str],
    environ: Mapping[str, str],
    config: Path | None = None,
) -> Loaded:
    """Returns the settings of all sources together.

    Args:
        flags: What was given on the command line, by the settings' names.
        environ: The environment.
        config: The TOML file; None for what `WSSERVER_CONFIG` says, if anything.

    Raises:
        SettingsError: Values can't be used, or names are unknown: all of them.
    """
    faults: list[SettingsError] = []
    if config is None and environ.get(CONFIG_VARIABLE):
        config = Path(environ[CONFIG_VARIABLE])
    found = dict[str, _Found]()
    if config is not None:
        found |= _from_file(config, faults)
    found |= _from_environment(environ)
    found |= {
        name: _Found(value, f"--{name.replace('_', '-')}")
        for name, value in flags.items()
    }
    values: dict[str, Any] = {}
    for name, each in found.items():
        try:
            values[name] = _convert(name, each)
        except SettingsError as error:
            faults.append(error)
    if faults:
        raise SettingsError(*map(str, faults))
    settings = Settings(**values)
    origins = {
        name: found[name].origin if name in found else DEFAULT for name in FIELDS
    }
    _check_together(settings, origins)
    return Loaded(
        settings=settings,
        origins=origins,
        warnings=tuple(_unknown_variables(environ)),
    )


def _from_file(path: Path, faults: list[SettingsError]) -> dict[str, _Found]:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"config: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"config: {path}: the file is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"config: {path}: not valid TOML: {error}") from None
    found: dict[str, _Found] = {}
    for name, value in table.items():
        if name not in FIELDS:
            fault = f"{name}: unknown setting in {path}; {_suggestion(name, FIELDS)}"
            faults.append(SettingsError(fault))
        elif name in SECRETS:
            fault = f"{name}: {path} may hold no secret; set {name.upper()} instead"
            faults.append(SettingsError(fault))
        else:
            found[name] = _Found(value, f"{path}: {name}")
    return found


def _from_environment(environ: Mapping[str, str]) -> dict[str, _Found]:
    found = {
        name: _Found(environ[variable], variable)
        for variable, name in _FOREIGN_VARIABLES.items()
        if environ.get(variable)
    }
    for name in FIELDS:
        variable = PREFIX + name.upper()
        if variable not in environ or name in SECRETS:
            continue
        if name in TABLES:
            raise SettingsError(f"{name}: {variable} can't hold it; use a file")
        found[name] = _Found(environ[variable], variable)
    return found


def _unknown_variables(environ: Mapping[str, str]) -> Iterable[str]:
    known = {PREFIX + name.upper() for name in FIELDS} | {CONFIG_VARIABLE}
    known |= _CLIENT_VARIABLES
    for variable in sorted(environ):
        if variable.startswith(PREFIX) and variable not in known:
            yield f"{variable}: no such setting; {_suggestion(variable, known)}"


def _suggestion(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}?" if near else "`wsserver config show` lists all"


def _convert(name: str, found: _Found) -> Any:
    kind = FIELDS[name].type
    value = found.value
    if value == "none":
        value = None
    elif isinstance(FIELDS[name].default, tuple) and isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        if name in TABLES and isinstance(value, dict):
            tables = cast("dict[str, object]", value)
            raise SettingsError(_table_fault(name, tables, found.origin)) from None
        expected = _expectation(inspect.type_info(kind))
        raise SettingsError(
            f"{name}: {found.value!r} from {found.origin} can't be used;"
            f" expected {expected}"
        ) from None


def _table_fault(name: str, tables: Mapping[str, object], origin: str) -> str:
    """Says which entry of a table can't be used, and where in it."""
    kind = FIELDS[name].type
    for key, entry in tables.items():
        try:
            msgspec.convert({key: entry}, kind, strict=False)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at `$[...]")
            what = what.removeprefix("Object ")
            path = origin.removesuffix(f": {name}")
            return (
                f"{name}.{key}{where.rstrip('`')}: {what} in {path}; [{name}.NAME] may"
                f" have {', '.join(_members(inspect.type_info(kind)))}"
            )
    raise AssertionError("an entry is wrong where the table is")


def _members(kind: inspect.Type) -> list[str]:
    match kind:
        case inspect.Metadata(type=inner):
            return _members(inner)
        case inspect.DictType(value_type=inspect.StructType(fields=fields)):
            return [field.encode_name for field in fields]
        case _:
            raise AssertionError("a table holds entries of one kind")


def _expectation(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata(extra_json_schema={"title": str(title)}):
            text = title
        case inspect.Metadata(type=inner):
            text = _expectation(inner)
        case inspect.IntType() | inspect.FloatType():
            text = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
            text += "" if kind.ge is None else f" from {kind.ge:g}"
            text += "" if kind.gt is None else f" above {kind.gt:g}"
            text += "" if kind.le is None else f" to {kind.le:g}"
        case inspect.LiteralType(values=values):
            text = " or ".join(map(str, values))
        case inspect.UnionType(types=types):
            options = [t for t in types if not isinstance(t, inspect.NoneType)]
            text = " or ".join([_expectation(option) for option in options] + ["none"])
        case inspect.BoolType():
            text = "true or false"
        case inspect.StrType(pattern=str(pattern)):
            text = f"text like {pattern}"
        case inspect.DictType():
            text = "a table of tables"
        case inspect.VarTupleType(item_type=item):
            text = f"a list, each {_expectation(item)}"
        case _:
            text = "text"
    return text


def _check_together(settings: Settings, origins: Mapping[str, str]) -> None:
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
            " (auth_jwt_key_file, ...) are credentials too"
        )


def _check_jwt(settings: Settings, origins: Mapping[str, str]) -> None:
    jwt = {
        "auth_jwt_algorithms": settings.auth_jwt_algorithms,
        "auth_jwt_audience": settings.auth_jwt_audience,
        "auth_jwt_key_file": settings.auth_jwt_key_file,
        "auth_jwt_jwks_url": settings.auth_jwt_jwks_url,
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


def show(loaded: Loaded) -> str:
    """Returns all settings as a TOML file, with where each comes from.

    The file can be used as one; `"none"` stands for None. Secrets are left out.
    """
    width = 46
    lines: list[str] = []
    tables: list[str] = []
    for name, origin in loaded.origins.items():
        value: object = getattr(loaded.settings, name)
        if name in SECRETS:
            state = "not set" if value is None else "set"
            lines.append(f"{f'# {name} is {state}':{width}} # {origin}")
        elif isinstance(value, dict):
            for key, entry in cast("dict[str, Struct]", value).items():
                tables.append(f"\n[{name}.{_toml(key)}] # {origin}")
                members = msgspec.to_builtins(entry)
                tables += [f"{k} = {_toml(v)}" for k, v in members.items() if v]
        else:
            lines.append(f"{f'{name} = {_toml(value)}':{width}} # {origin}")
    return "\n".join(lines + tables) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        pairs = cast("dict[str, str]", value).items()
        return f"{{ {', '.join(f'{_toml(k)} = {_toml(v)}' for k, v in pairs)} }}"
    # Numbers, strings and lists of strings look alike in JSON and TOML.
    return msgspec.json.encode("none" if value is None else value).decode()
