"""What the pages on providers and stores say can be written as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from websockets.sync.client import connect

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "how-to"


def files_of(page: str, folder: Path) -> list[str]:
    """Writes the page's programs to a folder; returns their names."""
    text = (GUIDES / page).read_text()
    names: list[str] = []
    for program in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        name = program.partition("\n")[0].removeprefix("# ")
        assert name.endswith(".py"), "a program begins with the name of its file"
        (folder / name).write_text(program)
        names.append(name)
    return names


def run(
    folder: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "WSSERVER_", "PYTEST_"))
    }
    return subprocess.run(  # noqa: S603 - our own pages
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        cwd=folder,
        env=environ | {"PYTHONPATH": f"{ROOT}:{folder}"} | variables,
    )


def greeted(folder: Path, program: str) -> dict[str, Any]:
    """Runs a server of the page, makes a conversation there, and ends it.

    Returns how the server welcomes.
    """
    environ = {"PYTHONPATH": f"{ROOT}:{folder}", "WSSERVER_PORT": "0"}
    with subprocess.Popen(  # noqa: S603 - a program of the docs
        [sys.executable, program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        env=os.environ | environ | {"WSSERVER_STORE": "memory"},
    ) as server:
        assert server.stdout is not None
        url = server.stdout.readline().removeprefix("listening on ").strip()
        with connect(url) as client:
            client.send('{"type":"hello","protocol":1}')
            welcome = orjson.loads(client.recv(timeout=10))
            client.send('{"type":"open","id":"o","conversation":"c"}')
            assert orjson.loads(client.recv(timeout=10))["outcome"] == "created"
        server.terminate()
        assert server.wait(20) == 0
    return welcome


def refused(folder: Path, program: str) -> str:
    """Runs a server of the page with a setting that can't be; returns what it says."""
    ran = run(folder, program, WSSERVER_PORT="x")
    assert ran.returncode == 1
    return ran.stderr


@pytest.mark.timeout(60)
def test_the_provider_answers_and_is_stopped(tmp_path: Path) -> None:
    names = ["shouting.py", "shout_server.py"]
    assert files_of("write-a-provider.md", tmp_path) == names
    shown = re.search(
        r"```text\n(.*?)```", (GUIDES / "write-a-provider.md").read_text(), re.DOTALL
    )
    assert shown is not None

    ran = run(tmp_path, "-W", "error", "shouting.py")

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == shown[1]
    assert greeted(tmp_path, names[1])["models"][0] == "shout"
    assert refused(tmp_path, names[1]).startswith("server: port: 'x'")


@pytest.mark.timeout(60)
def test_the_store_keeps_the_contract(tmp_path: Path) -> None:
    names = ["journal_store.py", "test_journal_store.py", "journal_server.py"]
    assert files_of("write-a-store.md", tmp_path) == names
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]

    ran = run(tmp_path, "-m", "pytest", *options, "-o", "anyio_mode=auto", names[1])

    assert ran.returncode == 0, ran.stdout
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed is not None
    assert int(passed[1]) > 30
    greeted(tmp_path, names[2])
    assert refused(tmp_path, names[2]).startswith("server: port: 'x'")
    assert b"local/c" in (tmp_path / "journal").read_bytes()
