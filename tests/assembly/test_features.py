"""`welcome.features`: each optional part that this server has, and no other."""

import re
from pathlib import Path

import pytest

from wsserver.assembly.rooms import features
from wsserver.settings import McpEntry, Model, Settings
from wsserver.stores.memory import MemoryStore
from wsserver.tools.python_tools import PythonTool, PythonTools
from wsserver.tools.registry import Registry

PROTOCOL = Path(__file__).parents[2] / "docs/reference/protocol.md"
BASE = {"gathered_text"}


def double(n: int) -> int:
    """Doubles."""
    return 2 * n


TOOLS = Registry([PythonTools({"double": PythonTool("double", double)})])


def of(settings: Settings | None = None, **parts: object) -> set[str]:
    store = MemoryStore()
    store.durable = bool(parts.get("durable"))
    tools = parts.get("tools") or Registry([])
    assert isinstance(tools, Registry)
    return set(features(settings or Settings(), store, tools))


@pytest.mark.parametrize(
    ("feature", "settings", "parts"),
    [
        ("durable_history", Settings(), {"durable": True}),
        ("server_tools", Settings(), {"tools": TOOLS}),
        ("server_tools", Settings(mcp={"docs": McpEntry(command=("docs",))}), {}),
        (
            "fallback",
            Settings(models={"m": Model(base_url="http://u/v1", fallback=("n",))}),
            {},
        ),
        ("expiring_credentials", Settings(auth_jwt_key_file="keys"), {}),
    ],
)
def test_a_part_is_named_where_it_is(
    feature: str, settings: Settings, parts: dict[str, object]
) -> None:
    assert of(settings, **parts) == BASE | {feature}
    assert of() == BASE


def test_the_protocol_says_what_each_means() -> None:
    told = re.findall(r"^\| `([a-z_]+)` \| .*\|$", _table(), flags=re.MULTILINE)
    settings = Settings(
        mcp={"docs": McpEntry(command=("docs",))},
        models={"m": Model(base_url="http://u/v1", fallback=("n",))},
        auth_jwt_key_file="keys",
    )
    assert set(told) == of(settings, durable=True)


def _table() -> str:
    return PROTOCOL.read_text().partition("| feature | |")[2].partition("\n\n")[0]
