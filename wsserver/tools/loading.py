"""Finds callables: by `package.module:function`, and by entry point.

Both run code of others; call them outside of the event loop.
"""

import importlib
from collections.abc import Callable, Iterator
from functools import reduce
from importlib.metadata import entry_points
from typing import Any

import structlog

from protocol.tool_signature import UnusableToolError
from wsserver.tools.python_tools import PythonTool

ENTRY_POINTS = "wsserver.tools"
"""The group in which packages name their tools."""

log = structlog.get_logger(__name__)


def load(path: str) -> Callable[..., Any]:
    """Imports what `package.module:function` names.

    Raises:
        UnusableToolError: There is no such callable.
    """
    module, _, name = path.partition(":")
    if not module or not name:
        raise UnusableToolError(f"{path!r} is not like package.module:function")
    try:
        found = reduce(getattr, name.split("."), importlib.import_module(module))
    except ModuleNotFoundError as error:
        raise UnusableToolError(
            f"{path}: {error}; install it, or name its folder in PYTHONPATH"
        ) from error
    except (Exception, SystemExit) as error:
        raise UnusableToolError(f"{path}: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise UnusableToolError(f"{path} can't be called")
    return found


def installed() -> Iterator[PythonTool]:
    """Yields the tools that installed packages name.

    One that is of no use is left out, with a warning.
    """
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            yield PythonTool(entry.name, load(f"{entry.module}:{entry.attr}"))
        except UnusableToolError as error:
            log.warning("tool_left_out", tool=entry.name, why=str(error))
