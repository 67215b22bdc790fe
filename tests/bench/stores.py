"""Measures stores: `python -m tests.bench.stores [FOLDER]`.

Prints what a commit costs by its size, what handing over to the writing thread
costs, and how long a long conversation takes to read. Not a test.
"""

import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter

import anyio
import anyio.to_thread
from rich.console import Console
from rich.table import Table

from wsserver.log.entry import Entry, compact, text_entry
from wsserver.log.store import Meta, Store, Write
from wsserver.stores import Durability
from wsserver.stores.memory import MemoryStore
from wsserver.stores.sqlite.store import SqliteStore

STATE = b"x" * 300
ALL = 2**40


def meta(head: int) -> Meta:
    return Meta(epoch="e", head=head, oldest=1, live=True, state=STATE)


def tokens(first: int, count: int) -> list[Entry]:
    return [text_entry("delta", first + n, 1, " token") for n in range(count)]


def percentiles(seconds: list[float]) -> list[str]:
    ordered = sorted(seconds)
    return [f"{ordered[int(len(ordered) * at)] * 1e6:,.0f}" for at in (0.5, 0.99)]


async def timed(call: Callable[[], Awaitable[object]]) -> float:
    begin = perf_counter()
    await call()
    return perf_counter() - begin


async def commits(store: Store, conversations: int, group: int) -> list[float]:
    heads, seconds = 0, list[float]()
    for _ in range(max(40, 3000 // conversations // group)):
        entries = tokens(heads + 1, group)
        heads += group
        writes = [
            Write(
                key=f"{conversations}/{group}-{index}",
                meta=meta(heads),
                entries=entries,
            )
            for index in range(conversations)
        ]
        seconds.append(await timed(lambda writes=writes: store.commit(writes, 1.0)))
    return seconds


async def reads(store: Store) -> tuple[float, float]:
    """Returns the milliseconds for 5,000 tokens in 5,000 rows, and compacted."""
    key, everything = "read/1", tokens(1, 5000)
    for entry in everything:
        await store.commit([Write(key=key, meta=meta(entry.seq), entries=[entry])], 1.0)
    loose = [await timed(lambda: store.read(key, 0, ALL)) for _ in range(9)]
    await store.commit(
        [Write(key=key, meta=meta(5000), compacted=compact(everything))], 1.0
    )
    joined = [await timed(lambda: store.read(key, 0, ALL)) for _ in range(9)]
    return statistics.median(loose) * 1e3, statistics.median(joined) * 1e3


async def measure(name: str, store: Store, console: Console) -> None:
    table = Table(title=name)
    for column in (
        "conversations",
        "entries each",
        "commit µs p50",
        "p99",
        "mean µs per entry",
    ):
        table.add_column(column, justify="right")
    for conversations in (1, 50):
        for group in (1, 10, 100):
            seconds = await commits(store, conversations, group)
            each = statistics.fmean(seconds) / conversations / group * 1e6
            table.add_row(
                str(conversations), str(group), *percentiles(seconds), f"{each:.2f}"
            )
    console.print(table)
    loose, joined = await reads(store)
    console.print(
        f"5,000 tokens: {loose:.2f} ms from 5,000 rows, {joined:.2f} ms compacted"
    )
    if isinstance(store, SqliteStore):
        calls = [await timed(lambda: store._writer.call(int)) for _ in range(5000)]
        console.print("hand-over µs p50, p99:", *percentiles(calls))


async def main(folder: Path) -> None:
    console = Console()
    await measure("memory", MemoryStore(), console)
    durabilities: tuple[Durability, ...] = ("process", "power")
    for durability in durabilities:
        path = folder / f"{durability}.db"
        store = await anyio.to_thread.run_sync(
            lambda path=path, durability=durability: SqliteStore(
                path, durability=durability, boot=None
            )
        )
        await measure(f"sqlite, {durability}", store, console)
        await store.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if sys.argv[1:] else None) as made:
        anyio.run(main, Path(made), backend_options={"use_uvloop": True})
