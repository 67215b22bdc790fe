"""Settings written down: as a TOML file, and as a file of variables.

Both can be given back to a server, and neither holds a secret.
"""

from typing import Any, cast

import msgspec
from msgspec import Struct

from wsserver.settings import SECRETS, TABLES
from wsserver.sources import CONFIG_VARIABLE, DEFAULT, FIELDS, PREFIX, Loaded

_FOREIGN = {"openai_base_url": "OPENAI_BASE_URL"}


def as_toml(loaded: Loaded) -> str:
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
                tables.append(f"\n[{name}.{_value(key)}] # {origin}")
                members = msgspec.to_builtins(entry)
                tables += [f"{k} = {_value(v)}" for k, v in members.items() if v]
        else:
            lines.append(f"{f'{name} = {_value(value)}':{width}} # {origin}")
    return "\n".join(lines + tables) + "\n"


def _value(value: object) -> str:
    if isinstance(value, dict):
        pairs = cast("dict[str, str]", value).items()
        return f"{{ {', '.join(f'{_value(k)} = {_value(v)}' for k, v in pairs)} }}"
    # Numbers, strings and lists of strings look alike in JSON and TOML.
    return msgspec.json.encode("none" if value is None else value).decode()


def as_variables(loaded: Loaded) -> str:
    """Returns the settings as a file of variables.

    systemd (`EnvironmentFile=`) and container tools (`--env-file`) read it.
    What holds by default is commented out; secrets are left out.
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
        by_default = loaded.origins[name] == DEFAULT
        lines += [f"{'#' if by_default else ''}{variable}={_written(value)}"]
    return "\n".join(lines) + "\n"


def _description(kind: Any) -> str:
    return next(meta.description for meta in kind.__metadata__ if meta.description)


def _written(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return ",".join(map(str, cast("tuple[object, ...]", value)))
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)
