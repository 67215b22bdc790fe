import orjson
import pytest

from wsserver.operations.checks.findings import (
    Finding,
    Report,
    fail,
    ok,
    taken_apart,
    warn,
)


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (ok("clock", "kept right"), "ok    clock         kept right\n"),
        (warn("clock", "late", "wind it"), "warn  clock         late -> wind it\n"),
        (fail("clock", "gone", "buy one"), "fail  clock         gone -> buy one\n"),
    ],
)
def test_a_finding_is_a_line(
    finding: Finding, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Report(as_json=False).add(finding)

    assert capsys.readouterr().out == line


def test_a_finding_is_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(as_json=True)
    report.add(ok("clock", "kept right"))
    report.add(fail("store", "two\nlines", "one"))

    first, second = map(orjson.loads, capsys.readouterr().out.splitlines())
    assert first == {"check": "clock", "status": "ok", "says": "kept right"}
    assert second["says"] == "two\nlines"
    assert second["remedy"] == "one"


@pytest.mark.parametrize(
    ("findings", "failed"),
    [
        ([], False),
        ([ok("a", "b"), warn("a", "b", "c")], False),
        ([fail("a", "b", "c"), ok("a", "b")], True),
    ],
)
def test_only_a_failure_is_one(findings: list[Finding], failed: bool) -> None:
    report = Report(as_json=False)
    for finding in findings:
        report.add(finding)

    assert report.failed is failed


def test_what_an_upstream_says_can_not_move_the_cursor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Report(as_json=False).add(ok("up", "a\x1b[2Jb\n c\x9b\u202ed"))

    assert capsys.readouterr().out == "ok    up            a\ufffd[2Jb c\ufffd\ufffdd\n"


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ("port: 0 is none; set it", ("port: 0 is none", "set it")),
        ("it is full. Free some; then go on.", ("it is full", "Free some; then go on")),
        (
            "anyone may; set a, or b; c. is one",
            ("anyone may", "set a, or b; c. is one"),
        ),
        ("it is not there", ("it is not there", "look")),
    ],
)
def test_an_error_says_what_is_wrong_and_what_to_do(
    message: str, parts: tuple[str, str]
) -> None:
    assert taken_apart(message, "look") == parts
