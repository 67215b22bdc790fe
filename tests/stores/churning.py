"""A process that lets others store as the plan says, and die of it, and looks what is left.

Run as `python -m tests.stores.churning FOLDER SEED LIVES SPACE`, where SPACE says whether
files of text are mapped into memory (`kept`) or written (`not-kept`). Each life goes on where the
one before was cut off. Prints how many steps all of them took; ends with an error where
something is not as it has to be.
"""

import os
import random
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from tests.stores.churn import KEYS, Kept, State, marks, step
from tests.stores.samples import ALL, only
from wsserver.log.store import Write
from wsserver.stores.sqlite import commit, journal, recovery, text_files
from wsserver.stores.sqlite.store import SqliteStore
from wsserver.stores.sqlite.text_files import TextFiles

LONGEST_SECONDS = 20
_MOVING = [module.__file__ for module in (commit, journal, recovery, text_files)]

_decode = msgspec.msgpack.Decoder(dict[str, Kept]).decode
_ends = msgspec.msgpack.Decoder(tuple[int, ...]).decode


def main(folder: Path, seed: int, lives: int, space: str) -> None:
    text_files.keeps_space = lambda _: space == "kept"
    text_files.FILE_BYTES = 16_384
    journal.FULL_BYTES = 3_000
    journal.MOVED_AT_ONCE = 1  # so that others' commits come amid each move
    path, number, steps = folder / "s.db", 1, 0
    state: State = {}
    known: list[State] = []  # since a life got as far as to empty the files
    for _ in range(lives):
        seen = live(path, seed, number)
        for done in range(number, seen + 1):
            state = step(seed, done, state).after
            steps += 1
            known = []
        amid = step(seed, seen + 1, state)
        known += [state, amid.after]
        check_text_files(path, known)
        found = look(path, folder / "copy")
        assert amid.fits(state, found), (seen, state, found)
        state, number = found, seen + 2
    sys.stdout.write(f"{steps}\n")


def live(path: Path, seed: int, number: int) -> int:
    """Lets a process store from a step on until it is killed; returns the last it saw."""

    def run(writing: int) -> None:
        chance = random.Random(f"{seed}.{number}")
        if chance.random() < 0.5:
            die_before_clearing(chance.randrange(20))
        else:
            die_after_lines(chance.randrange(8_000))
        anyio.run(follow, path, seed, number, writing)

    said, status = forked(run)
    assert os.WIFSIGNALED(status), "see standard error"
    assert os.WTERMSIG(status) == signal.SIGKILL, "it hung"
    seen = said.split()
    return int(seen[-1]) if seen else number - 1


def look(path: Path, copy: Path) -> State:
    """Returns what the next server finds, in a copy."""
    said, status = forked(lambda writing: found(path, copy, writing))
    assert status == 0, "see standard error"
    return _decode(said)


def forked(run: Callable[[int], None]) -> tuple[bytes, int]:
    """Runs something in a process of its own, which gets a pipe to write to.

    This process never has a second thread: what that held at the fork would be held
    for ever. Returns what was written, and the status as of `os.waitpid`.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(LONGEST_SECONDS)
        try:
            run(writing)
        except BaseException:  # noqa: BLE001 - it ends here
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read()
    return said, os.waitpid(child, 0)[1]


def die_after_lines(lines: int) -> None:
    """Has this process kill itself after so many lines of what moves text in threads."""

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal lines
        if frame.f_code.co_filename not in _MOVING:
            return None
        lines -= event == "line"
        if lines < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    threading.settrace(trace)


def die_before_clearing(times: int) -> None:
    """Has this process kill itself where rows are written and text is still there."""
    clear = TextFiles.clear

    def dies(files: TextFiles) -> None:
        nonlocal times
        times -= 1
        if times < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        clear(files)

    TextFiles.clear = dies


async def follow(path: Path, seed: int, number: int, says: int) -> None:
    store = await anyio.to_thread.run_sync(opened, path)
    state = await kept(store)
    # Text is taken at once of conversations that were committed by this process.
    writes = [Write(key=key, meta=each.meta) for key, each in state.items()]
    await store.commit(writes, 0.0)
    while True:
        now = step(seed, number, state)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.commit, now.writes, float(number))
            for key, entry in now.tokens:
                while not store.put_text(key, entry):  # both files are full
                    await anyio.lowlevel.checkpoint()
        os.write(says, b"%d\n" % number)
        state, number = now.after, number + 1


def opened(path: Path) -> SqliteStore:
    return SqliteStore(path, durability="process", boot="boot-1")


async def kept(store: SqliteStore) -> State:
    """Returns what a store has, after a look at each of its entries."""
    state: dict[str, Kept] = {}
    for key in KEYS:
        meta = await store.meta(key)
        if meta is None:
            assert not await store.read(key, 0, ALL), key
            continue
        found = state[key] = Kept(
            epoch=meta.epoch,
            head=meta.head,
            oldest=meta.oldest,
            ends=_ends(meta.state),
            live=meta.live,
        )
        entries = only(await store.read(key, 0, ALL), 0)
        assert entries == found.entries(found.oldest - 1), (key, found, entries)
    assert sorted(await store.live()) == [key for key in state if state[key].live]
    return state


def found(path: Path, copy: Path, says: int) -> None:
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for file in path.parent.glob("s.db*"):
        shutil.copy(file, copy)

    async def state() -> State:
        store = await anyio.to_thread.run_sync(opened, copy / path.name)
        try:
            assert not store.epochs_renewed
            return await kept(store)
        finally:
            await store.close()

    os.write(says, msgspec.msgpack.encode(anyio.run(state)))
    assert sorted(file.name for file in copy.iterdir()) == ["s.db", "s.db.lock"]


def check_text_files(path: Path, states: Sequence[State]) -> None:
    """Raises if there are bytes of text that none of the states has."""
    kept = [each for state in states for each in state.values()]
    oldest = {each.epoch: each.oldest for each in reversed(kept)}
    for file in path.parent.glob("s.db-text?"):
        for epoch, seq in marks(file.read_bytes()):
            assert epoch in oldest, f"{file} has {epoch}, which was deleted"
            assert seq >= oldest[epoch], f"{file} has {epoch}.{seq}, which was trimmed"


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
