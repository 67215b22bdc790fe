"""The session cases of interrupts, through real sockets, by their ids."""

import os
import random
import urllib.request

import anyio
import pytest
from anyio import to_thread

from tests.fakes.replies import call_events, streamed, text_events
from tests.fakes.upstream import Reply
from tests.whole.case import (
    LOOK,
    Case,
    answer,
    asked,
    begin,
    history,
    kinds,
    results,
    said,
    shown,
    soon,
)

TWO_CALLS = call_events(
    {"id": "u1", "name": "look", "arguments": '{"at":"sky"}'},
    {"id": "u2", "name": "look", "arguments": '{"at":"sea"}'},
)


def endless(piece: str = "w ", seconds: float = 0.02) -> Reply:
    return streamed(text_events(*[piece] * 500), between_writes_seconds=seconds)


def halted(*pieces: str) -> Reply:
    """Says the pieces and then nothing more."""
    return streamed(text_events(*pieces)[: 1 + len(pieces)], end="stall")


async def test_i01_stop_ends_the_upstream_too(case: Case) -> None:
    name = case.name()
    case.script(endless(seconds=0.1))
    async with case.client() as client:
        turn = await begin(client, name)
        await shown(client, name, turn, "w w w w w ")
        request = await case.request(1)
        began = anyio.current_time()
        reply = await client.command("interrupt", conversation=name, turn=turn)
        assert reply["outcome"] == "interrupted"
        with anyio.fail_after(1):
            await request.disconnected.wait()
        assert request.disconnected_at is not None
        assert request.disconnected_at - began < 1
        done = await client.done(name, turn)
        assert (done["status"], done["reason"]) == ("interrupted", "by_client")
        assert request.bytes_written < 20 * len(endless().body) / 500
        assert kinds(client.copies[name]).count("done") == 1


async def test_i04_the_partial_answer_stays(case: Case) -> None:
    name = case.name()
    case.script(halted("A ", "B ", "C "), streamed(text_events("fine")))
    async with case.client() as client:
        turn = await begin(client, name)
        await shown(client, name, turn, "A B C ")
        await client.command("interrupt", conversation=name)
        await client.done(name, turn)
    again = await history(case, name)
    assert again.events[0]["content"] == "go"
    assert again.texts[turn] == "A B C "
    assert again.dones[turn]["status"] == "interrupted"
    async with case.client() as client:
        await client.open(name)
        reply = await client.command("send", conversation=name, content="second")
        await client.done(name, reply["turn"])
    request = await case.request(2)
    assert said(request) == [
        ("user", "go"),
        ("assistant", "A B C "),
        ("user", "second"),
    ]


async def test_i06_an_interrupt_in_a_tool_call_poisons_nothing(case: Case) -> None:
    name = case.name()
    case.script(streamed(TWO_CALLS), streamed(text_events("fine")))
    async with case.client() as client:
        await begin(client, name, tools=[LOOK])
        first, second = await asked(client, 2)
        assert await answer(client, name, first["call"], output="blue") == "accepted"
        await client.command("interrupt", conversation=name)
        turn = (await client.command("send", conversation=name, content="on"))["turn"]
        assert (await client.done(name, turn))["status"] == "completed"
        request = await case.request(2)
        roles = [role for role, _ in said(request)]
        assert roles == ["user", "assistant", "tool", "tool", "user"]
        assert results(request)[0] == "blue"
        assert "cancelled" in results(request)[1]
        assert second["call"] not in str(request.json), "upstreams have their own ids"


@pytest.mark.timeout(60)
async def test_i08_cancel_and_completion_race(case: Case) -> None:
    chance = random.Random(8)
    names = [case.name() for _ in range(10)]
    case.script(streamed(text_events("one ", "two"), between_writes_seconds=0.001))
    outcomes: list[str] = []
    async with case.client() as client:
        for round_ in range(200):
            name = names[round_ % len(names)]
            turn = await begin(client, name)
            await anyio.sleep(chance.uniform(0.0, 0.014))
            reply = await client.command("interrupt", conversation=name, turn=turn)
            done = await client.done(name, turn)
            outcomes.append(reply["outcome"])
            status = {"interrupted": "interrupted", "already_finished": "completed"}
            assert done["status"] == status[reply["outcome"]]
    assert set(outcomes) == {"interrupted", "already_finished"}, "it was a race"
    for name in names:
        again = await history(case, name)
        seen = client.copies[name]
        assert again.dones == seen.dones
        assert again.texts == seen.texts
        assert kinds(again).count("done") == kinds(again).count("usage") == 20


async def test_i10_every_cancel_is_answered(case: Case) -> None:
    name = case.name()
    case.script(streamed(text_events("short")))
    async with case.client() as client:
        turn = await begin(client, name)
        await client.done(name, turn)
        for of in (turn, turn, turn, 999_999):
            reply = await client.command("interrupt", conversation=name, turn=of)
            assert reply["ok"]
            expected = "already_finished" if of == turn else "not_found"
            assert reply["outcome"] == expected
        turn = await begin(client, name)
        assert (await client.done(name, turn))["status"] == "completed"


async def test_i11_cancelled_anywhere_it_leaves_nothing_open(case: Case) -> None:
    chance = random.Random(11)
    name = case.name()
    logged = len(case.running.log)
    async with case.client() as client:
        case.script(endless(seconds=0.005))
        await client.open(name)
        files = open_files(case)
        for _ in range(50):
            turn = await begin(client, name)
            await anyio.sleep(chance.uniform(0.0, 0.05))
            await client.command("interrupt", conversation=name, turn=turn)
            assert (await client.done(name, turn))["status"] == "interrupted"
        await soon(lambda: case.upstream.connections_open == 0)
        await soon(lambda: open_files(case) <= files)
    assert "error" not in case.running.log[logged:].lower()
    assert "never" not in case.running.log[logged:]


async def test_i12_cancelled_while_it_waits_to_try_again(case: Case) -> None:
    name = case.name()
    busy = Reply(
        status=429,
        content_type="application/json",
        body=b'{"error":{"message":"slow down"}}',
        headers={"Retry-After": "60"},
    )
    async with case.client() as client:
        case.script(busy)
        await client.open(name)
        files = open_files(case)
        for number in range(1, 9):
            turn = await begin(client, name)
            await (await case.request(number)).answered.wait()
            await client.command("interrupt", conversation=name, turn=turn)
            assert (await client.done(name, turn))["status"] == "interrupted"
        await soon(lambda: open_files(case) <= files + 1)  # one may be kept alive
    assert len(case.requests) == 8, "nothing was tried again"


def open_files(case: Case) -> int:
    return len(os.listdir(f"/proc/{case.running.pid}/fd"))


async def test_i14_stop_works_while_a_tool_runs(case: Case) -> None:
    name = case.name()
    case.script(streamed(TWO_CALLS))
    async with case.client() as client:
        turn = await begin(client, name, tools=[LOOK])
        calls = [request["call"] for request in await asked(client, 2)]
        began = anyio.current_time()
        await client.command("interrupt", conversation=name)
        await client.done(name, turn)
        assert anyio.current_time() - began < 1
        events = client.copies[name].events
        settled = [e for e in events if e["type"] == "tool_result"]
        assert [e["call"] for e in settled] == calls, "who runs one is told to drop it"
        assert {e["status"] for e in settled} == {"cancelled"}
        assert await answer(client, name, calls[0], output="late") == "cancelled"


async def test_i15_two_answers_never_mix(case: Case) -> None:
    name = case.name()
    case.script(endless("old "), streamed(text_events("new ", "answer")))
    async with case.client() as client:
        old = await begin(client, name)
        await shown(client, name, old, "old " * 10)
        await client.command(
            "send", conversation=name, content="stop and say", policy="interrupt"
        )
        copy = client.copies[name]
        await client.until(lambda: len(copy.dones) == 2)
        new = max(copy.dones)
        ended = copy.events.index(copy.dones[old])
        began = next(n for n, e in enumerate(copy.events) if e.get("turn") == new)
        assert ended < began, "one writer at a time"
        assert {e.get("turn") for e in copy.events[began:]} == {new}
        assert set(copy.texts[old].split()) == {"old"}
        assert copy.texts[new] == "new answer"
        copy.prove()
        assert copy.dones[old]["reason"] == "superseded"


async def test_i18_an_interrupted_turn_is_in_the_books(case: Case) -> None:
    name = case.name()
    case.script(endless())
    before = await output_tokens(case)
    async with case.client() as client:
        turn = await begin(client, name)
        await shown(client, name, turn, "w w w w w ")
        await client.command("interrupt", conversation=name)
        await client.done(name, turn)
        (usage,) = (e for e in client.copies[name].events if e["type"] == "usage")
        assert usage["estimated"] is True
        assert usage["output_tokens"] > 0
    after = await output_tokens(case)
    assert after - before == usage["output_tokens"], "counted once"


async def output_tokens(case: Case) -> float:
    """Returns how many tokens the server's metrics count as output."""

    def fetch() -> str:
        with urllib.request.urlopen(f"{case.running.http}/metrics") as page:  # noqa: S310
            return page.read().decode()

    page = await to_thread.run_sync(fetch)
    return sum(
        float(line.rpartition(" ")[2])
        for line in page.splitlines()
        if line.startswith("gen_ai_client_token_usage") and "_sum{" in line
        if '"output"' in line
    )


async def test_i19_an_interrupt_touches_no_neighbour(case: Case) -> None:
    names = [case.name() for _ in range(3)]
    pieces = [f"piece {n} of a 日本語 answer; " for n in range(40)]
    case.script(streamed(text_events(*pieces), between_writes_seconds=0.01))
    async with case.client() as client:
        turns = [await begin(client, name) for name in names]
        for name, turn in zip(names, turns, strict=True):
            await shown(client, name, turn, pieces[0])
        await client.command("interrupt", conversation=names[1])
        for name, turn in zip(names, turns, strict=True):
            done = await client.done(name, turn)
            if name == names[1]:
                assert done["status"] == "interrupted"
            else:
                assert client.copies[name].texts[turn] == "".join(pieces)


async def test_i20_interrupt_and_message_are_one_step(case: Case) -> None:
    name = case.name()
    case.script(halted("half an "), streamed(text_events("other")))
    async with case.client() as client:
        turn = await begin(client, name, "first")
        await shown(client, name, turn, "half an ")
        await client.command(
            "send", conversation=name, content="say this instead", policy="interrupt"
        )
        await client.until(lambda: len(client.copies[name].dones) == 2)
    assert said(await case.request(2)) == [
        ("user", "first"),
        ("assistant", "half an "),
        ("user", "say this instead"),
    ]
