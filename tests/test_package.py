"""What is installed is whole: a wheel has all that the programs read, and its types."""

import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from wsserver import __version__

ROOT = Path(__file__).parents[1]
PACKAGES = ("wsserver", "protocol", "client_demo")
CLIENT = ROOT / "client_demo/web"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The names of the files in a wheel that was built from here."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    subprocess.run(  # noqa: S603 - our own program
        [*command, "-d", str(folder)], cwd=ROOT, check=True, capture_output=True
    )
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        return frozenset(archive.namelist())


def _files() -> Iterator[str]:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(ROOT).as_posix()


def test_a_wheel_has_every_file_of_the_packages(wheel: frozenset[str]) -> None:
    missing = set(_files()) - wheel
    assert not missing
    kinds = {Path(name).suffix for name in wheel}
    assert {".py", ".sql", ".html", ".css", ".js", ".json", ".toml"} <= kinds


def test_a_wheel_says_that_its_packages_have_types(wheel: frozenset[str]) -> None:
    assert {f"{package}/py.typed" for package in PACKAGES} <= wheel


def test_a_wheel_brings_nothing_but_the_packages(wheel: frozenset[str]) -> None:
    tops = {name.split("/")[0] for name in wheel}
    assert tops == {*PACKAGES, f"wsserver-{__version__}.dist-info"}


def test_there_is_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__
    for file in ("client.js", "package.json"):
        said = re.findall(r'\bversion"?: "([^"]+)"', (CLIENT / file).read_text())
        assert said == [__version__], file
