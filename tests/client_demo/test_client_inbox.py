"""Events that wait to be read: all of them, joined, in order."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_demo.inbox import Inbox
from protocol.events import DeltaEvent, LogEvent, ReasoningEvent, SkipEvent


def made(kinds: list[str]) -> list[LogEvent]:
    events: list[LogEvent] = []
    for seq, kind in enumerate(kinds, 1):
        match kind:
            case "delta":
                events.append(
                    DeltaEvent(conversation="c", turn=1, seq=seq, text=f"{seq},")
                )
            case "reasoning":
                events.append(
                    ReasoningEvent(conversation="c", turn=1, seq=seq, text=f"{seq};")
                )
            case _:
                events.append(SkipEvent(conversation="c", seq=seq))
    return events


@given(
    st.lists(st.sampled_from(["delta", "delta", "delta", "reasoning", "skip"])),
    st.integers(1, 5),
)
def test_joining_loses_nothing(kinds: list[str], most: int) -> None:
    async def main() -> list[LogEvent]:
        inbox = Inbox(most=most)
        for event in made(kinds):
            inbox.put(event)
        inbox.end()
        out: list[LogEvent] = []
        while (event := await inbox.next()) is not None:
            out.append(event)
        return out

    out = anyio.run(main)
    for kind in (DeltaEvent, ReasoningEvent):
        text = "".join(event.text for event in out if isinstance(event, kind))
        whole = [event for event in made(kinds) if isinstance(event, kind)]
        assert text == "".join(event.text for event in whole)
    assert [event.seq for event in out] == sorted(event.seq for event in out)


async def test_text_that_waits_takes_few_places() -> None:
    inbox = Inbox(most=10)
    for event in made(["delta"] * 10_000):
        inbox.put(event)
        assert len(inbox) <= 22


async def test_the_reader_gets_the_rest_before_the_error() -> None:
    inbox = Inbox()
    inbox.put(made(["skip"])[0])
    inbox.end(LookupError("gone"))
    inbox.end()
    assert await inbox.next() is not None
    for _ in range(2):
        with pytest.raises(LookupError):
            await inbox.next()


async def test_the_reader_waits() -> None:
    inbox = Inbox()
    got: list[LogEvent | None] = []

    async def read() -> None:
        got.append(await inbox.next())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.sleep(1)
        assert not got
        inbox.put(made(["skip"])[0])
    assert len(got) == 1
