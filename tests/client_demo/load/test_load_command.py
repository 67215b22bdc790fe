"""`load` on the command line: what it checks before it runs."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from client_demo.cli import app
from client_demo.load.scenario_file import shipped

runner = CliRunner()


def test_check_says_whether_it_can_be_run(tmp_path: Path) -> None:
    fine = runner.invoke(app, ["load", "smoke", "--check"])
    assert (fine.exit_code, fine.stdout) == (0, "Smoke: can be run\n")
    path = tmp_path / "bad.toml"
    path.write_text("title = 3")
    wrong = runner.invoke(app, ["load", str(path), "--check"])
    assert wrong.exit_code == 2
    assert "$.title: Expected `str`, got `int`" in wrong.stderr


def test_list_says_what_there_is() -> None:
    listed = runner.invoke(app, ["load", "--list"]).stdout.splitlines()
    assert [line.split()[0] for line in listed] == shipped()


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing-of-that-name"],
        ["--processes", "0"],
        ["--url", "http://example.org"],
        ["smoke", "--nonsense"],
        ["smoke", "--html", "no-such-folder/report.html"],
        ["smoke", "--json", "no-such-folder/report.json"],
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    assert runner.invoke(app, ["load", *arguments]).exit_code == 2


@pytest.mark.parametrize("flag", ["--conversations=3", "--turns=9", "--prompt=x"])
def test_what_a_scenario_says_itself_is_no_flag(flag: str) -> None:
    ran = runner.invoke(app, ["load", "smoke", "--check", flag])
    assert ran.exit_code == 2
    assert ran.stderr.startswith(f"{flag.partition('=')[0]} has no use with smoke,")
    assert runner.invoke(app, ["load", "--check", flag]).exit_code == 0


def test_without_its_library_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['hdrh'] = None; sys.argv = ['x', 'load'];"
        "from client_demo.cli import app; app()"
    )
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert run.stderr == (
        "hdrh is not installed; this program needs the extra `load`:"
        " `requirements/install run` in a checkout, or pip install '.[load]' there\n"
    )
