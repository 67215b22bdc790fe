"""Counts what one process of a load run sees; tallies of many make one."""

from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from client_demo.load.figures import COUNTED, MEASURES, TOTALS, Measure
from client_demo.load.histogram import Histogram
from client_demo.load.series import Series
from client_demo.load.sketch import nearest
from client_demo.load.violations import Violation

_MOST_VIOLATIONS = 100


class PromptTime(Struct, frozen=True, kw_only=True):
    """How one prompt of a set was answered once.

    Attributes:
        prompt: Its name.
        language: Of its text.
        ttft_ms: Time to first token; null where none came.
        tpot_ms: Time per output token; null where there was one at the most.
        turn_ms: From `send` to `done`.
        input_tokens: As the server counted.
        output_tokens: As the server counted.
        status: How the turn ended.
    """

    prompt: str
    language: str
    ttft_ms: float | None
    tpot_ms: float | None
    turn_ms: float
    input_tokens: int
    output_tokens: int
    status: str


class Counts(Struct, kw_only=True):
    """A tally as it travels between processes.

    Attributes:
        histograms: By measure, each encoded.
        counters: Totals by name; what is counted by code as `NAME.CODE`.
        series: What happened when.
        violations: The first of them.
        said: What the first error of each code said; empty for nothing.
        prompts: Times of single prompts.
        cpu: How busy this process was in each second, in percent of a core.
    """

    histograms: dict[Measure, str]
    counters: dict[str, int]
    series: Series
    violations: list[Violation]
    said: dict[str, str]
    prompts: list[PromptTime]
    cpu: list[float]


class Tally:
    """Counts while users are at it.

    Attributes:
        counters: Totals by name; what is counted by code as `NAME.CODE`.
        series: What happened when.
        violations: The first of them.
        said: What the first error of each code said; empty for nothing.
        prompts: Times of single prompts.
        cpu: How busy this process was in each second, in percent of a core.
        active: Users that are at it now.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begins with nothing.

        Args:
            clock: Gives seconds since the start of the run.
        """
        self.counters: Counter[str] = Counter()
        self.series = Series(buckets=[])
        self.violations: list[Violation] = []
        self.said: dict[str, str] = {}
        self.prompts: list[PromptTime] = []
        self.cpu: list[float] = []
        self.active = 0
        self.clock = clock
        self._histograms: dict[Measure, Histogram] = {}

    def time(self, measure: Measure, seconds: float) -> None:
        """Counts a time."""
        histogram = self._histograms.get(measure)
        if histogram is None:
            histogram = self._histograms[measure] = Histogram()
        histogram.record(seconds)

    def histogram(self, measure: Measure) -> Histogram | None:
        """Returns the times of a measure; None for none."""
        return self._histograms.get(measure)

    def count(self, name: str, number: int = 1) -> None:
        """Counts by a name of `figures`."""
        self.counters[name] += number

    def first_token(self, seconds: float) -> None:
        """Counts the time to a first token."""
        self.time("ttft", seconds)
        ttft_ms = self.series.at(self.clock()).ttft_ms
        value = nearest(seconds * 1000)
        ttft_ms[value] = ttft_ms.get(value, 0) + 1

    def tokens(self, number: int) -> None:
        """Counts pieces of answer."""
        self.counters["tokens"] += number
        self.series.at(self.clock()).tokens += number

    def error(self, code: str, message: str = "") -> None:
        """Counts an error by its code; keeps what the first of each said."""
        self.said.setdefault(code, message)
        self.counters[f"errors.{code}"] += 1
        self.series.at(self.clock()).errors += 1

    def ended(self, status: str, reason: str | None) -> None:
        """Counts the end of a turn."""
        self.counters["ended"] += 1
        self.counters["incomplete"] += status == "incomplete"
        self.counters[f"statuses.{status}" + (f"/{reason}" if reason else "")] += 1
        statuses = self.series.at(self.clock()).statuses
        statuses[status] = statuses.get(status, 0) + 1

    def violation(self, violation: Violation) -> None:
        """Counts a violation; keeps the first."""
        self.counters[f"violations.{violation.kind}"] += 1
        if len(self.violations) < _MOST_VIOLATIONS:
            self.violations.append(violation)

    def user(self, step: int) -> None:
        """A user comes (1) or goes (-1)."""
        self.active += step
        bucket = self.series.at(self.clock())
        bucket.users = max(bucket.users, self.active)

    def counts(self) -> Counts:
        """Returns what has been counted so far."""
        return Counts(
            histograms={
                name: histogram.encode() for name, histogram in self._histograms.items()
            },
            counters=dict(self.counters),
            series=self.series,
            violations=self.violations,
            said=self.said,
            prompts=self.prompts,
            cpu=self.cpu,
        )

    def add(self, counts: Counts) -> None:
        """Adds what another process has counted, all but how busy it was."""
        for name, encoded in counts.histograms.items():
            if name in self._histograms:
                self._histograms[name].add(encoded)
            else:
                self._histograms[name] = Histogram(encoded)
        self.counters.update(counts.counters)
        self.series.add(counts.series)
        self.violations = (self.violations + counts.violations)[:_MOST_VIOLATIONS]
        self.said = counts.said | self.said
        self.prompts += counts.prompts

    def sum_of(self, name: str) -> int:
        """Adds up what is counted by code, such as `errors`."""
        return sum(
            count for key, count in self.counters.items() if key.startswith(f"{name}.")
        )

    def figures(self, seconds: float, cpu: list[list[float]]) -> dict[str, float]:
        """Returns every figure by its name, as thresholds use them.

        Args:
            seconds: How long the run took.
            cpu: How busy each process was in each second.
        """
        turns, ended = self.counters["turns"], self.counters["ended"]
        busy = [one for process in cpu for one in process]
        found: dict[str, float] = {
            "errors.rate": self.sum_of("errors") / max(turns, 1),
            "errors.count": self.sum_of("errors"),
            "oracle.violations": self.sum_of("violations"),
            "completed.rate": self.counters["statuses.completed"] / max(ended, 1),
            "incomplete.rate": self.counters["incomplete"] / max(ended, 1),
            "tokens.per_second": self.counters["tokens"] / max(seconds, 1e-9),
            "turns.per_second": ended / max(seconds, 1e-9),
            "cpu.mean": sum(busy) / max(len(busy), 1),
            "cpu.max": max(busy, default=0.0),
        }
        for measure in MEASURES:
            histogram = self._histograms.get(measure)
            fields = {"count": 0.0} if histogram is None else histogram.fields_ms()
            for field, value in fields.items():
                found[f"{measure}_ms.{field}"] = value
        counted = {name: float(n) for name, n in self.counters.items()}
        return {**dict.fromkeys(TOTALS, 0.0), **counted, **found}

    def by_code(self) -> dict[str, dict[str, int]]:
        """Returns what is counted by code: the names, then the codes."""
        found: dict[str, dict[str, int]] = {name: {} for name in COUNTED}
        for key, number in sorted(self.counters.items()):
            name, dot, code = key.partition(".")
            if dot and name in found:
                found[name][code] = number
        return found
