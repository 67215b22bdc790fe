"""What can be set, where values come from, and what has to hold between them.

What is wrong is a `SettingsError`. Only `wsserver.assembly` and what stands on it know
settings; the other rooms are given the few numbers they need.
"""

from wsserver.settings.error import SettingsError
from wsserver.settings.sources import Loaded, load
from wsserver.settings.tables import McpEntry, Model, ToolEntry
from wsserver.settings.values import SECRETS, TABLES, Settings

__all__ = [
    "SECRETS",
    "TABLES",
    "Loaded",
    "McpEntry",
    "Model",
    "Settings",
    "SettingsError",
    "ToolEntry",
    "load",
]
