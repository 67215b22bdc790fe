"""A process that stores until it is killed, and prints each step that it saw.

Run as `python -m tests.stores.committing FILE`. Step number n appends some tokens
to each conversation: text that goes to the store at once where it takes it, and every
few steps a commit of all that compacts the turn so far, so that a reader can tell by
the heads which are whole. Text is moved to rows often.
"""

import sys
from itertools import count
from pathlib import Path

import anyio
import anyio.lowlevel

from wsserver.log.entry import Entry, compact, text_entry
from wsserver.log.store import Meta, Write
from wsserver.stores.sqlite import journal
from wsserver.stores.sqlite.store import SqliteStore

KEYS = ["a/1", "a/2", "a/3"]
COMPACTED_EVERY = 7


def text(seq: int) -> str:
    return f"token {seq} " * (1 + seq % 40)


def head(number: int, index: int) -> int:
    """Returns the head of conversation `index` after commit `number`."""
    return sum(1 + (n + index) % 5 for n in range(1, number + 1))


def number(heads: list[int]) -> int:
    """Returns after which step the heads of all conversations are these."""
    at = next(n for n in count() if head(n, 0) >= heads[0])
    assert heads == [head(at, index) for index in range(len(KEYS))], "half a commit"
    return at


def write(number: int, index: int) -> Write:
    begin, end = head(number - 1, index), head(number, index)

    def entries(after: int) -> list[Entry]:
        return [text_entry("delta", n, 1, text(n)) for n in range(after + 1, end + 1)]

    joined: list[Entry] = []
    if number % COMPACTED_EVERY == 0:
        joined = compact(entries(head(number - COMPACTED_EVERY, index)))
    return Write(
        key=KEYS[index],
        meta=Meta(epoch="e1", head=end, oldest=1, live=True, state=b"a state"),
        entries=entries(begin),
        compacted=joined,
    )


async def main(path: Path) -> None:
    journal.FULL_BYTES = 2_000
    journal.MOVED_AT_ONCE = 2
    store = SqliteStore(path, durability="process", boot="boot-1")
    for n in count(1):
        writes = [write(n, index) for index in range(len(KEYS))]
        if n == 1 or n % COMPACTED_EVERY == 0:
            await store.commit(writes, float(n))
        else:
            for each in writes:
                for entry in each.entries:
                    while not store.put_text(each.key, entry):
                        await (
                            anyio.lowlevel.checkpoint()
                        )  # the files are full and on their way
        sys.stdout.write(f"{n}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
