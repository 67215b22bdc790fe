"""The report: verdict and exit code, the page, the summary, what is shown meanwhile."""

import io
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from rich.console import Console

from client_demo.load.page import page
from client_demo.load.progress import Progress
from client_demo.load.quick import quick
from client_demo.load.report import Finished, Report, report
from client_demo.load.scenario import Scenario
from client_demo.load.spread import spread_percent
from client_demo.load.summary import show
from client_demo.load.tally import PromptTime, Tally
from client_demo.load.violations import Violation
from client_demo.load.worker import Tick
from protocol.content import ServerInfo

HOSTILE = "<script>alert(1)</script>&\"'[/red]"
SERVER = ServerInfo(name="wsserver", version="0.1.0")


def finished(
    *, slow: float = 1.0, faults: bool = False, busy: float = 20.0
) -> Finished:
    now = 0.0
    tally = Tally(lambda: now)
    for second in range(4):
        now = float(second)
        tally.user(1)
        for step in range(30):
            tally.count("turns")
            tally.first_token(slow * (step + 1) / 100)
            tally.time("gap", 0.03)
            tally.time("resume", slow * 0.1)
            tally.ended("completed", None)
            tally.tokens(30)
    tally.prompts.append(
        PromptTime(
            prompt=HOSTILE, language="en", ttft_ms=slow * 12, tpot_ms=None, turn_ms=90,
            input_tokens=4, output_tokens=1, status="completed",
        )
    )  # fmt: skip
    tally.cpu.append(busy)
    if faults:
        tally.error("too_many_turns")
        tally.count("unfinished")
        tally.violation(
            Violation(kind="gap", conversation="c", seq=4, what=HOSTILE, recording="f")
        )
    return Finished(counts=[tally.counts()], seconds=4.0)


def made(*rounds: Finished, **members: Any) -> Report:
    plan = quick(conversations=3, turns=1, prompt=HOSTILE, model=None)
    scenario = {"title": HOSTILE, "description": HOSTILE, "thresholds": [], **members}
    usual = {name: getattr(plan.scenario, name) for name in Scenario.__struct_fields__}
    return report(
        Scenario(**usual | scenario),
        list(rounds),
        url="ws://127.0.0.1:8765/v1/chat",
        server=SERVER,
        started_at="2026-01-02T03:04:05.678Z",
        notes=["before"],
    )


@pytest.mark.parametrize(
    ("faults", "thresholds", "verdict", "code"),
    [
        (False, [], "fine", 0),
        (False, ["ttft_ms.max < 1000"], "fine", 0),
        (False, ["ttft_ms.max < 1000", "ttft_ms.max < 1"], "thresholds", 1),
        (True, [], "violations", 3),
        (True, ["ttft_ms.max < 1"], "violations", 3),
    ],
)
def test_the_verdict_and_its_exit_code(
    faults: bool, thresholds: list[str], verdict: str, code: int
) -> None:
    found = made(finished(faults=faults), thresholds=thresholds)
    assert (found.verdict, found.exit_code) == (verdict, code)


def test_notes_say_what_spoils_the_figures() -> None:
    notes = made(finished(faults=True, busy=86.0)).notes
    assert notes[0] == "before"
    assert "was 86 % busy" in notes[1]
    assert "`max_active_turns`" in notes[2]
    assert notes[3].startswith("Still running at the end: 1 script; the oracle")
    assert made(finished(busy=85.0)).notes == ["before"]


def test_a_machine_that_others_use_is_told() -> None:
    tally = Tally(lambda: 0.0)
    tally.time("lag", 0.3)
    crowded = Finished(counts=[tally.counts()], seconds=1.0)
    assert "fired up to 300 ms late" in made(crowded).notes[1]


def parsed(report: Report) -> Xml.Element:
    text = page(report)
    assert text.startswith("<!doctype html>\n<html")
    return Xml.fromstring(text.partition("\n")[2])  # noqa: S314


def texts(root: Xml.Element) -> str:
    return " ".join(" ".join(root.itertext()).split())


@pytest.mark.parametrize("faults", [False, True])
@pytest.mark.parametrize("rounds", [1, 2])
def test_the_page_is_well_formed_and_loads_nothing(faults: bool, rounds: int) -> None:
    several = [finished(faults=faults, slow=1.0 + place) for place in range(rounds)]
    root = parsed(made(*several, thresholds=["ttft_ms.p99 < 500"]))
    assert {one.tag for one in root.iter()}.isdisjoint(
        {"script", "img", "link", "iframe", "object", "embed", "image", "use", "a"}
    )
    for one in root.iter():
        for name, value in one.attrib.items():
            assert not name.startswith("on")
            assert name not in {"src", "href", "style"}
            assert "://" not in value
    style = root.find("head/style")
    assert style is not None
    assert style.text is not None
    assert "@import" not in style.text
    assert "url(" not in style.text
    assert "prefers-color-scheme: dark" in style.text
    policy = root.find("head/meta[@http-equiv='Content-Security-Policy']")
    assert policy is not None
    assert policy.attrib["content"].startswith("default-src 'none'")


def test_the_page_shows_what_was_found() -> None:
    report = made(finished(), finished(slow=2, faults=True), thresholds=["turns == 1"])
    root = parsed(report)
    shown = texts(root)
    assert HOSTILE in shown
    assert "The oracle found violations of the protocol." in shown
    assert "turns == 1 240 broken" in shown
    assert "gap 4" in shown
    assert "resume p50 100 200 67 %" in shown
    assert "12.0 24.0" in shown, "the prompt's first tokens, by round"
    assert "too_many_turns 1" in shown
    plots = root.findall(".//figure")
    assert len(plots) == 3 + 4, "three measures by percentile, four things over time"
    for plot in plots:
        svg = plot.find("svg")
        assert svg is not None
        assert svg.attrib["aria-label"]
        assert "nan" not in Xml.tostring(svg, encoding="unicode").lower()


def test_a_run_that_saw_nothing_has_a_page_too() -> None:
    nothing = Finished(counts=[Tally(lambda: 0.0).counts()], seconds=0.0)
    assert "Counts" in texts(parsed(made(nothing)))


def test_the_summary_in_the_terminal() -> None:
    console = Console(file=io.StringIO(), width=120, color_system=None)
    several = [finished(), finished(slow=2, faults=True)]
    show(made(*several, thresholds=["turns == 1", "resume_ms.p99 > 0"]), console)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    for said in (
        "broken turns == 1 (240)", "held   resume_ms.p99 > 0", f"gap in c at 4: {HOSTILE}",
        "frames: f", "errors: 1 too_many_turns", "ttft p50", "67 %", "note: before",
    ):  # fmt: skip
        assert said in shown, said


def test_the_spread_is_the_widest_distance() -> None:
    assert spread_percent([90, 100, 110]) == pytest.approx(20)
    assert spread_percent([0, 0]) == 0


def test_progress_shows_what_is_new_since_the_last_second() -> None:
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    ttft = finished().counts[0].histograms["ttft"]
    with Progress(console, "[/Run]", 60.0) as progress:
        for second in (1, 2):
            for process in (0, 1):
                counters = {"tokens": 100 * second, "errors.busy": 1}
                progress.tick(
                    process,
                    Tick(
                        at_seconds=second,
                        users=4,
                        counters=counters,
                        ttft=ttft,
                        cpu=50.0,
                    ),
                )
    table = progress.table()
    plain = Console(file=io.StringIO(), width=120, color_system=None)
    plain.print(table)
    assert isinstance(plain.file, io.StringIO)
    lines = plain.file.getvalue().splitlines()
    assert lines[0].strip() == "[/Run]: 2 of 60 s"
    row = lines[-1].split()
    assert row[0] == "8"
    assert row[-4:] == ["2", "0", "50", "%"]
