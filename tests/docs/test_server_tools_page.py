"""The page on server tools: what it shows can be used as it stands."""

import re
import sys
from pathlib import Path

import msgspec
import pytest

from protocol.content import Config
from tests.tools.mcp_rig import context
from wsserver.assembly.server_tools import load_tools
from wsserver.engine.server_tools import ToolError
from wsserver.settings import Settings, load
from wsserver.turns.server_tools import offered

PAGE = Path(__file__).parents[2] / "docs/how-to/server-tools.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    (module,) = blocks("python")
    (tmp_path / "my_tools.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_tools", raising=False)
    *tables, default = blocks("toml")
    config = tmp_path / "wsserver.toml"
    config.write_text("\n".join([default, *tables]))
    return load(flags={}, environ={}, config=config).settings


@pytest.fixture
def entries() -> Config:
    (shown,) = blocks("json")
    return msgspec.json.decode(shown, type=Config)


async def test_the_page_is_true(settings: Settings, entries: Config) -> None:
    registry = (await load_tools(settings, {"SEARCH_TOKEN": "t"})).registry
    assert [tool.name for tool in registry.default()] == ["stock"]
    said = await registry.run("stock", {"part": "bolts"}, context())
    assert said == {"part": "bolts", "count": 17, "unit": "pieces"}
    with pytest.raises(ToolError, match="There is no part 'screws'"):
        await registry.run("stock", {"part": "screws"}, context())
    ordered = await registry.run("order", {"part": "nuts", "count": 2}, context())
    assert ordered == "2 nuts ordered for alice"
    order = registry.find("order")
    assert order is not None
    assert (order.timeout_s, order.description[:15]) == (20, "Orders a part. ")
    config, served = offered(entries, registry)
    assert served == {"stock", "files_read_file"}
    assert config.tools
    assert config.tools[1].description == "Reads the handbook."
