"""What is shown while a run goes on."""

from collections import Counter
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from client_demo.load.histogram import Histogram
from client_demo.load.plain import plain
from client_demo.load.worker import Tick


class Progress:
    """A few lines that follow the run; nothing where it is no terminal."""

    def __init__(
        self, console: Console, title: str, long_seconds: float | None
    ) -> None:
        """Takes what does not change.

        Args:
            console: Where to show.
            title: Of the run.
            long_seconds: How long the stages last; None for until it is done.
        """
        self._title = title
        self._long_seconds = long_seconds
        self._ticks: dict[int, Tick] = {}
        self._before: Counter[str] = Counter()
        self._live = Live(
            console=console, transient=True, refresh_per_second=4, auto_refresh=False
        )
        self._shown = console.is_terminal

    def __enter__(self) -> Self:
        if self._shown:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._live.stop()

    def tick(self, process: int, tick: Tick) -> None:
        """Takes how a process stands."""
        self._ticks[process] = tick
        if self._shown and process == min(self._ticks):
            self._live.update(self.table(), refresh=True)

    def table(self) -> Table:
        """Returns what is shown now."""
        ticks = self._ticks.values()
        counters: Counter[str] = Counter()
        ttft = Histogram()
        for tick in ticks:
            counters.update(tick.counters)
            if tick.ttft is not None:
                ttft.add(tick.ttft)
        new = counters - self._before
        self._before = counters
        at_seconds = max(tick.at_seconds for tick in ticks)
        of = "" if self._long_seconds is None else f" of {self._long_seconds:.0f}"
        table = Table(title=f"{plain(self._title)}: {at_seconds:.0f}{of} s", box=None)
        for name in ("users", "tokens/s", "ended/s", "ttft p50", "p99", "errors"):
            table.add_column(name, justify="right")
        table.add_column("violations", justify="right")
        table.add_column("busy", justify="right")
        fields = ttft.fields_ms()
        table.add_row(
            str(sum(tick.users for tick in ticks)),
            f"{new['tokens']:,}",
            f"{new['ended']:,}",
            f"{fields.get('p50', 0):.0f}",
            f"{fields.get('p99', 0):.0f}",
            f"{_sum(counters, 'errors.'):,}",
            f"{_sum(counters, 'violations.'):,}",
            f"{max(tick.cpu for tick in ticks):.0f} %",
        )
        return table


def _sum(counters: Counter[str], prefix: str) -> int:
    return sum(n for name, n in counters.items() if name.startswith(prefix))
