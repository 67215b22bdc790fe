"""The command that plays the scenarios to a client in any language."""

import re
import shutil
import sys
from pathlib import Path

import orjson
import pytest

from tests.conformance.__main__ import main
from tests.conformance.judge import scenarios
from tests.conformance.program_driver import STATE

HERE = Path(__file__).parent
WEB = HERE.parents[1] / "client_demo" / "web"


@pytest.mark.node
def test_a_client_that_keeps_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    assert main([node, str(HERE / "javascript.mjs"), str(WEB)]) == 0
    played = capsys.readouterr().out.split()
    assert played[0] == played[2]


def test_a_driver_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["./no-such-driver"]) == 2
    assert capsys.readouterr().err == "./no-such-driver: No such file or directory\n"


def test_a_client_that_does_nothing_is_told_so_for_each_scenario(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing = (
        "import sys, json\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps(dict(sent=[], link='dialling', wait_ms=None,"
        " gave_up=False, conversations={}, asked=[], replied=[], told=[])), flush=True)"
    )
    assert main([sys.executable, "-c", nothing]) == 1
    out = capsys.readouterr().out
    assert "FAILED connection: hello comes first and alone, step 5" in out
    assert "nothing was sent (the protocol's section: Connection)" in out


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("hello", "the answer is no JSON object: 'hello\\n'"),
        ("5", "the answer is no JSON object: '5\\n'"),
        (
            orjson.dumps(
                dict.fromkeys(STATE) | {"sent": [{"type": "hello", "protocol": "one"}]}
            ).decode(),
            "no valid frame: {'type': 'hello', 'protocol': 'one'}: bad_frame: `protocol`",
        ),
    ],
)
def test_an_answer_that_can_not_be_read_is_a_failure_of_its_scenario(
    capsys: pytest.CaptureFixture[str], answer: str, says: str
) -> None:
    program = f"import sys\nfor line in sys.stdin: print({answer!r}, flush=True)"
    assert main([sys.executable, "-c", program]) == 1
    *failed, last = capsys.readouterr().out.splitlines()
    assert last.startswith("0 of ")
    assert all(says in line for line in failed), failed[0]


def test_without_a_command_it_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "python -m tests.conformance COMMAND" in capsys.readouterr().err


def test_the_page_shows_an_answer_and_a_scenario_as_they_are() -> None:
    page = (HERE.parents[1] / "docs/how-to/write-a-client.md").read_text()
    answer, scenario = map(
        orjson.loads, re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    )
    assert answer.keys() == STATE
    found = [each for each in scenarios() if each["name"] == scenario["name"]]
    assert [{key: each[key] for key in scenario} for each in found] == [scenario]
