"""The unit and the container file in the docs: they start a server as it is today."""

import ast
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from wsserver.operations.checks.machine import judge_open_files
from wsserver.process import CLOSE_SECONDS, DRAIN_MORE_SECONDS
from wsserver.settings import Settings
from wsserver.settings.sources import FIELDS, load

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "how-to"
PLAIN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("OPENAI_", "WSSERVER_"))
}


def unit() -> dict[str, list[str]]:
    """Returns the directives of the unit; each may stand there several times."""
    found: dict[str, list[str]] = {}
    for line in (GUIDES / "wsserver.service").read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def test_the_unit_is_started_again_however_often_it_fails() -> None:
    # systemd's own limit: five starts within ten seconds.
    (pause,) = unit()["RestartSec"]
    assert unit()["Restart"] == ["always"]
    assert 5 * int(pause) > 10


def test_what_the_server_started_is_there_until_it_has_drained() -> None:
    # As `systemctl stop` has it by default, MCP servers would end with the first signal.
    assert unit()["KillMode"] == ["mixed"]


def test_programs_that_the_server_starts_have_a_home_they_may_write_to() -> None:
    environ = variables(unit()["Environment"])
    assert unit()["ProtectSystem"] == ["strict"]
    assert environ["HOME"] == f"%S/{unit()['StateDirectory'][0]}"


def test_an_abort_by_the_watchdog_says_where_it_hung_and_keeps_nothing() -> None:
    assert variables(unit()["Environment"])["PYTHONFAULTHANDLER"] == "1"
    assert unit()["LimitCORE"] == ["0"]


def container() -> list[tuple[str, str]]:
    """Returns the container file's instructions, continued lines joined."""
    text = (GUIDES / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def instruction(name: str) -> str:
    (value,) = [value for found, value in container() if found == name]
    return value


def variables(assignments: list[str]) -> dict[str, str]:
    pairs = [pair for text in assignments for pair in shlex.split(text)]
    return dict(pair.split("=", 1) for pair in pairs)


@pytest.fixture(scope="module")
def known_flags() -> set[str]:
    """The flags that `wsserver serve --help` shows."""
    shown = subprocess.run(
        [sys.executable, "-m", "wsserver", "serve", "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return set(re.findall(r"(--[a-z][a-z-]+)", shown.stdout))


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text("ann:0123456789abcdef\n")
    file.chmod(0o600)
    return file


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def started(
    arguments: list[str], environ: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Runs `wsserver` until it listens, and ends it after."""
    with subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "wsserver", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=PLAIN | environ,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        try:
            assert line.startswith("listening on "), process.stderr.read()
            yield process
        finally:
            process.terminate()
            assert process.wait(20) == 0


def test_the_unit_names_flags_and_variables_that_exist(known_flags: set[str]) -> None:
    program, command, *flags = shlex.split(unit()["ExecStart"][0])

    assert program.endswith("/bin/wsserver")
    assert command == "serve"
    assert {flag for flag in flags if flag.startswith("--")} <= known_flags
    environ = variables(unit()["Environment"])
    assert load(flags={}, environ=environ).warnings == ()
    assert unit()["KillSignal"] == ["SIGTERM"]


def test_the_unit_leaves_room_for_files_and_time_for_the_drain() -> None:
    settings = Settings()

    files = int(unit()["LimitNOFILE"][0])
    assert judge_open_files(files, settings).status == "ok"
    seconds = int(unit()["TimeoutStopSec"][0])
    assert seconds > settings.drain_seconds + DRAIN_MORE_SECONDS + CLOSE_SECONDS


def test_the_unit_starts_a_server(tmp_path: Path, keys: Path) -> None:
    """With what systemd would put for `%S`, and other files than those in /etc."""
    config = tmp_path / "wsserver.toml"
    config.write_text('host = "127.0.0.1"\n')
    _, *arguments = shlex.split(unit()["ExecStart"][0])
    place = arguments.index("--config") + 1
    arguments[place] = str(config)
    (tmp_path / "wsserver").mkdir()
    environ = {
        name: value.replace("%S", str(tmp_path)).replace("/etc/wsserver", str(tmp_path))
        for name, value in variables(unit()["Environment"]).items()
    }

    with started([*arguments, "--port", "0"], environ):
        assert (tmp_path / "wsserver" / "wsserver.db").exists()

    assert Path(environ["WSSERVER_AUTH_KEYS_FILE"]) == keys


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    text = (GUIDES / "wsserver.service").read_text()
    program = unit()["ExecStart"][0].split()[0]
    copy = tmp_path / "wsserver.service"
    copy.write_text(text.replace(program, sys.executable))

    checked = subprocess.run(  # noqa: S603 - our own file
        [analyze, "verify", "--man=no", str(copy)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )

    complaints = [line for line in checked.stderr.splitlines() if "wsserver" in line]
    assert complaints == []


def test_the_container_is_built_from_what_is_there() -> None:
    copied = [value for name, value in container() if name == "COPY"]
    sources = [source for value in copied for source in value.split()[:-1]]

    assert sources
    assert "requirements/serve.txt" in sources
    assert "requirements/serve.txt" in " ".join(
        value for name, value in container() if name == "RUN"
    )
    for source in sources:
        assert (ROOT / source).exists(), source
    packages = re.search(r"packages = \[(.*)\]", (ROOT / "pyproject.toml").read_text())
    assert packages is not None
    assert set(re.findall(r'"(\w+)"', packages[1])) <= set(sources)
    assert "wsserver = " in (ROOT / "pyproject.toml").read_text()


def test_the_container_names_variables_that_exist() -> None:
    environ = variables([instruction("ENV")])

    loaded = load(flags={}, environ=environ)
    (warning,) = loaded.warnings
    assert warning.startswith("host: 0.0.0.0 can be reached from other machines, and")
    proxied = environ | {"WSSERVER_TRUSTED_PROXIES": "172.17.0.1"}
    assert load(flags={}, environ=proxied).warnings == (), "as the page says"
    assert instruction("EXPOSE") == str(loaded.settings.port)
    volume = instruction("VOLUME")
    assert loaded.settings.store.startswith(f"sqlite:{volume}/")
    assert loaded.settings.has_credentials, "it is meant to be reached"
    assert instruction("STOPSIGNAL") == "SIGTERM"


def test_programs_in_the_container_have_a_home_they_may_write_to() -> None:
    (made,) = [value for name, value in container() if "useradd" in value]
    assert f"--home-dir {instruction('VOLUME')} " in made


def test_the_container_is_run_with_what_it_needs() -> None:
    page = (GUIDES / "deploy.md").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^docker run --name .*", page, re.MULTILINE)
    words = shlex.split(line)

    # PID 1 inherits what MCP servers leave, and the server waits for its own children only.
    assert {"--init", "--detach"} <= set(words)
    assert words[words.index("--restart") + 1] == "unless-stopped"
    seconds = int(words[words.index("--stop-timeout") + 1])
    assert seconds > Settings().drain_seconds + DRAIN_MORE_SECONDS + CLOSE_SECONDS
    assert f":{Settings().port}" in words[words.index("--publish") + 1]


def test_the_container_starts_a_server_that_is_healthy(
    tmp_path: Path, keys: Path
) -> None:
    port = free_port()
    program, *arguments = ast.literal_eval(
        instruction("ENTRYPOINT")
    ) + ast.literal_eval(instruction("CMD"))
    environ = variables([instruction("ENV")])
    environ |= {
        "WSSERVER_HOST": "127.0.0.1",
        "WSSERVER_PORT": str(port),
        "WSSERVER_STORE": environ["WSSERVER_STORE"].replace("/var/lib", str(tmp_path)),
        "WSSERVER_AUTH_KEYS_FILE": str(keys),
    }
    health = ast.literal_eval(instruction("HEALTHCHECK").partition("CMD ")[2])

    def is_healthy() -> bool:
        asked = subprocess.run(  # noqa: S603 - our own file
            [sys.executable, *health[1:]],
            env=PLAIN | environ,
            capture_output=True,
            check=False,
            timeout=20,
        )
        return asked.returncode == 0

    assert program == "wsserver"
    assert not is_healthy()
    with started(arguments, environ):
        assert is_healthy()


def test_the_flags_in_the_guides_exist(known_flags: set[str]) -> None:
    """Of all commands of ours that the guides show."""
    offered = {
        "serve": known_flags,
        "doctor": known_flags
        | {"--url", "--token", "--idle", "--json", "--no-upstreams"},
        "config": known_flags | {"--json"},
        "conversations": {"--store", "--config", "--space", "--json", "--yes"},
        "replay": {"--show", "--fast", "--texts", "--no-texts", "--url", "--token"},
    }
    seen: set[str] = set()
    for page in GUIDES.glob("*.md"):
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL):
            joined = block.replace("\\\n", " ")
            for command, rest in re.findall(
                r"(?<!exec )(?<!-C /opt/)\bwsserver (\w+)([^\n#]*)", joined
            ):
                flags = set(re.findall(r"--[a-z][a-z-]+", rest))
                assert flags <= offered[command], page.name
                seen.add(command)
    assert seen == set(offered)


@pytest.mark.parametrize("name", ["deploy", "nginx", "caddy", "observe", "tune"])
def test_the_settings_in_the_guides_exist(name: str) -> None:
    """What stands in TOML, and what looks like the name of a setting."""
    text = (GUIDES / f"{name}.md").read_text()
    named = set[str]()
    for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL):
        named |= tomllib.loads(block).keys()
    endings = "seconds|bytes|file|origins|proxies|connections|turns|days|ms|size"
    named |= set(re.findall(rf"`([a-z]+_[a-z_]*(?:{endings}))\b", text))
    others = ("wsserver_", "gen_ai_", "client_max_body")  # metrics, and nginx's

    assert {word for word in named if not word.startswith(others)} <= set(FIELDS)


def test_the_defaults_in_the_guide_to_tuning_are_the_defaults() -> None:
    text = (GUIDES / "tune.md").read_text()
    claimed = re.findall(r"`(\w+)` \(([\d,]+)\)", text)

    assert len(claimed) > 10
    for name, value in claimed:
        assert getattr(Settings(), name) == float(value.replace(",", "")), name
