"""The session cases of tool round trips, through real sockets, by their ids."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fakes.replies import call_events, streamed, text_events
from tests.fakes.server import server
from tests.fakes.upstream import FakeUpstream, Reply
from tests.fakes.wire import Copy, Frame, Wire, wire
from tests.whole.case import LOOK, Case, answer, asked, begin, results, said

FINE = "fine"


def calling(*places: str) -> Reply:
    """Returns a reply that looks at each place."""
    return streamed(
        call_events(
            *(
                {"id": f"u{n}", "name": "look", "arguments": f'{{"at":"{place}"}}'}
                for n, place in enumerate(places)
            )
        )
    )


async def calls(
    case: Case, client: Wire, name: str, *places: str, **tool: Any
) -> tuple[int, list[Frame]]:
    """Lets the model look at some places; returns the turn and what was asked."""
    case.script(calling(*places), streamed(text_events(FINE)))
    turn = await begin(client, name, tools=[{**LOOK, **tool}])
    requests = await asked(client, len(places))
    assert [request["arguments"]["at"] for request in requests] == list(places)
    return turn, requests


async def finished(client: Wire, name: str, turn: int) -> Frame:
    """Waits for the end of a turn that has to be a whole answer."""
    done = await client.done(name, turn)
    assert done["status"] == "completed", done
    assert client.copies[name].texts[turn] == FINE
    return done


async def test_t01_a_result_for_an_unknown_call(case: Case) -> None:
    name, other = case.name(), case.name()
    async with case.client() as client:
        turn, (request,) = await calls(case, client, name, "sky")
        await client.open(other)
        assert await answer(client, name, "call_made_up", output=1) == "unknown"
        assert await answer(client, other, request["call"], output=1) == "unknown"
        assert await answer(client, name, request["call"], output=2) == "accepted"
        await finished(client, name, turn)
    assert results(await case.request(2)) == ["2"]


async def test_t02_the_same_result_twice(case: Case) -> None:
    name = case.name()
    async with case.client() as client:
        turn, (request,) = await calls(case, client, name, "sky")
        call = request["call"]
        assert await answer(client, name, call, output="blue") == "accepted"
        assert await answer(client, name, call, output="blue") == "duplicate"
        await finished(client, name, turn)
        assert await answer(client, name, call, output="green") == "conflict"
        turn = await begin(client, name, "and now?")
        await finished(client, name, turn)
    assert results(await case.request(3)) == ["blue"]


async def test_t04_a_result_that_never_comes(case: Case) -> None:
    name = case.name()
    async with case.client() as client:
        turn, requests = await calls(case, client, name, "sky", "sea", timeout_s=0.5)
        await answer(client, name, requests[0]["call"], output="blue")
        await finished(client, name, turn)
        late = await answer(client, name, requests[1]["call"], output="wet")
        assert late == "late"
    first, second = results(await case.request(2))
    assert first == "blue"
    assert "in time" in second


async def test_t05_a_long_but_healthy_tool(case: Case) -> None:
    names = [case.name(), case.name()]
    async with case.client() as client:
        turn, (alive,) = await calls(case, client, names[0], "sky", timeout_s=0.8)
        for _ in range(8):
            await anyio.sleep(0.2)
            await client.send(
                type="tool_progress", conversation=names[0], call=alive["call"]
            )
        assert await answer(client, names[0], alive["call"], output=1) == "accepted"
        await finished(client, names[0], turn)
    async with case.client() as client:
        began = anyio.current_time()
        turn, (silent,) = await calls(case, client, names[1], "sky", timeout_s=0.8)
        await finished(client, names[1], turn)
        assert 0.7 < anyio.current_time() - began < 3
        assert await answer(client, names[1], silent["call"], output=1) == "late"


async def test_t06_a_huge_result(case: Case) -> None:
    name = case.name()
    async with case.client() as client:
        limit = client.welcome["limits"]["tool_output_bytes"]
        turn, (request,) = await calls(case, client, name, "sky")
        outcome = await answer(client, name, request["call"], output="x" * limit)
        assert outcome == "too_large"
        assert await answer(client, name, request["call"], output="short") == "accepted"
        await finished(client, name, turn)
        await finished(client, name, await begin(client, name, "go on"))
    assert results(await case.request(2)) == ["short"]


async def test_t08_one_failing_tool_of_several(case: Case) -> None:
    name = case.name()
    async with case.client() as client:
        turn, requests = await calls(case, client, name, "sky", "sea", "sun")
        first, second, third = (request["call"] for request in requests)
        await answer(client, name, second, error={"message": "it is too deep"})
        await answer(client, name, first, output="blue")
        await answer(client, name, third, output="hot")
        await finished(client, name, turn)
        settled = [e for e in client.copies[name].events if e["type"] == "tool_result"]
    assert results(await case.request(2)) == ["blue", "it is too deep", "hot"]
    statuses = {event["call"]: event["status"] for event in settled}
    assert statuses == {first: "ok", second: "error", third: "ok"}
    assert len(settled) == 3, "exactly one result for each call"


async def test_t09_an_error_without_a_text(case: Case) -> None:
    name = case.name()
    async with case.client() as client:
        turn, (request,) = await calls(case, client, name, "sky")
        await answer(client, name, request["call"], error={"message": ""})
        await finished(client, name, turn)
    message = (await case.request(2)).json["messages"][-1]
    assert message["tool_call_id"] == "u0"
    assert len(message["content"]) > 5


async def test_t12_results_of_any_type(case: Case) -> None:
    name = case.name()
    outputs: list[Any] = ["text", 7, None, [1, {"a": 2}], {"b": None}]
    async with case.client() as client:
        turn, requests = await calls(case, client, name, "a", "b", "c", "d", "e")
        for request, output in zip(requests, outputs, strict=True):
            assert (
                await answer(client, name, request["call"], output=output) == "accepted"
            )
        await finished(client, name, turn)
    told = ["text", "7", "null", '[1,{"a":2}]', '{"b":null}']
    assert results(await case.request(2)) == told


async def test_t14_results_in_another_order(case: Case) -> None:
    name = case.name()
    async with case.client() as client:
        turn, requests = await calls(case, client, name, "one", "two", "three")
        first, second, third = (request["call"] for request in requests)
        for call, output in ((third, "3"), (first, "1"), (second, "2")):
            assert len(case.requests) == 1, "not before all of them are in"
            await answer(client, name, call, output=output)
            await anyio.sleep(0.05)
        await finished(client, name, turn)
    assert len(case.requests) == 2
    assert results(case.requests[1]) == ["1", "2", "3"]


async def test_t16_a_cancelled_call_that_is_answered(case: Case) -> None:
    name = case.name()
    async with case.client() as client:
        turn, requests = await calls(case, client, name, "sky", "sea")
        await client.command("interrupt", conversation=name)
        await client.done(name, turn)
        late = await answer(client, name, requests[1]["call"], output="wet")
        assert late == "cancelled"
        await finished(client, name, await begin(client, name, "go on"))
    request = await case.request(2)
    roles = [role for role, _ in said(request)]
    assert roles == ["user", "assistant", "tool", "tool", "user"]
    assert "wet" not in results(request)


async def test_t18_a_pending_call_after_a_reconnect(case: Case) -> None:
    name = case.name()
    copies: dict[str, Copy] = defaultdict(Copy)
    async with case.client(copies) as client:
        turn, (first,) = await calls(case, client, name, "sky", timeout_s=60)
    assert first["redelivered"] is False
    await anyio.sleep(0.3)
    async with case.client(copies) as client:
        await client.open(name, handles=["look"])
        (again,) = await asked(client, 1)
        assert again["call"] == first["call"]
        assert again["redelivered"] is True
        assert 30_000 <= again["deadline_ms"] < first["deadline_ms"]
        assert await answer(client, name, again["call"], output="blue") == "accepted"
        await finished(client, name, turn)
        assert len(await asked(client, 1)) == 1
    assert results(await case.request(2)) == ["blue"]


@pytest.mark.timeout(60)
async def test_t19_a_result_of_somebody_else(
    upstream: FakeUpstream, tmp_path: Path
) -> None:
    keys = anyio.Path(tmp_path / "keys")
    await keys.write_text("ann:ann-has-this-key\nbob:bob-has-this-key\n")
    await keys.chmod(0o600)
    env = {"OPENAI_BASE_URL": upstream.base_url, "WSSERVER_AUTH_KEYS_FILE": str(keys)}
    upstream.script(calling("sky"), streamed(text_events(FINE)))
    async with (
        server("--store", "memory", folder=tmp_path, env=env) as running,
        wire(running.url, token="ann-has-this-key") as ann,  # noqa: S106
        wire(running.url, token="bob-has-this-key") as bob,  # noqa: S106
    ):
        turn = await begin(ann, "c", tools=[LOOK])
        (request,) = await asked(ann, 1)
        for conversation in ("c", "unknown"):
            outcome = await answer(bob, conversation, request["call"], output="mine")
            assert outcome == "conversation_not_found"
        await bob.open("c")
        assert await answer(bob, "c", request["call"], output="mine") == "unknown"
        assert await answer(ann, "c", request["call"], output="blue") == "accepted"
        await finished(ann, "c", turn)
    assert results(upstream.requests[1]) == ["blue"]
