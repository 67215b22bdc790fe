"""`wsserver doctor` as a command, and what else the command line offers."""

from pathlib import Path

import orjson
import pytest

from tests.operations.conftest import Command, Ran
from wsserver.operations.checks import machine


@pytest.fixture(autouse=True)
def clock_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_is_kept", lambda: True)


def checks(ran: Ran) -> list[tuple[str, str]]:
    findings = map(orjson.loads, ran.lines)
    return [(finding["check"], finding["status"]) for finding in findings]


HERE = [
    "settings", "credentials", "endpoint", "metrics", "models", "open files", "store",
    "clock",
]  # fmt: skip


def test_a_machine_that_is_well(wsserver: Command) -> None:
    ran = wsserver("doctor", "--json", "--max-connections", "10")

    assert (ran.code, ran.err) == (0, "")
    assert checks(ran) == [(check, "ok") for check in [*HERE, "upstream"]]


def test_a_failure_is_an_exit_code(wsserver: Command, tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"no database" * 1000)
    ran = wsserver("doctor", "--json", "--store", f"sqlite:{tmp_path / 'x.db'}")

    assert ran.code == 1
    assert ("store", "fail") in checks(ran)
    assert ("clock", "ok") in checks(ran), "the others are looked at all the same"


def test_upstreams_need_not_be_asked(wsserver: Command) -> None:
    ran = wsserver(
        "doctor", "--json", "--no-upstreams", OPENAI_BASE_URL="http://127.0.0.1:1/v1"
    )

    assert ran.code == 0
    assert "upstream" not in dict(checks(ran))


def test_an_upstream_that_is_not_there_is_told(wsserver: Command) -> None:
    ran = wsserver("doctor", "--json", OPENAI_BASE_URL="http://127.0.0.1:1/v1")

    assert ran.code == 1
    assert checks(ran)[-1] == ("upstream", "fail")


def test_settings_of_no_use_do_not_keep_it_from_the_rest(wsserver: Command) -> None:
    ran = wsserver("doctor", "--json", "--port", "x", "--url", "http://127.0.0.1:1")

    assert ran.code == 1
    assert checks(ran) == [("settings", "fail"), ("clock", "ok"), ("page", "fail")]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--idle", "5"], "--idle needs --url"),
        (["--url", "ftp://a"], "'ftp://a' is no URL such as https://"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(
    wsserver: Command, flags: list[str], says: str
) -> None:
    ran = wsserver("doctor", *flags)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert says in ran.err


def test_a_shell_completes_commands_and_settings(wsserver: Command) -> None:
    def completed(words: str) -> list[str]:
        count = words.count(" ")
        return wsserver(
            _WSSERVER_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(count)
        ).lines

    assert completed("wsserver conv") == ["conversations"]
    assert completed("wsserver conversations ex") == ["export"]
    assert completed("wsserver serve --heartbeat") == ["--heartbeat-seconds"]
    assert completed("wsserver doctor --id") == ["--idle"]


def test_a_shell_gets_its_completion(wsserver: Command) -> None:
    ran = wsserver("--show-completion", "bash")

    assert ran.code == 0
    assert "_WSSERVER_COMPLETE=complete_bash" in ran.out


@pytest.mark.parametrize("command", ["list", "show", "export", "delete"])
def test_only_flags_of_use_are_offered(wsserver: Command, command: str) -> None:
    ran = wsserver("conversations", command, "--help")

    assert ran.code == 0
    assert "--store" in ran.out
    assert "--config" in ran.out
    assert "--port" not in ran.out
