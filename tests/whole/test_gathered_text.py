"""`max_delay_ms` over real sockets: characters whole, numbers truthful."""

from typing import Any

import regex

from tests.fakes.replies import streamed, text_events
from tests.fakes.server import ServerProcess
from tests.fakes.upstream import FakeUpstream
from tests.fakes.wire import Wire, wire

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
SYLLABLE = "क्षि"
WORDS = f"Hi {FAMILY}! 🇩🇪🇫🇷 {SYLLABLE} 你好世界 cafe\u0301 done"
PIECES = list(WORDS)  # one code point each
DELAY_MS = 150


def deltas(client: Wire, name: str = "c") -> list[dict[str, Any]]:
    return [e for e in client.copies[name].events if e["type"] == "delta"]


def whole(parts: list[str]) -> bool:
    """Whether no character of a text is in two parts."""
    characters = [found for part in parts for found in regex.findall(r"\X", part)]
    return characters == regex.findall(r"\X", "".join(parts))


async def test_who_asks_gets_whole_characters_and_who_does_not_each_piece(
    running: ServerProcess, upstream: FakeUpstream
) -> None:
    upstream.script(streamed(text_events(*PIECES), between_writes_seconds=0.012))
    async with wire(running.url) as asks, wire(running.url) as plain:
        await asks.open("c", max_delay_ms=DELAY_MS)
        await plain.open("c", view="frames")
        reply = await asks.command("send", conversation="c", content="go")
        for client in (asks, plain):
            await client.done("c", reply["turn"])
            client.copies["c"].prove()
            assert client.copies["c"].texts[reply["turn"]] == WORDS
        gathered = [event["text"] for event in deltas(asks)]
        single = [event["text"] for event in deltas(plain)]
        assert whole(gathered)
        assert not whole(single), "it was cut on the way, or this test shows nothing"
        assert len(gathered) < len(single) / 2
        assert any(FAMILY in part for part in gathered)
        assert any("🇩🇪" in part for part in gathered)
        assert any(SYLLABLE in part for part in gathered)


async def test_a_client_that_drops_while_text_is_held_gets_each_number_once(
    running: ServerProcess, upstream: FakeUpstream
) -> None:
    # Of what is there when it opens, a letter may go before the accent comes.
    words = WORDS.replace("e\u0301", "é")
    upstream.script(streamed(text_events(*words), between_writes_seconds=0.012))
    async with wire(running.url) as plain:
        await plain.open("c", view="frames")
        async with wire(running.url) as client:
            await client.open("c", max_delay_ms=DELAY_MS)
            reply = await client.command("send", conversation="c", content="go")
            await client.until(lambda: deltas(client))
            copies = client.copies
        for seen in range(3, len(words), 3):
            # The copy checks that numbers go on without a gap and none comes twice.
            async with wire(running.url, copies) as client:
                await client.open("c", max_delay_ms=DELAY_MS)
                await plain.until(lambda seen=seen: len(deltas(plain)) >= seen)
    async with wire(running.url, copies) as client:
        await client.open("c")
        await client.done("c", reply["turn"])
        client.copies["c"].prove()
        parts = [event["text"] for event in deltas(client)]
        assert "".join(parts) == words
        assert whole(parts)


async def test_an_interrupt_keeps_exactly_what_was_sent(
    running: ServerProcess, upstream: FakeUpstream
) -> None:
    upstream.script(
        streamed(text_events("Look: ", *FAMILY, "!"), between_writes_seconds=0.15),
        streamed(text_events("fine")),
    )
    async with wire(running.url) as client, wire(running.url) as plain:
        await plain.open("c", view="frames")
        await client.open("c", max_delay_ms=20)
        reply = await client.command("send", conversation="c", content="go")
        await client.until(lambda: deltas(client))
        await plain.until(lambda: len(deltas(plain)) > 3)  # half of the family
        stopped = await client.command("interrupt", conversation="c")
        done = await client.done("c", reply["turn"])
        client.copies["c"].prove()
        assert client.copies["c"].texts[reply["turn"]] == "Look: "
        assert done["text"]["bytes"] == len("Look: ")
        assert stopped["keep_through"] == deltas(client)[-1]["seq"]
        reply = await client.command("send", conversation="c", content="and?")
        await client.done("c", reply["turn"])
        said = [m["content"] for m in upstream.requests[-1].json["messages"]]
        assert said == ["go", "Look: ", "and?"]
