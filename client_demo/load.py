"""`load`: many conversations at once, and what a user would have felt.

Times are taken here, where the events are read: from the send to the first
piece of answer, between pieces, and to the end.
"""

import math
from array import array
from collections import Counter
from contextlib import AsyncExitStack
from secrets import token_hex

import anyio
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from client_demo.chat import Chat
from client_demo.client import Client, connect
from client_demo.errors import ClientError, CodedError
from client_demo.session import Notice
from protocol.client_events import Disconnected
from protocol.events import TextEvent, ToolCallEvent

_QUANTILES = (0.5, 0.9, 0.99, 1.0)


class Spread(Struct, frozen=True, kw_only=True):
    """How times are spread, in milliseconds; NaN where there were none."""

    count: int
    p50: float
    p90: float
    p99: float
    max: float


class Report(Struct, frozen=True, kw_only=True):
    """What a load run found.

    Attributes:
        ttft: From the send to the first piece of text or call, in ms.
        gaps: Between pieces of text as they arrive, in ms.
        total: From the send to the end, in ms.
        statuses: Turns by how they ended; errors by their codes.
        disconnects: Connections lost.
        unproven: Turns whose text is not the server's to the byte.
        characters: Of answer text.
        seconds: How long it all took.
    """

    ttft: Spread
    gaps: Spread
    total: Spread
    statuses: dict[str, int]
    disconnects: int
    unproven: int
    characters: int
    seconds: float

    @property
    def clean(self) -> bool:
        """Whether every turn was completed and proven."""
        return not self.unproven and set(self.statuses) <= {"completed"}


class Load:
    """Counts while conversations run."""

    def __init__(self) -> None:
        self._ttft = array("d")
        self._gaps = array("d")
        self._total = array("d")
        self._statuses: Counter[str] = Counter()
        self._disconnects = 0
        self._unproven = 0
        self._characters = 0

    def noticed(self, notice: Notice) -> None:
        """Counts lost connections."""
        self._disconnects += isinstance(notice, Disconnected)

    async def converse(
        self, client: Client, *, prompt: str, turns: int, model: str | None
    ) -> None:
        """One conversation from its making to its deletion."""
        try:
            chat = await client.open(f"load-{token_hex(8)}", model=model)
            for _ in range(turns):
                await self._turn(chat, prompt)
            await chat.delete()
        except CodedError as error:
            self._statuses[error.code] += 1
        except ClientError as error:
            self._statuses[type(error).__name__] += 1

    def report(self, seconds: float) -> Report:
        """Sums up."""
        return Report(
            ttft=_spread(self._ttft),
            gaps=_spread(self._gaps),
            total=_spread(self._total),
            statuses=dict(self._statuses),
            disconnects=self._disconnects,
            unproven=self._unproven,
            characters=self._characters,
            seconds=seconds,
        )

    async def _turn(self, chat: Chat, prompt: str) -> None:
        clock = anyio.current_time
        sent_at = clock()
        last_at = None
        turn = chat.send(prompt)
        async for event in turn:
            if isinstance(event, (TextEvent, ToolCallEvent)):
                now = clock()
                if last_at is None:
                    self._ttft.append(now - sent_at)
                else:
                    self._gaps.append(now - last_at)
                last_at = now
        self._total.append(clock() - sent_at)
        done = await turn.wait()
        self._statuses[done.status] += 1
        if turn.view is not None:
            self._unproven += not turn.view.proven
        self._characters += len(turn.text)


async def load(
    url: str,
    *,
    token: str | None,
    conversations: int,
    sockets: int,
    turns: int,
    prompt: str,
    model: str | None,
) -> Report:
    """Runs all conversations at once, spread over the sockets.

    Raises:
        ClientError: A first connection could not be made.
    """
    run = Load()
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                connect(url, token=token, notify=run.noticed)
            )
            for _ in range(min(sockets, conversations))
        ]
        began = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            for number in range(conversations):
                client = clients[number % len(clients)]
                tasks.start_soon(
                    lambda client=client: run.converse(
                        client, prompt=prompt, turns=turns, model=model
                    )
                )
        seconds = anyio.current_time() - began
    return run.report(seconds)


def show(report: Report, console: Console) -> None:
    """Prints a report as a table."""
    table = Table("ms", "count", "p50", "p90", "p99", "max")
    for name in ("ttft", "gaps", "total"):
        spread: Spread = getattr(report, name)
        times = (spread.p50, spread.p90, spread.p99, spread.max)
        table.add_row(name, str(spread.count), *(f"{time:.1f}" for time in times))
    console.print(table)
    turns = ", ".join(f"{count} {name}" for name, count in report.statuses.items())
    console.print(
        f"{turns}; {report.disconnects} disconnects, {report.unproven} unproven;"
        f" {report.characters} characters in {report.seconds:.1f} s"
    )


def _spread(times_s: "array[float]") -> Spread:
    times_ms = sorted(1000 * time for time in times_s)
    p50, p90, p99, most = (_quantile(times_ms, part) for part in _QUANTILES)
    return Spread(count=len(times_ms), p50=p50, p90=p90, p99=p99, max=most)


def _quantile(ascending: list[float], part: float) -> float:
    if not ascending:
        return math.nan
    return ascending[max(0, math.ceil(part * len(ascending)) - 1)]
