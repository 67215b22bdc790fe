"""From the settings to the tools that the server runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from wsserver.assembly import server_tools
from wsserver.assembly.server_tools import LoadedTools, load_tools
from wsserver.operations.settings_text import as_toml
from wsserver.settings import McpEntry, Settings, SettingsError, ToolEntry, load
from wsserver.tools.python_tools import PythonTool

FILE = """\
default_tools = ["join", "docs_*"]

[tools.join]
call = "os.path:normpath"
description = "Tidies a path."
timeout_seconds = 2.5

[mcp.docs]
command = ["docs-server", "--all"]
env = { "A B" = "1", C = "x" }
pass_env = ["TOKEN"]
tools = ["search", "get*"]

[mcp."other one"]
url = "https://example.org/mcp"
token_env = "TOKEN"
prefix = "o_"
timeout_seconds = 30.0
"""


def greet(name: str) -> str:
    """Greets."""
    return f"Hello {name}"


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def install(*tools: PythonTool) -> None:
        monkeypatch.setattr(server_tools, "installed", lambda: iter(tools))

    install()
    return install


async def loaded(environ: dict[str, str] | None = None, **settings: Any) -> LoadedTools:
    return await load_tools(Settings(**settings), environ or {})


@pytest.fixture
def from_file(tmp_path: Path) -> Settings:
    path = tmp_path / "wsserver.toml"
    path.write_text(FILE)
    return load(flags={}, environ={}, config=path).settings


async def test_a_file_says_it_all(from_file: Settings) -> None:
    made = await load_tools(from_file, {"TOKEN": "s3cret"})
    join = made.registry.find("join")
    assert join is not None
    assert (join.description, join.timeout_s) == ("Tidies a path.", 2.5)
    docs, other = (server.settings for server in made.servers)
    assert docs.command == ("docs-server", "--all")
    assert docs.environment == {"A B": "1", "C": "x", "TOKEN": "s3cret"}
    assert (docs.prefix, docs.only) == ("docs_", ("search", "get*"))
    assert docs.timeout_seconds is UNSET
    assert (other.url, other.token) == ("https://example.org/mcp", "s3cret")
    assert (other.prefix, other.timeout_seconds) == ("o_", 30.0)
    assert [tool.name for tool in made.registry.default()] == ["join"]


def test_what_is_shown_can_be_used_as_the_file(tmp_path: Path) -> None:
    path = tmp_path / "wsserver.toml"
    path.write_text(FILE)
    first = load(flags={}, environ={}, config=path)
    path.write_text(as_toml(first))
    assert load(flags={}, environ={}, config=path).settings == first.settings


async def test_without_settings_there_are_no_tools() -> None:
    made = await loaded()
    assert made.servers == ()
    assert list(made.registry.default()) == []


async def test_installed_tools_come_after_configured_ones(
    nothing_installed: Callable[..., None],
) -> None:
    nothing_installed(PythonTool("a", greet), PythonTool("b", greet))
    made = await loaded(
        tools={"a": ToolEntry(call="os.path:normpath", description="Mine.")},
        default_tools=("*",),
    )
    told = {tool.name: tool.description for tool in made.registry.default()}
    assert told == {"a": "Mine.", "b": "Greets."}


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"tools": {"a": ToolEntry(call="nowhere")}}, r"tools\.a: 'nowhere' is not"),
        ({"tools": {"a b": ToolEntry(call="os.path:normpath")}}, "'a b' is no name"),
        ({"mcp": {"a": McpEntry()}}, r"mcp\.a: set one of command and url"),
        (
            {"mcp": {"a": McpEntry(command=("x",), url="http://x")}},
            r"mcp\.a: set one of command and url",
        ),
        ({"mcp": {"a b": McpEntry(command=("x",))}}, r"mcp\.a b: set prefix"),
        (
            {"mcp": {"a": McpEntry(url="http://x", token_env="NO")}},  # noqa: S106
            r"mcp\.a: token_env: NO is not set",
        ),
        (
            {"mcp": {"a": McpEntry(command=("x",), pass_env=("NO",))}},
            r"mcp\.a: pass_env: NO is not set",
        ),
        ({"default_tools": ("a",)}, "default_tools: there is no tool 'a'"),
    ],
)
async def test_what_can_not_be_had_is_said(
    settings: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(SettingsError, match=complaint) as caught:
        await loaded(**settings)
    assert "\n" not in str(caught.value)


async def test_default_tools_may_be_of_a_server_that_is_not_there_yet() -> None:
    servers = {"docs": McpEntry(command=("x",))}
    made = await loaded(mcp=servers, default_tools=("docs_search", "none*"))
    assert [tool.name for tool in made.registry.default()] == ["docs_search"]
    bare = {"docs": McpEntry(command=("x",), prefix="")}
    made = await loaded(mcp=bare, default_tools=("search",))
    assert list(made.registry.default()) == []


async def test_mcp_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_tools, "find_spec", lambda _: None)
    assert (await loaded()).servers == ()
    with pytest.raises(SettingsError, match=r"pip install '\.\[mcp\]'"):
        await loaded(mcp={"docs": McpEntry(command=("x",))})
