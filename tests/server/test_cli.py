import pwd
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import anyio
import pytest
import typer

from wsserver import __version__, cli
from wsserver.server import serving
from wsserver.settings import TABLES, Settings, SettingsError
from wsserver.settings.sources import FIELDS, load


def run(
    *arguments: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["wsserver", *arguments])
    with pytest.raises(SystemExit) as left:
        cli.main()
    out, err = capsys.readouterr()
    code = left.value.code
    assert isinstance(code, int)
    return code, out, err


@pytest.fixture
def wsserver(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> object:
    def call(*arguments: str) -> tuple[int, str, str]:
        return run(*arguments, capsys=capsys, monkeypatch=monkeypatch)

    return call


def test_it_says_which_version_it_is(wsserver) -> None:
    assert wsserver("--version") == (0, f"wsserver {__version__}\n", "")


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "wsserver", "--version"],
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    assert done.stdout == f"wsserver {__version__}\n"


def test_help_has_defaults_as_one_would_write_them() -> None:
    """So that they can be given as they stand there, and no number has more to it."""
    serve = typer.main.get_command(cli.command_line()).commands["serve"]
    shown = {
        option.name: found[1]
        for option in serve.params
        if (found := re.search(r" \[default: (.*)\]$", option.help or ""))
    }
    assert shown["params_allowed"] == "*"
    assert shown["heartbeat_seconds"] == "20"
    assert shown["max_turn_bytes"] == "4194304"
    assert not [text for text in shown.values() if re.search(r"[('\"]|\.0$|e\+", text)]
    loaded = load(flags=shown, environ={}).settings
    assert loaded == Settings()


@pytest.mark.parametrize("found", [True, False])
def test_help_is_named_by_what_can_be_called(tmp_path: Path, *, found: bool) -> None:
    program = tmp_path / "wsserver"
    program.write_text(
        f"#!{sys.executable}\nfrom wsserver.__main__ import main\nmain()\n"
    )
    program.chmod(0o755)
    done = subprocess.run(  # noqa: S603 - our own program
        [program, "serve", "--prot"], capture_output=True, text=True, check=False,
        env={"PATH": str(tmp_path if found else "/nowhere"), "PYTHONPATH": "."},
    )  # fmt: skip
    called = "wsserver" if found else program
    assert done.returncode == 2
    assert done.stderr.endswith(f"; see `{called} serve --help`\n")


def test_each_setting_is_a_flag_that_is_explained(wsserver) -> None:
    code, out, _ = wsserver("serve", "--help")
    assert code == 0
    for name in set(FIELDS) - TABLES - {"openai_api_key"}:
        assert f"--{name.replace('_', '-')}" in out
    assert "--model-path" in out
    assert "--openai-api-key" not in out


def test_it_shows_the_settings(wsserver, tmp_path: Path) -> None:
    file = tmp_path / "w.toml"
    file.write_text("port = 7\n")
    code, out, err = wsserver("config", "show", "--config", str(file), "--host", "::1")
    assert (code, err) == (0, "")
    shown = tomllib.loads(out)
    assert (shown["port"], shown["host"]) == (7, "::1")
    assert f"# {file}: port\n" in out


def test_an_alias_of_a_flag_is_the_flag(wsserver) -> None:
    _, out, _ = wsserver("config", "show", "--model-path", "/a.gguf")
    assert tomllib.loads(out)["local_model_path"] == "/a.gguf"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["serve", "--port", "x"], "port: 'x' from --port can't be used"),
        (["serve", "--config", "/nowhere"], "config: /nowhere: No such file"),
        (["serve", "--host", "192.0.2.7"], "no credentials are configured"),
        (["serve", "--prot", "1"], "see `wsserver serve --help`"),
        (["serve", "--port"], "see `wsserver serve --help`"),
        (["serve", "serve"], "(serve); see `wsserver serve --help`"),
        (["serve", "--version"], "stands before the command: `wsserver --version`"),
        (["sevre"], "Did you mean 'serve'? See `wsserver --help`"),
        ([], "see `wsserver --help`"),
        (["config"], "see `wsserver config --help`"),
        (["conversations", "show"], "see `wsserver conversations show --help`"),
        (
            ["serve", "--auth-keys-file", "/nowhere"],
            "auth_keys_file: /nowhere: No such file",
        ),
        (
            ["serve", "--tls-cert-file", "/nowhere", "--tls-key-file", "/nowhere"],
            "tls_cert_file: /nowhere: No such file or directory",
        ),
        (
            ["serve", "--store", "sqlite:/proc/nowhere/x.db"],
            "store: /proc/nowhere/x.db",
        ),
        (["serve", "--default-model", "m"], "default_model: 'm' leads nowhere"),
        (["serve", "--default-model", "demo/none"], "no demo model 'none'; there are"),
        (
            ["serve", "--openai-base-url", "x"],
            "openai_base_url: 'x' is no HTTP URL; write one such as http://",
        ),
        (
            ["serve", "--openai-base-url", "http://x/v1/chat/completions"],
            "'http://x/v1/chat/completions' is no base URL; leave /chat/completions out",
        ),
        (
            ["serve", "--openai-base-url", "http://x/v1?key=secret"],
            "openai_base_url: 'http://x/v1' is followed by '?'; end it there, as the",
        ),
        (
            ["serve", "--openai-base-url", "http://x/v1#"],
            "openai_base_url: 'http://x/v1' is followed by '#'; end it there, as the",
        ),
        (["serve", "--model-path", "/nowhere"], "local_model_path: there is no file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    wsserver, monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("WSSERVER_STORE", "memory")
    monkeypatch.setenv("WSSERVER_PORT", "0")
    code, out, err = wsserver(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("wsserver: ")
    assert err.count("\n") == 1
    assert expected in err


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user is a mere number, as in some containers."""

    def unknown(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)


async def served(store: str) -> None:
    async with serving(Settings(port=0, store=store)):
        pass


@pytest.mark.usefixtures("homeless")
def test_a_user_without_a_home_has_to_say_where_the_store_is(
    wsserver, tmp_path: Path
) -> None:
    for store in ("memory", f"sqlite:{tmp_path / 'w.db'}"):
        assert wsserver("config", "check", "--store", store)[0] == 0
        anyio.run(served, store)
    code, out, _ = wsserver("config", "check")
    assert code == 2
    assert "nobody knows whose home that is -> write it in full" in out
    with pytest.raises(SettingsError, match="whose home that is"):
        anyio.run(served, "sqlite")
