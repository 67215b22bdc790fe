"""What a run found, as it is written with `--json`; the page and the summary show it."""

from typing import Literal

from msgspec import Struct

from client_demo.load.counted import counted
from client_demo.load.figures import MEASURES, Measure
from client_demo.load.scenario import Scenario
from client_demo.load.series import Series
from client_demo.load.tally import Counts, PromptTime, Tally
from client_demo.load.thresholds import Judged, judge, read_threshold
from client_demo.load.violations import Violation
from protocol.content import ServerInfo

Verdict = Literal["fine", "thresholds", "unasked", "violations"]
EXIT_CODES: dict[Verdict, int] = {
    "fine": 0, "thresholds": 1, "unasked": 1, "violations": 3
}  # fmt: skip

BUSY_PERCENT = 85.0
LAG_MS = 50.0


class Times(Struct, frozen=True, kw_only=True):
    """The times of one measure.

    Attributes:
        fields: In ms, but for `count`; only that where there were none.
        curve: Pairs of a percentile and its value in ms, dense towards 100.
        hdr: The whole histogram in µs, in the interchange form of HdrHistogram
            (V2, compressed, base64).
    """

    fields: dict[str, float]
    curve: list[tuple[float, float]]
    hdr: str


class Round(Struct, frozen=True, kw_only=True):
    """One round, or all together.

    Attributes:
        seconds: How long it took.
        figures: Every figure by its name, as thresholds use them.
        times: By measure.
        counted: What is counted by code: names, then codes.
        series: What happened when.
        cpu: For each process how busy it was in each second, in percent of a core.
    """

    seconds: float
    figures: dict[str, float]
    times: dict[Measure, Times]
    counted: dict[str, dict[str, int]]
    series: Series
    cpu: list[list[float]]


class Report(Struct, frozen=True, kw_only=True):
    """A whole run.

    Attributes:
        format: The version of this form.
        verdict: What the exit code says too.
        scenario: What was run.
        url: Against what.
        server: What that said it is.
        started_at: RFC 3339.
        processes: Of the load tester.
        overall: All rounds together.
        rounds: Each alone.
        thresholds: Each and whether it held.
        violations: The first hundred of the oracle's findings.
        prompts: For each round the times of single prompts.
        notes: What to know before one believes the figures.
    """

    format: int = 1
    verdict: Verdict
    scenario: Scenario
    url: str
    server: ServerInfo
    started_at: str
    processes: int
    overall: Round
    rounds: list[Round]
    thresholds: list[Judged]
    violations: list[Violation]
    prompts: list[list[PromptTime]]
    notes: list[str]

    @property
    def exit_code(self) -> int:
        """0 fine, 1 a threshold broken or no message sent, 3 a violation found."""
        return EXIT_CODES[self.verdict]


class Finished(Struct, frozen=True, kw_only=True):
    """One round as it comes from the processes.

    Attributes:
        counts: Of each process.
        seconds: How long it took.
    """

    counts: list[Counts]
    seconds: float


def report(
    scenario: Scenario,
    finished: list[Finished],
    *,
    url: str,
    server: ServerInfo,
    started_at: str,
    notes: list[str],
) -> Report:
    """Sums up.

    Args:
        scenario: What was run.
        finished: Its rounds; one at the least.
        url: Against what.
        server: What that said it is.
        started_at: RFC 3339.
        notes: What was to be said before the run.
    """
    tallies = [_merged(one.counts) for one in finished]
    rounds = [
        _round(tally, one.seconds, [counts.cpu for counts in one.counts])
        for tally, one in zip(tallies, finished, strict=True)
    ]
    whole = _merged([tally.counts() for tally in tallies])
    processes = len(finished[0].counts)
    cpu = [
        [busy for one in finished for busy in one.counts[index].cpu]
        for index in range(processes)
    ]
    overall = _round(whole, sum(one.seconds for one in finished), cpu)
    judged = [
        judge(read_threshold(text), overall.figures) for text in scenario.thresholds
    ]
    verdict: Verdict = "fine"
    if overall.figures["oracle.violations"]:
        verdict = "violations"
    elif overall.figures["failed"] and not overall.figures["turns"]:
        verdict = "unasked"
    elif not all(one.held for one in judged):
        verdict = "thresholds"
    return Report(
        verdict=verdict,
        scenario=scenario,
        url=url,
        server=server,
        started_at=started_at,
        processes=processes,
        overall=overall,
        rounds=rounds,
        thresholds=judged,
        violations=whole.violations,
        prompts=[tally.prompts for tally in tallies],
        notes=[*notes, *_refusals(whole), *_notes(overall)],
    )


def _merged(counts: list[Counts]) -> Tally:
    whole = Tally(lambda: 0.0)
    for one in counts:
        whole.add(one)
    return whole


def _round(tally: Tally, seconds: float, cpu: list[list[float]]) -> Round:
    times: dict[Measure, Times] = {}
    for measure in MEASURES:
        histogram = tally.histogram(measure)
        if histogram is not None:
            times[measure] = Times(
                fields=histogram.fields_ms(),
                curve=histogram.curve_ms(),
                hdr=histogram.encode(),
            )
    return Round(
        seconds=round(seconds, 3),
        figures=tally.figures(seconds, cpu),
        times=times,
        counted=tally.by_code(),
        series=tally.series,
        cpu=cpu,
    )


def _refusals(whole: Tally) -> list[str]:
    """Returns what the server, or this end, said of each kind of error."""
    return [
        f"{number:,} {code}, the first of them: {whole.said[code]}"
        for code, number in whole.by_code()["errors"].items()
        if whole.said.get(code)
    ]


def _notes(overall: Round) -> list[str]:
    notes: list[str] = []
    figures = overall.figures
    if figures["cpu.max"] > BUSY_PERCENT:
        notes.append(
            f"A process of the load tester was {figures['cpu.max']:.0f} % busy: the"
            " times may be its own. Use more `--processes`, or another machine."
        )
    elif figures.get("lag_ms.p99", 0.0) > LAG_MS:
        notes.append(
            f"Timers of the load tester fired up to {figures['lag_ms.p99']:.0f} ms late"
            " (p99), though it was not busy: others use this machine, and the times"
            " are theirs too."
        )
    refused = overall.counted["errors"]
    if refused.get("too_many_turns"):
        notes.append(
            f"`too_many_turns` refused {counted(refused['too_many_turns'], 'message')}:"
            " raise the server's `max_active_turns` to test more than that."
        )
    if refused.get("rate_limited"):
        notes.append(
            f"`rate_limited` refused a frame or a connection"
            f" {counted(refused['rate_limited'], 'time')}: the figures are those of the"
            " limit. Raise it, or send less."
        )
    if figures["unfinished"]:
        notes.append(
            f"Still running at the end: {counted(figures['unfinished'], 'script')}; the"
            " oracle has not seen the whole of their conversations."
        )
    return notes
