"""Settings written down: as a TOML file, and as a file of variables.

Both can be given back to a server, and neither holds a secret.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec import Struct, structs

from wsserver.engine.secrets import is_telling, url_secrets, without_userinfo
from wsserver.settings import SECRETS, TABLES
from wsserver.settings.sources import CONFIG_VARIABLE, DEFAULT, FIELDS, PREFIX, Loaded

_FOREIGN = {"openai_base_url": "OPENAI_BASE_URL"}


def as_toml(loaded: Loaded) -> str:
    """Returns all settings as a TOML file, with where each comes from.

    The file can be used as one; `"none"` stands for None. Secrets are left out, and
    a URL with a password is a comment.
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
            tables += _table(name, cast("dict[str, object]", value), origin)
        else:
            lines.append(f"{_line(name, value):{width}} # {origin}")
    return "\n".join(lines + tables) + "\n"


def _table(name: str, entries: dict[str, object], origin: str) -> Iterator[str]:
    numbers: list[str] = []
    for key, entry in entries.items():
        if isinstance(entry, Struct):
            yield f"\n[{name}.{_value(key)}] # {origin}"
            yield from _members(entry)
        else:
            numbers.append(f"{_value(key)} = {_value(entry)}")
    if numbers:
        yield f"\n[{name}] # {origin}"
        yield from numbers


def _members(entry: Struct) -> Iterator[str]:
    defaults = {field.name: field.default for field in structs.fields(entry)}
    members: dict[str, Any] = msgspec.to_builtins(entry)
    for name, value in members.items():
        if isinstance(value, dict):
            variables = cast("dict[str, object]", value)
            secret = {key for key, said in variables.items() if _is_secret(key, said)}
            if name == "headers_env":
                secret.clear()  # These values are names of variables.
            yield from (f"# {name}.{key} is set" for key in sorted(secret))
            value = {k: v for k, v in variables.items() if k not in secret}
        # What is empty says something where the default is the server's.
        if value or (value is not None and defaults[name] is None):
            yield _line(name, value)


def _is_secret(name: str, value: object) -> bool:
    # `max_tokens` is no credential, as no number is.
    return isinstance(value, str) and (is_telling(name) or any(url_secrets(value)))


def _line(name: str, value: object) -> str:
    """Returns a line of a table; it is a comment where a URL has a password."""
    if isinstance(value, str) and any(url_secrets(value)):
        return f"# {name} = {_value(without_userinfo(value))}"
    return f"{name} = {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, dict):
        pairs = cast("dict[str, str]", value).items()
        return f"{{ {', '.join(f'{_value(k)} = {_value(v)}' for k, v in pairs)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, cast('list[object]', value)))}]"
    # Numbers and strings look alike in JSON and TOML.
    return msgspec.json.encode("none" if value is None else value).decode()


def as_variables(loaded: Loaded) -> str:
    """Returns the settings as a file of variables.

    systemd (`EnvironmentFile=`) and container tools (`--env-file`) read it.
    What holds by default is commented out, and so is a URL with a password, which
    is not shown; secrets are left out.
    """
    lines: list[str] = []
    for name, field in FIELDS.items():
        value: object = getattr(loaded.settings, name)
        if name in TABLES:
            if value:
                lines += [f"# {name}: only in a file; {CONFIG_VARIABLE} names it"]
            continue
        variable = _FOREIGN.get(name, PREFIX + name.upper())
        lines += [f"# {_description(field.type)}"]
        if name in SECRETS:
            lines += [f"# {name.upper()} is {'not set' if value is None else 'set'}"]
            continue
        written, aside = _written(value), loaded.origins[name] == DEFAULT
        if any(url_secrets(written)):
            written, aside = without_userinfo(written), True
        lines += [f"{'#' if aside else ''}{variable}={written}"]
    return "\n".join(lines) + "\n"


def _description(kind: Any) -> str:
    return next(meta.description for meta in kind.__metadata__ if meta.description)


def _written(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return ",".join(map(str, cast("tuple[object, ...]", value)))
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)
