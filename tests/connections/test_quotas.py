"""What the connections of one principal share."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.codes import CloseCode
from tests.connections.journal import settle
from tests.connections.wire import Tokens, connected, limited
from tests.fakes.rig import ALICE, rig
from tests.fakes.scripted import ScriptedProvider, says
from tests.fakes.weight import weight
from wsserver.auth.principal import Principal
from wsserver.connections.quotas import Quotas
from wsserver.connections.transport import Handshake
from wsserver.turns.errors import CommandError

BOB = Principal(name="bob", space="bob")
ANN = Principal(name="ann", space="alice")


def shared(
    connections: int | None = None,
    per_second: int | None = None,
    burst: int = 50,
    conversations: int | None = None,
) -> Any:
    settings = limited(
        principal_connections=connections,
        principal_frames_per_second=per_second,
        principal_conversations=conversations,
    )
    return msgspec.structs.replace(settings, principal_frames_burst=burst)


def test_so_many_connections_and_no_more() -> None:
    quotas = Quotas(shared(connections=2))
    quotas.join("a", 0.0)
    quotas.join("a", 0.0)
    quotas.join("b", 0.0)
    with pytest.raises(CommandError) as caught:
        quotas.join("a", 0.0)
    assert caught.value.body.code == "rate_limited"
    assert caught.value.body.retryable
    assert caught.value.body.retry_after_ms == 5000
    quotas.leave("a", 1.0)
    quotas.join("a", 1.0)


def test_connections_share_what_may_be_said() -> None:
    quotas = Quotas(shared(per_second=10, burst=20))
    shares = [quotas.join("a", 0.0), quotas.join("a", 0.0)]
    other = quotas.join("b", 0.0)
    taken = sum(shares[n % 2].take(0.0, 1.0) == 0 for n in range(40))
    assert taken == 20
    assert other.take(0.0, 1.0) == 0
    assert shares[0].take(0.0, 1.0) == pytest.approx(0.1)


def test_to_leave_and_come_back_earns_nothing() -> None:
    quotas = Quotas(shared(per_second=10, burst=20))
    taken = 0
    for step in range(100):
        now = step / 100
        share = quotas.join("a", now)
        taken += sum(share.take(now, 1.0) == 0 for _ in range(5))
        quotas.leave("a", now)
    assert taken <= 20 + 10


def test_a_space_is_forgotten_once_its_bucket_is_full() -> None:
    quotas = Quotas(shared(per_second=10, burst=20))
    weights: list[int] = []
    for number in range(1_000):
        space, now = f"s{number:03}", number / 100
        quotas.join(space, now).take(now, 1.0)
        quotas.leave(space, now)
        weights.append(weight(quotas) if number in {250, 999} else 0)
    assert weights[999] < 1.1 * weights[250], "those of the two seconds it takes"
    quotas.join("last", 1_000.0)
    fresh = Quotas(shared(per_second=10, burst=20))
    fresh.join("last", 1_000.0)
    assert weight(quotas) == weight(fresh)


def test_without_a_rate_nothing_is_remembered() -> None:
    quotas = Quotas(shared(connections=1))
    share = quotas.join("a", 0.0)
    assert share.take(0.0, 1e9) == 0
    quotas.leave("a", 0.0)
    assert weight(quotas) == weight(Quotas(shared(connections=1)))


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.sampled_from(["join", "leave"]), st.floats(0, 3)
        ),
        max_size=80,
    )
)
def test_connections_are_counted_right(steps: list[tuple[str, str, float]]) -> None:
    quotas = Quotas(shared(connections=3, per_second=10, burst=20))
    counts = dict.fromkeys("abc", 0)
    now = 0.0
    for space, step, gap in steps:
        now += gap
        if step == "leave":
            if counts[space]:
                quotas.leave(space, now)
                counts[space] -= 1
            continue
        if counts[space] == 3:
            with pytest.raises(CommandError):
                quotas.join(space, now)
        else:
            counts[space] += 1
            assert quotas.join(space, now).connections == counts[space]
    quotas.join("d", now + 100)
    fresh = Quotas(shared(connections=3, per_second=10, burst=20))
    for space in [*(one for one in "abc" for _ in range(counts[one])), "d"]:
        fresh.join(space, now)
    assert weight(quotas) == pytest.approx(weight(fresh), abs=20)


# As clients live through them


def server() -> Any:
    return rig(ScriptedProvider(says("Hello")))


TOKENS = Tokens(alice=ALICE, ann=ANN, bob=BOB)


def member(r: Any, quotas: Quotas, token: str, settings: Any, **options: Any) -> Any:
    return connected(
        r,
        authority=TOKENS,
        handshake=Handshake(peer="test", token=token),
        quotas=quotas,
        settings=settings,
        name=f"{token}-{options}",
        **options,
    )


async def test_one_connection_too_many_is_told_when_to_come_again() -> None:
    settings = shared(connections=2)
    quotas = Quotas(settings)
    async with server() as r, member(r, quotas, "alice", settings) as alice:
        async with (
            member(r, quotas, "ann", settings),
            member(r, quotas, "bob", settings) as bob,
            member(r, quotas, "alice", settings, hello=False) as third,
        ):
            error = await third.hello()
            assert (error["type"], error["code"]) == ("error", "rate_limited")
            assert error["retryable"] is True
            assert error["retry_after_ms"] == 5000
            assert await third.ended() == (CloseCode.RATE, "rate_limited")
            for client in (alice, bob):
                assert (await client.ask("open", conversation="c"))["ok"]
        await settle()
        async with member(r, quotas, "alice", settings) as again:
            assert (await again.ask("open", conversation="c"))["ok"]
    assert weight(quotas) == weight(Quotas(settings))


async def test_whoever_is_not_believed_takes_no_place() -> None:
    settings = shared(connections=1)
    quotas = Quotas(settings)
    async with server() as r:
        for token in ("wrong", "wrong", "alice"):
            async with member(r, quotas, token, settings, hello=False) as client:
                kind = (await client.hello())["type"]
                assert kind == ("welcome" if token == "alice" else "error")  # noqa: S105


async def test_what_a_principal_says_is_limited_over_all_its_connections() -> None:
    settings = shared(per_second=1, burst=60)
    quotas = Quotas(settings)
    async with (
        server() as r,
        member(r, quotas, "alice", settings) as noisy,
        member(r, quotas, "ann", settings) as quiet,
        member(r, quotas, "bob", settings) as other,
    ):
        for number in range(80):
            noisy.say("close", id=f"x{number}", conversation="c")
        replies = [await noisy.frame("reply") for _ in range(80)]
        assert [reply["ok"] for reply in replies] == [True] * 60 + [False] * 20
        error = replies[-1]["error"]
        assert error["code"] == "rate_limited"
        assert 0 < error["retry_after_ms"] <= 1000
        refused = await quiet.ask("close", conversation="c")
        assert refused["error"]["code"] == "rate_limited", "it is the same principal"
        assert (await other.ask("close", conversation="c"))["ok"]
        assert noisy.wire.closed is None
        for number in range(700):
            noisy.say("close", id=f"y{number}", conversation="c")
        assert (await noisy.ended())[0] == CloseCode.RATE
        assert quiet.wire.closed is None, "only who goes on is closed"


async def test_a_principal_has_so_many_conversations_open_and_no_more() -> None:
    settings = shared(conversations=3)
    quotas = Quotas(settings)
    async with (
        server() as r,
        member(r, quotas, "alice", settings) as alice,
        member(r, quotas, "bob", settings) as bob,
    ):
        assert (await alice.ask("open", conversation="a"))["ok"]
        async with member(r, quotas, "ann", settings) as ann:
            for name in ("a", "b"):
                assert (await ann.ask("open", conversation=name))["ok"]
                assert (await ann.ask("open", conversation=name))["ok"], "counted once"
            for client, name in ((alice, "b"), (alice, "new"), (ann, "c")):
                error = (await client.ask("open", conversation=name))["error"]
                assert error["code"] == "too_many_conversations"
                assert error["retryable"] is False
            assert r.directory.loaded(ALICE.key("new")) is None
            assert (await bob.ask("open", conversation="a"))["ok"]
            await ann.ask("close", conversation="b")
            await ann.ask("close", conversation="b")
            assert (await alice.ask("open", conversation="b"))["ok"]
            assert not (await ann.ask("open", conversation="c"))["ok"]
            await alice.ask("delete", conversation="b")
            assert (await ann.ask("open", conversation="c"))["ok"]
        await settle()
        for name in ("b", "c"):
            assert (await alice.ask("open", conversation=name))["ok"]
        assert not (await alice.ask("open", conversation="d"))["ok"]
