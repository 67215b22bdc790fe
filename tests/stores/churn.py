"""A plan of what conversations go through, and what is to be left of them.

They begin, stream, end turns, are trimmed, deleted and begun anew under the same key, some
of it at the same time. Each token names its conversation's epoch and its number, so that
whose it is can be told wherever its bytes turn up.
"""

import random
import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct, structs

from wsserver.log.entry import Entry, compact, text_entry
from wsserver.log.store import Meta, Write

KEYS = [f"a/{number}" for number in range(1, 7)]

_MARK = re.compile(rb"<(\w+)\.(\d+)>")


class Kept(Struct, frozen=True, kw_only=True):
    """What is left of a conversation.

    Attributes:
        epoch: Of its own.
        head: The last number.
        oldest: The first number that is kept.
        ends: The last numbers of turns that are over.
        live: Whether another turn runs.
    """

    epoch: str
    head: int = 0
    oldest: int = 1
    ends: tuple[int, ...] = ()
    live: bool = True

    @property
    def meta(self) -> Meta:
        return Meta(
            epoch=self.epoch,
            head=self.head,
            oldest=self.oldest,
            live=self.live,
            state=msgspec.msgpack.encode(self.ends),
        )

    def entry(self, seq: int) -> Entry:
        """Returns what stands under a number."""
        text = f"<{self.epoch}.{seq}>" + "x" * (1_500 if seq % 37 == 0 else seq % 50)
        if seq in self.ends:
            return Entry("done", seq, seq, 1, text.encode())
        return text_entry("delta", seq, 1, text)

    def entries(self, after: int) -> list[Entry]:
        return [self.entry(seq) for seq in range(after + 1, self.head + 1)]


State = Mapping[str, Kept]
"""What is kept, by key."""


class Step(Struct, frozen=True, kw_only=True):
    """What happens at a time.

    Attributes:
        writes: One commit.
        tokens: Text of other conversations that comes meanwhile.
        after: What is kept then.
    """

    writes: list[Write]
    tokens: list[tuple[str, Entry]]
    after: State

    def fits(self, before: State, found: State) -> bool:
        """Whether it can be left so, should the process die amid the step."""
        written = {write.key for write in self.writes}
        streamed = {key for key, _ in self.tokens}
        return any(
            all(found.get(key) == state.get(key) for key in written)
            for state in (before, self.after)
        ) and all(
            key in found
            and before[key].head <= found[key].head <= self.after[key].head
            and structs.replace(found[key], head=before[key].head) == before[key]
            if key in streamed
            else found.get(key) == before.get(key)
            for key in set(KEYS) - written
        )


def step(seed: int, number: int, before: State) -> Step:
    """Returns a step of the plan; no two numbers begin conversations of one epoch."""
    chance = random.Random(f"{seed}.{number}")
    after = dict(before)
    writes: list[Write] = []
    for key in chance.sample(KEYS, chance.choice([0, 0, 1, 2, 3])):
        kept, written = _next(key, before.get(key), f"e{seed}n{number}", chance)
        writes += written
        after.pop(key, None)
        if kept is not None:
            after[key] = kept
    busy = {write.key for write in writes}
    live = [key for key, kept in before.items() if kept.live and key not in busy]
    tokens: list[tuple[str, Entry]] = []
    for key in chance.choices(live, k=chance.randrange(25)) if live else ():
        after[key] = structs.replace(after[key], head=after[key].head + 1)
        tokens.append((key, after[key].entry(after[key].head)))
    return Step(writes=writes, tokens=tokens, after=after)


def _next(
    key: str, kept: Kept | None, epoch: str, chance: random.Random
) -> tuple[Kept | None, list[Write]]:
    """Returns what becomes of a conversation, and how."""
    gone: list[Write] = []
    if kept is not None and chance.random() < 0.25:
        gone, kept = [Write(key=key, delete=True)], None
        if chance.random() < 0.3:
            return None, gone
    if kept is None:
        kept = Kept(epoch=f"{epoch}k{key[-1]}")
    stored, through = kept.head, 0
    if kept.ends and chance.random() < 0.4:
        through = chance.choice(kept.ends)
        left = tuple(end for end in kept.ends if end > through)
        kept = structs.replace(kept, oldest=through + 1, ends=left)
    over = kept.ends[-1] if kept.ends else kept.oldest - 1
    head = stored + chance.randrange(1, 4)
    kept = structs.replace(kept, head=head, live=True)
    if chance.random() < 0.4:
        kept = structs.replace(kept, ends=(*kept.ends, head), live=False)
    write = Write(
        key=key,
        meta=kept.meta,
        entries=kept.entries(stored),
        compacted=() if kept.live else compact(kept.entries(over)),
        trim_through=through,
    )
    return kept, [*gone, write]


def marks(content: bytes) -> set[tuple[str, int]]:
    """Returns epochs and numbers of all entries whose bytes are in a file."""
    return {(epoch.decode(), int(seq)) for epoch, seq in _MARK.findall(content)}
