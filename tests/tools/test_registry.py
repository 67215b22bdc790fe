"""Tools of several sources under one name each."""

from typing import Any

import pytest

from protocol.content import Tool
from tests.tools.mcp_rig import context
from wsserver.engine.server_tools import ToolContext, ToolError
from wsserver.tools.registry import Registry


class Fixed:
    """A source of tools that say which source they are of."""

    def __init__(self, source: str, *names: str) -> None:
        self.source = source
        self.tools = {name: Tool(name=name, description=source) for name in names}

    def names(self) -> list[str]:
        return list(self.tools)

    def find(self, name: str) -> Tool | None:
        return self.tools.get(name)

    async def run(self, name: str, arguments: Any, context: ToolContext) -> Any:
        return f"{self.source}: {name} {arguments} for {context.principal}"


async def test_the_earlier_source_wins() -> None:
    registry = Registry([Fixed("one", "a", "b"), Fixed("two", "b", "c")])
    found = registry.find("b")
    assert found is not None
    assert found.description == "one"
    assert registry.find("d") is None
    assert await registry.run("b", 1, context()) == "one: b 1 for alice"
    assert await registry.run("c", 1, context()) == "two: c 1 for alice"


async def test_a_tool_that_has_gone_says_so() -> None:
    source = Fixed("one", "a")
    registry = Registry([source])
    source.tools.clear()
    with pytest.raises(ToolError, match="no tool 'a' any more"):
        await registry.run("a", {}, context())


@pytest.mark.parametrize(
    ("default", "names"),
    [
        ((), []),
        (("c", "a", "none"), ["c", "a"]),
        (("*",), ["a", "b", "docs_x", "c", "docs_y"]),
        (("docs_*", "a", "docs_x"), ["docs_x", "docs_y", "a"]),
        (("nothing*",), []),
    ],
)
def test_the_default(default: tuple[str, ...], names: list[str]) -> None:
    sources = [Fixed("one", "a", "b", "docs_x"), Fixed("two", "b", "c", "docs_y")]
    registry = Registry(sources, default)
    assert [tool.name for tool in registry.default()] == names
    assert all(t.description == "one" for t in registry.default() if t.name == "b")
