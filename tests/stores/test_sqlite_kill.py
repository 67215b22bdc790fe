"""A server that is killed: all that it saw stored is there, and only whole commits."""

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from tests.stores.committing import COMPACTED_EVERY, KEYS, head, text
from tests.stores.samples import only
from tests.stores.sqlite_rig import opened
from wsserver.log.store import StoreError


@contextmanager
def committing(path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", "tests.stores.committing", str(path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def whole(step: int, heads: list[int]) -> bool:
    """Whether these are the heads after a step, or amid the next if that may be."""
    most = [head(step + 1, index) for index in range(len(KEYS))]
    least = [head(step, index) for index in range(len(KEYS))]
    if heads == least:
        return True
    amid = all(
        low <= at <= high for low, at, high in zip(least, heads, most, strict=True)
    )
    return amid and (step + 1) % COMPACTED_EVERY != 0


def killed_after(path: Path, steps: int) -> int:
    """Lets a process store, kills it; returns the last step that it saw."""
    with committing(path) as process:
        assert process.stdout is not None
        for _ in range(steps):
            assert process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split("\n")[:-1]
    assert process.returncode == -signal.SIGKILL
    return int(rest[-1]) if rest else steps


@pytest.mark.parametrize("about", [1, 20, 150, 400])
def test_each_step_that_was_seen_outlives_a_kill(tmp_path: Path, about: int) -> None:
    path = tmp_path / "s.db"
    seen = killed_after(path, about + random.randrange(20))

    async def look() -> None:
        async with opened(path) as store:
            assert not store.epochs_renewed
            metas = [await store.meta(key) for key in KEYS]
            assert all(metas), "the first commit was seen"
            heads = [meta.head for meta in metas if meta]
            steps = [n for n in range(seen + 9) if whole(n, heads)]
            assert max(steps, default=0) >= seen
            for key, last in zip(KEYS, heads, strict=True):
                entries = only(await store.read(key, 0, 2**40), 0)
                assert [entry.seq for entry in entries] == list(range(1, last + 1))
                assert all(entry.text() == text(entry.seq) for entry in entries)
            assert sorted(await store.live()) == KEYS

    anyio.run(look)


def test_the_file_of_a_living_process_is_refused_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "s.db"

    async def look() -> None:
        async with opened(path):
            pass

    with committing(path) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        with pytest.raises(StoreError, match=f"process {process.pid}"):
            anyio.run(look)
    anyio.run(look)
