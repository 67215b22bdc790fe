"""Programs whose libraries are an extra: what they say without, and who needs none."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from client_demo.extras import needing

LIBRARIES = ("prompt_toolkit", "rich", "markdown_it", "hdrh")


def test_a_missing_library_ends_the_program_with_the_remedy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(typer.Exit) as ended, needing("terminal", "no_such_library"):
        import no_such_library.part  # type: ignore[import-not-found]  # noqa: F401

    assert ended.value.exit_code == 2
    assert capsys.readouterr().err == (
        "no_such_library is not installed; this program needs the extra `terminal`:"
        " `requirements/install run` in a checkout, or pip install '.[terminal]' there\n"
    )


def test_any_other_missing_module_is_a_bug_and_stays_one() -> None:
    with pytest.raises(ModuleNotFoundError), needing("terminal", "rich"):
        import no_such_library  # type: ignore[import-not-found]  # noqa: F401


@pytest.mark.parametrize("library", ["prompt_toolkit", "rich", "markdown_it"])
def test_the_chat_says_what_to_install(library: str) -> None:
    ran = without((library,), "client_demo.cli", "chat")

    assert ran.returncode == 2
    assert f"{library} is not installed" in ran.stderr
    assert "pip install '.[terminal]'" in ran.stderr


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("client_demo.cli", ["ask", "hi", "--url", "ws://127.0.0.1:9"]),
        ("client_demo.cli", ["agent", "hi", "--url", "ws://127.0.0.1:9"]),
        ("client_demo.cli", ["load", "smoke", "--check"]),
        ("client_demo.sync", []),
        ("wsserver.cli", ["config", "check"]),
        ("wsserver.server", []),
        ("wsserver.operations.doctor", []),
    ],
)
def test_a_server_and_a_program_of_ones_own_need_none_of_them(
    module: str, arguments: list[str], tmp_path: Path
) -> None:
    ran = without(LIBRARIES, module, *arguments, folder=tmp_path)

    assert "not installed" not in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.returncode == (4 if "--url" in arguments else 0), ran.stderr


def without(
    libraries: tuple[str, ...],
    module: str,
    *arguments: str,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Imports a module of ours, and runs its program, as if some were not installed.

    Typer comes first: it takes rich where that is there, and we could not tell.
    """
    program = (
        "import sys, typer;"
        f"sys.modules |= dict.fromkeys({libraries!r});"
        f"import {module} as module;"
        f"sys.argv = ['x', *{list(arguments)!r}];"
        "sys.exit((getattr(module, 'app', None) or module.main)())"
        if arguments
        else f"import sys; sys.modules |= dict.fromkeys({libraries!r}); import {module}"
    )
    return subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        stdin=subprocess.DEVNULL,
        env={
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "XDG_STATE_HOME": str(folder),
        },
    )
