"""What a person writes with the client: send, ask, follow, interrupt, fork."""

from typing import Any

import anyio
import pytest

from client_demo import (
    Chat,
    Client,
    ConversationResetError,
    IncompleteAnswerError,
    TurnError,
    connect,
)
from client_demo.errors import ConversationNotFoundError, TooLargeError
from protocol.client.events import Cursor
from protocol.content import Config
from protocol.events import DeltaEvent, DoneEvent, MessageEvent, StartEvent
from tests.client_demo.double import Double


async def test_the_events_of_a_turn_come_once_and_end_with_it(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        tasks.start_soon(server.answer, "c", "a", "b")
        turn = chat.send("hi")
        events = [event async for event in turn]
    kinds = [type(event) for event in events]
    assert kinds == [MessageEvent, StartEvent, DeltaEvent, DeltaEvent, DoneEvent]
    assert turn.text == "ab"
    assert turn.timing is not None
    assert turn.timing.ttft_ms == 20


async def test_messages_get_their_own_turns_in_order(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        turns = [chat.send("1"), chat.send("2")]
        sends = [await server.peer.command("send") for _ in turns]
        assert [send["content"] for send in sends] == ["1", "2"]
        messages = [await server.message("c", send) for send in sends]
        for message, text in zip(messages, ["one", "two"], strict=True):
            number = await server.start("c", message)
            await server.say("c", number, text)
            await server.done("c", number)
        assert [await turn.answer() for turn in turns] == ["one", "two"]
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("status", "reason"),
    [("incomplete", "max_output_tokens"), ("interrupted", "by_client")],
)
async def test_only_a_completed_answer_is_taken_for_one(
    server: Double, status: str, reason: str
) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")

        async def serve() -> None:
            number = await server.begin()
            await server.say("c", number, "half of")
            await server.done("c", number, status=status, reason=reason)

        tasks.start_soon(serve)
        with pytest.raises(IncompleteAnswerError) as error:
            await chat.ask("hi")
    assert error.value.text == "half of"
    assert (error.value.done.status, error.value.done.reason) == (status, reason)


async def test_a_failure_without_a_reason_is_a_failure(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")

        async def serve() -> None:
            await server.done("c", await server.begin(), status="failed")

        tasks.start_soon(serve)
        with pytest.raises(TurnError) as caught:
            await chat.ask("hi")
    assert (caught.value.code, caught.value.retryable) == ("internal", False)
    assert chat.cursor == Cursor(conversation="c", epoch="e1", last=3)


async def test_leaving_a_turn_early_stops_it_at_what_was_seen(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        numbers: list[int] = []

        async def serve() -> None:
            numbers.append(await server.begin())
            await server.say("c", numbers[0], "a", "b", "c")

        tasks.start_soon(serve)
        async with chat.send("hi") as turn:
            async for event in turn:
                if isinstance(event, DeltaEvent) and event.text == "b":
                    break
        interrupt = await server.peer.command("interrupt")
        assert (interrupt["turn"], interrupt["seen_seq"]) == (numbers[0], event.seq)


async def test_leaving_a_finished_turn_stops_nothing(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        tasks.start_soon(server.answer, "c", "a")
        async with chat.send("hi") as turn:
            await turn.wait()
        await anyio.sleep(1)
        assert server.peer.waiting() == 0


async def test_a_send_that_has_not_begun_is_stopped_by_its_id(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        turn = chat.send("hi")
        send = await server.peer.command("send")
        tasks.start_soon(turn.interrupt)
        interrupt = await server.peer.command("interrupt")
        assert interrupt["send"] == send["id"] == turn.send_id
        assert "turn" not in interrupt
        await server.peer.reply(interrupt, "dequeued")


async def test_the_running_turn_is_stopped_and_joined(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        assert chat.running() is None
        first = chat.send("hi")
        number = await server.begin()
        await server.say("c", number, "before ")
        await first.accepted()
        await anyio.sleep(1)
        joined = chat.running()
        assert joined is not None
        assert (joined.turn_id, joined.send_id, joined.text) == (
            number,
            None,
            "before ",
        )
        tasks.start_soon(chat.interrupt)
        interrupt = await server.peer.command("interrupt")
        assert (interrupt["turn"], interrupt["seen_seq"]) == (number, chat.view.last)
        await server.peer.reply(interrupt, "interrupted", turn=number, keep_through=4)
        await server.done("c", number, status="interrupted", reason="by_client")
        assert (await joined.wait()).status == "interrupted"
        assert (await first.wait()).status == "interrupted"


async def test_a_steering_message_follows_the_turn_it_joins(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        chat.send("hi")
        number = await server.begin()
        await anyio.sleep(1)
        steer = chat.send("rather in French", policy="steer")
        tasks.start_soon(steer.wait)
        send = await server.peer.command("send")
        assert send["policy"] == "steer"
        await server.message("c", send, steers=number)
        await server.say("c", number, "oui")
        await server.done("c", number)
        assert await steer.answer() == "oui"


async def test_interrupting_by_a_message_says_what_was_seen(server: Double) -> None:
    async with connect(server.url) as client:
        chat = await client.open("c")
        chat.send("hi")
        number = await server.begin()
        await server.say("c", number, "a")
        await anyio.sleep(1)
        chat.send("stop, rather this", policy="interrupt")
        send = await server.peer.command("send")
        assert send["seen_seq"] == chat.view.last == 3


async def lose_the_log(server: Double, *events: dict[str, Any]) -> None:
    """The server comes back with another log."""
    server.epoch = "e2"
    server.logs["c"] = [
        event | {"conversation": "c", "seq": seq} for seq, event in enumerate(events, 1)
    ]
    server.peer.cut()
    await server.connection(len(server.peers) + 1)
    await anyio.sleep(1)


async def test_a_reset_ends_a_reading_that_it_makes_void(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        tasks.start_soon(server.begin)
        turn = chat.send("hi")
        async for event in turn:
            if isinstance(event, StartEvent):
                break
        await lose_the_log(server)
        with pytest.raises(ConversationResetError) as error:
            async for _ in turn:
                pass
        assert error.value.reason == "epoch_changed"
        assert chat.view.timeline == []


async def test_a_reset_doubles_no_text_that_was_read(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")

        async def serve() -> None:
            await server.say("c", await server.begin(), "a")

        tasks.start_soon(serve)
        turn = chat.send("hi")
        async for event in turn:
            if isinstance(event, DeltaEvent):
                break
        await lose_the_log(server, *server.logs["c"])
        await server.done("c", 2)
        with pytest.raises(ConversationResetError):
            await anext(turn)
        assert [turn.text for turn in chat.view.turns.values()] == ["a"]


async def test_a_reset_in_which_the_message_is_kept_ends_no_waiting(
    server: Double,
) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        answers: list[str] = []

        async def ask() -> None:
            answers.append(await chat.ask("hi"))

        tasks.start_soon(ask)
        number = await server.begin()
        await server.say("c", number, "hal")
        await anyio.sleep(1)
        message, start, _ = server.logs["c"]
        await lose_the_log(server, message, start)
        await server.say("c", number, "whole")
        await server.done("c", number)
    assert answers == ["whole"]


async def test_a_reset_in_which_the_message_is_gone_ends_the_waiting(
    server: Double,
) -> None:
    async with connect(server.url) as client:
        chat = await client.open("c")
        turn = chat.send("hi")
        await server.begin()
        await turn.accepted()
        await lose_the_log(server)
        with pytest.raises(ConversationResetError):
            await turn.wait()


async def test_history_is_there_when_open_returns(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")
        tasks.start_soon(server.answer, "c", "a")
        await chat.ask("hi")
    async with connect(server.url) as client:
        chat = await client.open("c")
        assert [turn.text for turn in chat.view.turns.values()] == ["a"]


async def test_a_log_whose_beginning_is_gone_is_folded_from_there(
    server: Double,
) -> None:
    async def verdict(peer: Any, frame: dict[str, Any]) -> None:
        await peer.reply(
            frame, "replay", conversation="c", epoch="e1", head=8, oldest=8
        )
        await peer.send(type="delta", conversation="c", seq=8, turn=2, text="the end")
        await peer.send(type="caught_up", conversation="c", seq=8)

    server.open = verdict  # pyright: ignore[reportAttributeAccessIssue]
    async with connect(server.url) as client:
        chat = await client.open("c")
        assert chat.view.turns[2].text == "the end"


async def test_the_tools_that_the_server_offers_are_told(server: Double) -> None:
    async def verdict(peer: Any, frame: dict[str, Any]) -> None:
        named = {"server_tools": ["stock"]} if frame["conversation"] == "c" else {}
        await peer.reply(
            frame, "created", conversation=frame["conversation"], epoch="e1", **named
        )
        await peer.send(type="caught_up", conversation=frame["conversation"], seq=0)

    server.open = verdict  # pyright: ignore[reportAttributeAccessIssue]
    async with connect(server.url) as client:
        assert (await client.open("c")).server_tools == ("stock",)
        assert (await client.open("d")).server_tools == ()


async def test_settings_of_an_existing_conversation_are_changed_where_they_differ(
    server: Double,
) -> None:
    server.logs["c"] = [
        {
            "type": "config", "conversation": "c", "seq": 1,
            "config": {"model": "old", "instructions": "be brief"},
        }
    ]  # fmt: skip
    opened: list[Chat] = []
    async with connect(server.url) as client, anyio.create_task_group() as tasks:

        async def enter() -> None:
            opened.append(await client.open("c", model="new", instructions="be brief"))

        tasks.start_soon(enter)
        configure = await (await server.connection(1)).command("configure")
        assert configure["config"] == {"model": "new"}
        await server.event("c", "config", config={"model": "new"})
        await server.peer.reply(configure, "configured", seq=2)
    async with connect(server.url) as client:
        chat = await client.open("c", config=Config(model="new"))
        assert chat.view.config.model == "new"
        assert server.peer.waiting() == 0


async def test_a_new_conversation_is_made_with_its_settings(server: Double) -> None:
    async with connect(server.url) as client:
        chat = await client.open(model="m", params={"temperature": 0})
        (opening,) = server.peer.opens
        assert opening["conversation"] == chat.conversation
        assert opening["config"] == {"model": "m", "params": {"temperature": 0}}
        with pytest.raises(ValueError, match="open already"):
            await client.open(chat.conversation)


async def test_fork_close_and_delete(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")

        async def serve() -> None:
            fork = await server.peer.command("fork")
            assert fork["through"] == 0
            await server.peer.reply(fork, "created", conversation="c2")
            await server.peer.command("send")
            await server.peer.reply(await server.peer.command("close"), "closed")
            await server.peer.reply(await server.peer.command("delete"), "deleted")

        tasks.start_soon(serve)
        other = await client.open(await chat.fork())
        assert other.conversation == "c2"
        waiting = chat.send("hi")
        await chat.close()
        with pytest.raises(ConversationNotFoundError):
            await waiting.wait()
        await other.delete()
        again = await client.open("c")
        assert again.view is not chat.view


async def test_what_can_not_be_sent_is_said_at_once(server: Double) -> None:
    async with connect(server.url) as client:
        chat = await client.open("c")
        with pytest.raises(TooLargeError):
            await chat.ask("x" * 300_000)
        await anyio.sleep(1)
        assert len(server.peers) == 1


async def test_what_ask_is_given_is_sent(server: Double) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")

        async def serve() -> None:
            send = await server.peer.command("send")
            given = (send["on_disconnect"], send["policy"], send["metadata"])
            assert given == ("cancel", "reject", {"n": 1})
            number = await server.start("c", await server.message("c", send))
            await server.done("c", number)

        tasks.start_soon(serve)
        await chat.ask("hi", policy="reject", on_disconnect="cancel", metadata={"n": 1})


def test_a_client_shows_nothing_but_what_an_application_calls() -> None:
    shown = {name for name in vars(Client) if not name.startswith("_")}
    assert shown == {"welcome", "connected", "open", "drop", "refresh"}
