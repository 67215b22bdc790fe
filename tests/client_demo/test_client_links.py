"""The client on bad days: cuts, restarts, silence, refusals, hours of nothing."""

from collections import Counter
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import anyio
import anyio.lowlevel
import pytest
from websockets.asyncio.server import serve

from client_demo import (
    Client,
    CommandError,
    NotConnectedError,
    StoppedError,
    Turn,
    connect,
)
from client_demo.errors import ForbiddenError, UnauthorizedError
from client_demo.session import Notice
from protocol.client.events import Connected, Disconnected
from protocol.events import DeltaEvent
from tests.client_demo.double import Double, Peer, double


async def read(turn: Turn, into: list[str]) -> None:
    async for event in turn:
        into += [event.text] if isinstance(event, DeltaEvent) else []


@pytest.mark.parametrize("url", ["http://127.0.0.1:8765", "127.0.0.1:8765", ""])
async def test_an_address_that_is_none_is_a_mistake_with_an_example(url: str) -> None:
    with pytest.raises(ValueError, match=r"such as ws://127\.0\.0\.1:8765/v1/chat"):
        async with connect(url):
            pass


async def test_a_cut_in_mid_answer_is_not_seen_in_the_text(server: Double) -> None:
    got: list[str] = []
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        turn = chat.send("hi")
        tasks.start_soon(read, turn, got)
        send = await server.peer.command("send")
        number = await server.start("c", await server.message("c", send))
        await server.say("c", number, "one ", "two ")
        await anyio.sleep(1)
        server.peer.cut()
        await server.say("c", number, "three ", "four ")
        peer = await server.connection(2)
        await server.say("c", number, "five")
        await server.done("c", number)
    assert "".join(got) == turn.text == "one two three four five"
    assert peer.opens[0]["after"] == 4
    assert turn.view is not None
    assert turn.view.proven


async def test_numbers_that_go_back_double_nothing(server: Double) -> None:
    """R-10, over a socket."""
    got: list[str] = []
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        turn = chat.send("hi")
        tasks.start_soon(read, turn, got)
        send = await server.peer.command("send")
        number = await server.start("c", await server.message("c", send))
        await server.say("c", number, "3", "4")
        for seq in (2, 3):
            await server.peer.send(**server.logs["c"][seq - 1])
        await server.say("c", number, "5")
        await anyio.sleep(1)
        server.peer.cut()
        peer = await server.connection(2)
        await server.done("c", number)
    assert got == ["3", "4", "5"]
    assert peer.opens[0]["after"] == 5


async def test_a_message_is_sent_again_under_its_id(server: Double) -> None:
    """C-10: cut between send and reply, three times."""
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        turn = chat.send("hi")
        tasks.start_soon(turn.wait)
        sends = [await server.peer.command("send")]
        message = await server.event(
            "c", "message", id=sends[0]["id"], role="user", content="hi", by="me",
            at="2026-01-01T00:00:00.000Z",
        )  # fmt: skip
        for number in (2, 3, 4):
            server.peer.cut()
            peer = await server.connection(number)
            sends.append(await peer.command("send"))
        for _ in range(2):
            await peer.reply(sends[0], "started", seq=message, duplicate=True)
        number = await server.start("c", message)
        await server.done("c", number)
    assert sends == [sends[0]] * 4
    assert turn.done is not None
    assert len(chat.view.timeline) == 2, "one message, one turn"


async def test_hours_of_nothing_cost_no_connection(server: Double) -> None:
    """C-15."""
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        await anyio.sleep(3 * 3600)
        tasks.start_soon(server.answer, "c", "still here")
        assert await chat.ask("hi") == "still here"
    assert len(server.peers) == 1


async def test_a_turn_that_nobody_reads_holds_nothing_up(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat, other = await client.open("c"), await client.open("d")
        unread = chat.send("hi")
        await server.answer("c", *["word "] * 5000)
        tasks.start_soon(server.answer, "d", "swift")
        assert await other.ask("hi") == "swift"
        texts: list[str] = []
        await read(unread, texts)
        assert "".join(texts) == "word " * 5000
        assert len(texts) < 600, "what waited was joined"


async def test_a_server_that_falls_silent_is_left(server: Double) -> None:
    async with connect(server.url):
        server.silent = True
        await server.connection(2)
        server.silent = False
    first, second = server.connected_at
    assert 50 <= second - first <= 52.1, "2.5 heartbeats and the back-off"


async def test_a_draining_server_hands_a_message_to_the_next(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        turn = chat.send("hi")
        tasks.start_soon(turn.wait)
        send = await server.peer.command("send")
        await server.peer.refuse(send, "draining", retryable=True)
        await server.peer.close(1012)
        await server.connection(2)
        await server.answer("c", "here")
    assert turn.text == "here"


async def test_goaway_is_a_floor(server: Double) -> None:
    async with connect(server.url):
        await server.peer.send(
            type="goaway", deadline_ms=5000, reconnect_after_ms=7000, reason="restart"
        )
        await anyio.sleep(1)
        await server.peer.close(1012)
        await server.connection(2)
    first, second = server.connected_at
    assert 8 <= second - first <= 10.1, "it begins with the close"


async def test_clients_of_one_server_do_not_come_back_together(server: Double) -> None:
    """P-08; with 500 machines in tests/protocol_client/test_backoff.py."""

    async def stay() -> None:
        async with connect(server.url):
            await anyio.sleep(60)

    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(stay)
        await server.connection(100)
        cut_at = anyio.current_time()
        for peer in server.peers[:100]:
            peer.cut()
        await server.connection(200)
    bins = Counter(int((at - cut_at) * 10) for at in server.connected_at[100:])
    assert max(bins.values()) <= 20, bins
    assert max(bins) < 21, "all within the first window"


async def test_a_refused_token_is_an_error_of_its_class(server: Double) -> None:
    async def refuse(peer: Peer) -> None:
        assert peer.hello["token"] == "old"  # noqa: S105
        await peer.send(
            type="error", code="unauthorized", message="expired", retryable=False
        )
        await peer.close(4401)

    server.greet = refuse
    with pytest.raises(UnauthorizedError, match="expired"):
        async with connect(server.url, token="old"):  # noqa: S106
            raise AssertionError("it must not be entered")


@pytest.mark.parametrize(
    ("says", "code", "why"),
    [
        ("Too many connections.", 4529, "rate_limited: Too many connections."),
        (None, 1013, "the server closed with 1013"),
    ],
)
async def test_a_server_that_has_no_place_says_why(
    server: Double, says: str | None, code: int, why: str
) -> None:
    async def turn_away(peer: Peer) -> None:
        if says is not None:
            await peer.send(
                type="error", code="rate_limited", message=says, retryable=True
            )
        await peer.close(code)

    server.greet = turn_away
    with pytest.raises(NotConnectedError, match=f"no connection: {why}"):
        async with connect(server.url):
            raise AssertionError("it must not be entered")


async def test_a_stop_ends_all_that_waits(server: Double) -> None:
    async with connect(server.url) as client:
        chat = await client.open("c")
        turn = chat.send("hi")
        await server.peer.command("send")
        await server.peer.close(4400)
        with pytest.raises(StoppedError) as stop:
            await turn.answer()
        assert stop.value.code == 4400
        with pytest.raises(StoppedError):
            chat.send("again")
        with pytest.raises(StoppedError):
            await client.open("d")
    assert len(server.peers) == 1


async def test_who_still_waits_when_the_block_is_left_is_told(server: Double) -> None:
    ends: list[StoppedError] = []

    async def fail(wait: Callable[[], Awaitable[object]]) -> None:
        with pytest.raises(StoppedError) as caught:
            await wait()
        ends.append(caught.value)

    async with anyio.create_task_group() as tasks, connect(server.url) as client:
        chat = await client.open("c")
        turn = chat.send("hi")
        await server.peer.command("send")
        for wait in (turn.answer, turn.accepted, chat.interrupt):
            tasks.start_soon(fail, wait)
        await anyio.lowlevel.checkpoint()
    with pytest.raises(StoppedError, match="was left"):
        chat.send("more")
    assert [end.code for end in ends] == [None] * 3


@pytest.mark.parametrize(
    ("status", "error"), [(401, UnauthorizedError), (403, ForbiddenError)]
)
async def test_a_refused_handshake_is_an_error_of_its_class(
    status: int, error: type[CommandError]
) -> None:
    async with serve(
        lambda _: anyio.lowlevel.checkpoint(), "127.0.0.1", 8766,
        process_request=lambda socket, _: socket.respond(HTTPStatus(status), ""),
    ):  # fmt: skip
        with pytest.raises(error):
            async with connect("ws://127.0.0.1:8766/v1/chat"):
                pass


async def test_a_web_server_that_has_something_else_there_is_told_apart() -> None:
    async with serve(
        lambda _: anyio.lowlevel.checkpoint(), "127.0.0.1", 8766,
        process_request=lambda socket, _: socket.respond(HTTPStatus(200), "a page"),
    ):  # fmt: skip
        with pytest.raises(NotConnectedError, match=r"HTTP 200; .* ends with /v1/chat"):
            async with connect("ws://127.0.0.1:8766/"):
                pass


async def test_where_nobody_listens_the_first_attempt_says_so() -> None:
    with pytest.raises(NotConnectedError) as error:
        async with connect("ws://127.0.0.1:8765/v1/chat"):
            pass
    assert isinstance(error.value.__cause__, OSError)


async def test_a_first_attempt_can_be_patient() -> None:
    async with anyio.create_task_group() as tasks:

        async def enter() -> Client:
            async with connect(
                "ws://127.0.0.1:8765/v1/chat", wait_seconds=60
            ) as client:
                assert client.connected
                return client

        tasks.start_soon(enter)
        await anyio.sleep(5)
        async with double(port=8765) as server:
            await server.connection(1)
            await anyio.sleep(5)


async def test_new_credentials_are_fetched_for_every_connection(
    server: Double,
) -> None:
    tokens = iter(["t1", "t2", "t3"])

    async def new_token() -> str:
        return next(tokens)

    async with connect(server.url, token=new_token):
        await server.peer.send(type="auth_expiring", in_ms=1000)
        refresh = await server.peer.command("refresh")
        await server.peer.reply(refresh, "refreshed")
        server.peer.cut()
        peer = await server.connection(2)
    assert [server.peers[0].hello["token"], refresh["token"], peer.hello["token"]] == [
        "t1", "t2", "t3",
    ]  # fmt: skip


async def test_without_credentials_an_attempt_fails_and_another_follows(
    server: Double,
) -> None:
    tokens = iter(["t1", "", "", "t2"])

    async def new_token() -> str:
        token = next(tokens)
        if not token:
            raise LookupError("no such user")
        return token

    async with connect(server.url, token=new_token) as client:
        await server.peer.send(type="auth_expiring", in_ms=1000)
        await client.open("c")
        server.peer.cut()
        peer = await server.connection(2)
    assert peer.hello["token"] == "t2"  # noqa: S105


async def test_without_credentials_at_the_first_attempt_it_says_why(
    server: Double,
) -> None:
    async def new_token() -> str:
        raise LookupError("no such user")

    with pytest.raises(NotConnectedError, match="no credentials: no such user"):
        async with connect(server.url, token=new_token):
            raise AssertionError("it must not be entered")


async def test_credentials_that_stay_the_same_are_not_given_again(
    server: Double,
) -> None:
    async def new_token() -> str:
        return "same"

    async with connect(server.url, token=new_token) as client:
        await server.peer.send(type="auth_expiring", in_ms=1000)
        await client.open("c")
        assert server.peer.waiting() == 0


async def test_what_the_block_raises_leaves_as_it_was_raised(server: Double) -> None:
    raised = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as caught:
        async with connect(server.url):
            raise raised
    assert caught.value is raised


async def test_the_application_is_told_of_the_connection(server: Double) -> None:
    notices: list[Notice] = []
    async with connect(server.url, notify=notices.append):
        server.peer.cut()
        await server.connection(2)
        await anyio.sleep(1)
    kinds = [type(notice) for notice in notices]
    assert kinds == [Connected, Disconnected, Connected]


async def test_a_frame_larger_than_usual_is_taken(server: Double) -> None:
    """P-05."""
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        tasks.start_soon(server.answer, "c", "x" * 2_000_000)
        assert len(await chat.ask("hi")) == 2_000_000
