"""The tools that the terminal runs: the time of day, and functions of a file."""

import importlib.util
import inspect
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo, available_timezones

from msgspec import Meta

from client_demo.tools import ClientTool, tool

_SAY_TYPE = {"type", "anyOf", "enum", "const", "$ref"}


class ToolFileError(Exception):
    """A file of tools can't be used; the message says why."""


def get_time(
    place: Annotated[
        str, Meta(description="A large city, an IANA time zone, or `here`")
    ],
) -> str:
    """Tells the date and the time of day, here or in another place."""
    if place.strip().casefold() in ("", "here"):
        return datetime.now(UTC).astimezone().strftime("%A %d %B %Y %H:%M:%S %Z")
    wanted = place.strip().replace(" ", "_").casefold()
    for zone in sorted(available_timezones()):
        if wanted in (zone.casefold(), zone.rpartition("/")[2].casefold()):
            return datetime.now(ZoneInfo(zone)).strftime("%A %d %B %Y %H:%M:%S %Z")
    raise LookupError(f"there is no time zone of the name {place}")


def load_tools(path: Path | None) -> list[ClientTool]:
    """Returns the terminal's own tools and those of a file.

    Args:
        path: A Python file, whose functions without `_` are tools; None for none.

    Raises:
        ToolFileError: It can't be run, or has a function that can't be a tool, or none
            that is to be one.
    """
    return [tool(get_time), *([] if path is None else _of_file(path))]


def taken(tools: Sequence[ClientTool]) -> str:
    """Says which tools there are, and of which parameters anything may come."""
    return ", ".join(one.name + _untyped(one) for one in tools)


def _untyped(made: ClientTool) -> str:
    properties = (made.declaration.parameters or {}).get("properties", {})
    names = [name for name, schema in properties.items() if not _SAY_TYPE & {*schema}]
    if not names:
        return ""
    return (
        f" (give {' and '.join(names)} a type: as it is, the model may pass anything)"
    )


def _of_file(path: Path) -> list[ClientTool]:
    spec = importlib.util.spec_from_file_location("chat_tools", path)
    if spec is None or spec.loader is None:
        raise ToolFileError(f"{path} is no Python file: its name has to end in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        made = [_made(value) for value in vars(module).values() if _is_tool(value)]
    except Exception as error:
        raise ToolFileError(f"{path}: {type(error).__name__}: {error}") from error
    if not made:
        raise ToolFileError(
            f"{path} has no function that could be a tool: define one whose name does"
            " not begin with `_`"
        )
    return made


def _is_tool(value: Any) -> bool:
    if isinstance(value, ClientTool):
        return True
    return (
        inspect.isfunction(value)
        and value.__module__ == "chat_tools"
        and not value.__name__.startswith("_")
    )


def _made(value: ClientTool | Callable[..., Any]) -> ClientTool:
    return value if isinstance(value, ClientTool) else tool(value)
