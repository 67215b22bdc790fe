"""Callables found by path and by entry point."""

import sys
from pathlib import Path

import pytest

from protocol.tool_signature import UnusableToolError
from wsserver.tools import loading
from wsserver.tools.loading import installed, load

MODULE = '''
def hello(name: str) -> str:
    """Greets."""
    return f"Hello {name}."

class Tools:
    @staticmethod
    def inner() -> int:
        return 1

NUMBER = 7
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with installed packages."""
    (tmp_path / "my_tools.py").write_text(MODULE)
    (tmp_path / "broken_tools.py").write_text("raise RuntimeError('no')\n")
    (tmp_path / "ending_tools.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_tools", raising=False)
    return tmp_path


def test_paths(package: Path) -> None:
    assert load("my_tools:hello")(name="Ann") == "Hello Ann."
    assert load("my_tools:Tools.inner")() == 1


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("my_tools", "is not like package.module:function"),
        (":hello", "is not like package.module:function"),
        ("my_tools:", "is not like package.module:function"),
        ("no_such_module:x", "No module named .* PYTHONPATH"),
        ("my_tools:bye", "AttributeError"),
        ("my_tools:NUMBER", "can't be called"),
        ("broken_tools:x", "RuntimeError: no"),
        ("ending_tools:x", "SystemExit: 3"),
    ],
)
def test_paths_that_lead_nowhere(package: Path, path: str, why: str) -> None:
    with pytest.raises(UnusableToolError, match=why):
        load(path)


def test_entry_points(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out: list[str] = []
    monkeypatch.setattr(
        loading.log, "warning", lambda _, **members: left_out.append(members["tool"])
    )
    info = package / "my_tools-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: my-tools\nVersion: 1\n"
    )
    (info / "entry_points.txt").write_text(
        "[wsserver.tools]\n"
        "greet = my_tools:hello\n"
        "number = my_tools:NUMBER\n"
        "gone = my_tools:bye\n"
        "bad name = my_tools:hello\n"
    )
    found = list(installed())
    assert [tool.tool.name for tool in found] == ["greet"]
    assert found[0].tool.description == "Greets."
    assert left_out == ["number", "gone", "bad name"]
