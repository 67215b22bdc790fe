"""From the settings to the tools that the server runs.

Sources in order, of which the first counts where two have a tool of one name:
`[tools.NAME]`, then the entry points of installed packages, then `[mcp.NAME]`.
"""

import re
from collections.abc import Mapping
from importlib.util import find_spec

import anyio.to_thread
from msgspec import UNSET, Struct, UnsetType

from protocol.tool_signature import UnusableToolError
from wsserver.settings import McpEntry, Settings, SettingsError
from wsserver.tools.loading import installed, load
from wsserver.tools.mcp.server import McpServer
from wsserver.tools.mcp.settings import McpSettings
from wsserver.tools.python_tools import PythonTool, PythonTools
from wsserver.tools.registry import Registry


class LoadedTools(Struct, frozen=True, kw_only=True):
    """What the settings ask for.

    Attributes:
        registry: All tools.
        servers: MCP servers, not connected yet: each has to be supervised.
    """

    registry: Registry
    servers: tuple[McpServer, ...]


async def load_tools(settings: Settings, environ: Mapping[str, str]) -> LoadedTools:
    """Loads callables, and makes what connects to MCP servers.

    Raises:
        SettingsError: One can't be had as the settings say.
    """
    # In a thread: modules of others are imported.
    callables = await anyio.to_thread.run_sync(_callables, settings)
    servers = tuple(
        McpServer(_mcp(name, entry, environ)) for name, entry in settings.mcp.items()
    )
    if servers and find_spec("mcp") is None:
        raise SettingsError(
            "mcp: the package that speaks to MCP servers is not installed:"
            " `requirements/install serve` in a checkout, or pip install '.[mcp]' there"
        )
    registry = Registry([callables, *servers], settings.default_tools)
    known_later = any(not server.settings.prefix for server in servers)
    for name in settings.default_tools:
        if not ("*" in name or known_later or registry.find(name)):
            raise SettingsError(
                f"default_tools: there is no tool {name!r}; add [tools.{name}] to the"
                " file, or take the name out"
            )
    return LoadedTools(registry=registry, servers=servers)


def _callables(settings: Settings) -> PythonTools:
    tools = {tool.tool.name: tool for tool in installed()}
    configured: dict[str, PythonTool] = {}
    for name, entry in settings.tools.items():
        try:
            configured[name] = PythonTool(
                name,
                load(entry.call),
                description=entry.description,
                timeout_seconds=_or_unset(entry.timeout_seconds),
            )
        except UnusableToolError as error:
            raise SettingsError(f"tools.{name}: {error}") from None
    return PythonTools(tools | configured)


def _mcp(name: str, entry: McpEntry, environ: Mapping[str, str]) -> McpSettings:
    if bool(entry.command) is (entry.url is not None):
        raise SettingsError(f"mcp.{name}: set one of command and url")
    if entry.prefix is None and not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name):
        raise SettingsError(f"mcp.{name}: set prefix; no tool's name can begin so")
    token = None
    if entry.token_env is not None:
        token = _variable(f"mcp.{name}: token_env", entry.token_env, environ)
    passed = {
        variable: _variable(f"mcp.{name}: pass_env", variable, environ)
        for variable in entry.pass_env
    }
    return McpSettings(
        name=name,
        command=entry.command,
        url=entry.url,
        environment=entry.env | passed,
        folder=entry.folder,
        token=token,
        prefix=f"{name}_" if entry.prefix is None else entry.prefix,
        only=entry.tools,
        timeout_seconds=_or_unset(entry.timeout_seconds),
    )


def _variable(what: str, name: str, environ: Mapping[str, str]) -> str:
    value = environ.get(name)
    if not value:
        raise SettingsError(f"{what}: {name} is not set; set it, or take it out")
    return value


def _or_unset(seconds: float | None) -> float | UnsetType:
    return UNSET if seconds is None else seconds
