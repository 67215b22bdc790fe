"""Gathered text, whatever comes and when: each frame against the whole log."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.connections.characters import pieces, starts
from tests.connections.gathered import DELAY, TICK, Sent
from tests.connections.journal import (
    Disk,
    Journal,
    desk,
    numbers,
    play,
    settle,
)
from wsserver.connections.gathering import LONGEST_SECONDS, QUIET_SECONDS
from wsserver.connections.graphemes import looks_whole
from wsserver.log.entry import TEXT_KINDS

LATE = 1.5 * TICK
"""An alarm rings at the next whole tick, and floats lose a little."""

KINDS = {"say": "delta", "think": "reasoning", "call": "tool_delta"}

steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.lists(pieces, min_size=1, max_size=3)),
        st.tuples(st.just("think"), pieces),
        st.tuples(st.just("call"), pieces),
        st.tuples(st.just("call, say"), pieces),
        st.tuples(st.just("wait"), st.sampled_from([0.01, 0.1, 0.19, 0.21, 0.7, 1.3])),
    ),
    max_size=40,
)


def runs(journal: Journal) -> Iterator[list[tuple[int, str, str]]]:
    """Yields the runs of text of one kind: number, kind, text."""
    entries = [
        e.part(n - 1, n) for e in journal.log.tail(1) for n in range(e.first, e.seq + 1)
    ]
    for kind, run in groupby(entries, key=lambda entry: entry.kind):
        yield [(entry.seq, kind, entry.text()) for entry in run]


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=steps,
    delay=st.sampled_from([0.0, 0.05, DELAY, 1.5]),
    tool_deltas=st.booleans(),
    after=st.integers(0, 6),
    forgotten=st.booleans(),
    budget=st.sampled_from([None, 1024]),
)
def test_whatever_comes_and_when(
    steps: list[tuple[str, Any]],
    delay: float,
    tool_deltas: bool,
    after: int,
    forgotten: bool,
    budget: int | None,
) -> None:
    play("trio", story, steps, delay, tool_deltas, after, forgotten, budget)


async def story(
    steps: list[tuple[str, Any]],
    delay: float,
    tool_deltas: bool,
    after: int,
    forgotten: bool,
    budget: int | None,
) -> None:
    journal = await Journal(Disk()).told("before ", "👨", "\u200d👩", "🇩", "🇪", "🇫")
    if forgotten:
        journal = await journal.forgotten()
    stored_at = dict.fromkeys(range(1, 7), -10.0)
    async with desk() as d:
        sent = Sent(d)
        view = d.view(
            journal,
            after=after,
            max_delay_seconds=delay,
            tool_deltas=tool_deltas,
            window_bytes=budget,
        )
        await settle()
        for what, value in steps:
            if what == "wait":
                await anyio.sleep(value)
                continue
            for one in what.split(", "):
                journal.say(*value, kind=KINDS[one])
            await journal.commit()
            for seq in range(max(stored_at) + 1, journal.log.stored + 1):
                stored_at[seq] = anyio.current_time()
            await settle()
            assert view.sent_through() == (numbers(sent.events) or [after])[-1]
            view.ack(view.position)
        await anyio.sleep(delay + QUIET_SECONDS + TICK)
        view.ack(view.position)
        await anyio.sleep(TICK)
        assert numbers(sent.events) == list(range(after + 1, journal.log.head + 1))
        loaded = await Journal.forgotten(journal)
        await loaded.log.load_tail(1)
        if budget is None:
            check(loaded, sent, stored_at, delay, after, tool_deltas)


def check(
    journal: Journal,
    sent: Sent,
    stored_at: dict[int, float],
    delay: float,
    after: int,
    tool_deltas: bool,
) -> None:
    """Checks each frame against the whole log and the times of its numbers."""
    sent_at = {
        n: (at, frame["seq"])
        for at, frame in sent.frames
        if frame["type"] in TEXT_KINDS
        for n in range(frame.get("first", frame["seq"]), frame["seq"] + 1)
    }
    for run in runs(journal):
        run = [one for one in run if one[0] > after]
        if not run or (run[0][1] == "tool_delta" and not tool_deltas):
            continue
        last = run[-1][0]
        begin = 0
        while begin < len(run):
            at, seq = sent_at[run[begin][0]]
            end = next(i for i, one in enumerate(run) if one[0] == seq) + 1
            whole = "".join(part for _, _, part in run[begin:])
            frame = "".join(part for _, _, part in run[begin:end])
            oldest = stored_at[run[begin][0]]
            if seq != last and len(frame) not in starts(whole):
                came = [stored_at[n] for n, _, _ in run if stored_at[n] <= at]
                quiet = at - max(came) >= delay + QUIET_SECONDS - delay / 8 - TICK
                longest = at - oldest >= delay + LONGEST_SECONDS - delay / 8 - TICK
                own = stored_at[seq]
                seldom = looks_whole(frame) and at - own >= delay * 7 / 8 - TICK
                assert quiet or longest or seldom, f"{frame!r} of {whole!r}: too early"
            for n, _, _ in run[begin:end]:
                late = at - stored_at[n]
                if stored_at[n] < 0:
                    late = at
                assert late <= delay + LONGEST_SECONDS + LATE
                if late > delay + LATE:
                    due = stored_at[n] + delay
                    known = [part for m, _, part in run[begin:] if stored_at[m] <= due]
                    ends = [
                        sum(map(len, known[: k + 1])) for k in range(len(known) - 1)
                    ]
                    cuts = [
                        k
                        for k, end_ in enumerate(ends)
                        if end_ in starts("".join(known))
                    ]
                    held = [run[begin + k][0] for k in cuts]
                    assert not held or max(held) < n, f"{n} could have gone"
            begin = end
