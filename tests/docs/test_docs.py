"""The docs keep what they say: links lead somewhere, examples run, tables are fresh."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import orjson
import pytest
from websockets.sync.client import ClientConnection, connect

from tests.docs.settings_page import PAGE, page
from tests.fakes.plain_server import plain_server
from wsserver.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
WITH_PROGRAMS = [
    "README.md",
    "docs/tutorial/first-chat.md",
    "docs/tutorial/agent-with-tools.md",
    "docs/tutorial/survive-a-tunnel.md",
    "docs/explanation/ttft-and-tpot.md",
    "docs/explanation/the-truthful-interrupt.md",
]


def programs(name: str) -> list[str]:
    """Returns the programs of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


def shown(name: str, place: int) -> list[str]:
    """Returns the lines that stand under a program as its output, if any do."""
    pairs = re.findall(
        r"```python\n.*?```\n(?:\n```text\n(.*?)```)?",
        (ROOT / name).read_text(),
        re.DOTALL,
    )
    return [line for line in pairs[place].splitlines() if line != "…"]


PROGRAMS = [
    (name, place) for name in WITH_PROGRAMS for place in range(len(programs(name)))
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where a server of the demo models is: `host:port`."""
    with plain_server() as address:
        yield address


def test_no_example_is_saved_over_one_of_another_page() -> None:
    pages = [path.read_text() for path in PAGES]
    names = [
        name for page in pages for name in re.findall(r"```python\n# (\w+\.py)\n", page)
    ]
    assert len(names) > 15
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_settings_in_examples_are_settings(path: Path) -> None:
    names = set(Settings.__struct_fields__)
    for block in re.findall(
        r"^```toml\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL
    ):
        given = tomllib.loads(block)
        assert given.keys() <= names
        msgspec.convert(given, Settings)


def test_the_table_of_settings_is_fresh() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.docs.settings_page"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("name", "place"), PROGRAMS)
def test_programs_run(name: str, place: int, address: str) -> None:
    program = programs(name)[place]
    assert "127.0.0.1:8765" in program, "the server's address is not the default"
    run = subprocess.run(  # noqa: S603
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            program.replace("127.0.0.1:8765", address),
        ],
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip(), "it says nothing"
    printed = {without_port(line) for line in run.stdout.splitlines()}
    assert {without_port(line) for line in shown(name, place)} <= printed


def without_port(line: str) -> str:
    return re.sub(r"(127\.0\.0\.1):\d+", r"\1", line)


def test_tutorials_show_what_programs_print() -> None:
    assert sum(bool(shown(name, place)) for name, place in PROGRAMS) >= 9


def test_pages_with_programs_have_some() -> None:
    assert {name for name, _ in PROGRAMS} == set(WITH_PROGRAMS)


def test_the_session_on_the_wire_is_what_happens(address: str) -> None:
    """Sends what `C` says in the README, and gets what `S` says, members and all."""
    session = re.search(
        r"```frames\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    assert session is not None
    with connect(f"ws://{address}/v1/chat") as socket:
        for line in session.group(1).splitlines():
            who, frame = line.split(" ", 1)
            if who == "C":
                socket.send(frame)
            else:
                _expect(socket, frame)


def _expect(socket: ClientConnection, shown: str) -> None:
    """Reads up to a frame like the one shown, of which `…` stands for the rest."""
    whole = shown.replace(", …}", "}").replace('"…"', "null")
    wanted = {k: v for k, v in orjson.loads(whole).items() if v is not None}
    frame = orjson.loads(socket.recv(timeout=10))
    while frame["type"] != wanted["type"]:
        frame = orjson.loads(socket.recv(timeout=10))
    if wanted["type"] == "delta":
        # On a busy machine it may be merged with the ones after it.
        assert frame["text"].startswith(wanted["text"])
        assert frame.get("first", frame["seq"]) == wanted["seq"]
        return
    for member in wanted.keys() - {"epoch", "models", "heartbeat_ms"}:
        assert frame[member] == wanted[member], frame


@pytest.mark.parametrize("name", ["docs/README.md", "docs/llms.txt"])
def test_the_index_has_all_pages(name: str) -> None:
    """A new page is added to both, or nobody finds it."""
    index = ROOT / name
    linked = {
        (index.parent / link.partition("#")[0]).resolve()
        for link in re.findall(r"\]\(([^)\s:]+)\)", index.read_text())
    }
    for target in linked:
        assert target.exists(), target
    pages = {path for path in ROOT.glob("docs/**/*.md") if path.name != "README.md"}
    assert {str(path.relative_to(ROOT)) for path in pages - linked} == set()


def test_the_index_for_models_has_its_form() -> None:
    """See https://llmstxt.org: a title, a summary, sections of links with notes."""
    lines = (ROOT / "docs/llms.txt").read_text().splitlines()

    assert re.fullmatch("# .+", lines[0])
    assert any(line.startswith("> ") for line in lines[:4])
    links = [line for line in lines if line.startswith("- ")]
    for line in links:
        assert re.fullmatch(r"- \[[^]]+\]\([^)\s]+\): .+", line), line
    assert lines.count("## Optional") == 1
