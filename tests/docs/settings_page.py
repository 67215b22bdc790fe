"""Writes the reference of settings: `python -m tests.docs.settings_page`."""

import re
import typing
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec

from wsserver.settings import SECRETS, McpEntry, Model, Settings, ToolEntry

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"

_HEAD = """\
# Settings

<!-- Made by `python -m tests.docs.settings_page` from wsserver/settings/values.py; do not edit. -->

A setting has one name everywhere: as a flag of `wsserver serve` (`--drain-seconds 20`), as a key of
the TOML file that `--config` or `WSSERVER_CONFIG` names (`drain_seconds = 20`), and as a variable
(`WSSERVER_DRAIN_SECONDS=20`). Flags win over variables, variables over the file, the file over the
defaults. `wsserver config show` tells what holds and where it comes from. A value that can't be used ends
the start with one line and exit code 2.

- What is true or false is a flag without a value: `--inspect`, `--no-inspect`.
- A list is a list in the file (`allowed_origins = ["https://a.example", "https://b.example"]`) and has
  commas elsewhere (`--allowed-origins https://a.example,https://b.example`).
- Where no default stands nothing is set. `none` takes away what a file or variable sets
  (`--retention-days none`); for a list that is an empty text.
"""

_GROUPS = {
    "host": "The server",
    "auth_keys_file": "Who may connect",
    "default_model": "Models and tools",
    "upstream_pool_size": "Upstreams",
    "turn_timeout_seconds": "Times",
    "max_frame_bytes": "Limits",
    "retention_days": "The store",
    "inspect": "The inspector and recordings",
}
"""The setting that each group begins with, and its heading."""

_TABLES = {
    "Each model": ("says where the model NAME is to be had", "models", Model),
    "Each tool": ("is a Python callable that the server runs", "tools", ToolEntry),
    "Each MCP server": ("is a server whose tools may be used", "mcp", McpEntry),
}


def page() -> str:
    """Returns the page as it has to be."""
    fields = {field.name: field for field in msgspec.structs.fields(Settings)}
    assert _GROUPS.keys() <= fields.keys(), "a group begins with a setting"
    lines: list[str] = []
    for name, field in fields.items():
        if name in _GROUPS:
            lines.append(f"\n## {_GROUPS[name]}\n\n")
            lines.append("| setting | default | |\n|---|---|---|\n")
        lines.append(_row(field))
    return _HEAD + "".join(lines) + "".join(map(_table, _TABLES))


def _row(field: Any) -> str:
    notes = [
        next(meta.description for meta in field.type.__metadata__ if meta.description)
    ]
    choices = _choices(field.type)
    if choices:
        notes.append("One of " + ", ".join(f"`{choice}`" for choice in choices) + ".")
    if field.name in SECRETS:
        notes.append("Never shown.")
    return f"| `{field.name}` | {_default(field.default)} | {' '.join(notes)} |\n"


def _choices(kind: Any) -> tuple[str, ...]:
    while typing.get_origin(kind) is Annotated:
        kind = typing.get_args(kind)[0]
    return typing.get_args(kind) if typing.get_origin(kind) is Literal else ()


def _default(value: Any) -> str:
    if value in (None, (), {}) or value is msgspec.NODEFAULT:
        return ""
    if isinstance(value, tuple):
        return f"`{','.join(cast('tuple[str, ...]', value))}`"
    if isinstance(value, bool):
        return f"`{value}`".lower()  # as it is written in the file
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _table(title: str) -> str:
    meaning, name, entry = _TABLES[title]
    listed = (entry.__doc__ or "").partition("Attributes:\n")[2].rstrip()
    pairs = re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", listed, re.MULTILINE)
    rows = [f"| `{key}` | {' '.join(text.split())} |\n" for key, text in pairs]
    head = f"\n## {title}\n\nEach `[{name}.NAME]` in the file {meaning}:\n\n"
    return head + "| key | |\n|---|---|\n" + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page())
