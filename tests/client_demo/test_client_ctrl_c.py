"""Ctrl-C in the client without `await`: what was begun is taken back."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from client_demo.sync import connect
from client_demo.sync_call import call
from tests.client_demo.double import Double, Frame, Peer, double


@pytest.fixture
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as made:
        yield made


@pytest.fixture
def server(portal: BlockingPortal) -> Iterator[Double]:
    with portal.wrap_async_context_manager(double()) as made:
        yield made


@contextmanager
def ctrl_c_raises() -> Iterator[None]:
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGINT, old)


def press() -> None:
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


def test_in_an_open_it_leaves_nothing_open(server: Double) -> None:
    answer = server.open

    async def press_instead(peer: Peer, frame: Frame) -> None:
        del peer, frame
        press()

    with connect(server.url) as client:
        server.open = press_instead  # pyright: ignore[reportAttributeAccessIssue]
        with ctrl_c_raises():
            client.open("c")
        server.open = answer
        assert client.open("c").conversation == "c"


def test_just_as_an_open_has_begun_it_leaves_nothing_open(
    server: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins = BlockingPortal.start_task_soon

    def interrupted(portal: BlockingPortal, run: Any) -> None:
        monkeypatch.undo()
        begins(portal, run)
        raise KeyboardInterrupt

    with connect(server.url) as client:
        monkeypatch.setattr(BlockingPortal, "start_task_soon", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.open("c")
        assert client.open("c").conversation == "c"


@pytest.fixture
def late_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Has the next call come to its end, and then not get what it returns."""
    begins = BlockingPortal.start_task_soon

    def interrupted(portal: BlockingPortal, run: Any) -> None:
        monkeypatch.undo()
        begins(portal, run).result(5)
        raise KeyboardInterrupt

    def arm() -> None:
        monkeypatch.setattr(BlockingPortal, "start_task_soon", interrupted)

    return arm


def test_just_as_an_open_has_ended_it_leaves_nothing_open(
    server: Double, portal: BlockingPortal, late_ctrl_c: Callable[[], None]
) -> None:
    async def closed() -> str:
        command = await server.peer.command("close")
        await server.peer.reply(command)
        return command["conversation"]

    with connect(server.url) as client:
        closing = portal.start_task_soon(closed)
        late_ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            client.open("c")
        assert closing.result(5) == "c"
        assert client.open("c").conversation == "c"


def test_just_as_a_block_is_entered_it_stops_the_turn(
    server: Double, portal: BlockingPortal, late_ctrl_c: Callable[[], None]
) -> None:
    with connect(server.url) as client:
        turn = client.open("c").send("hi")
        number = portal.call(server.begin)
        late_ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            turn.__enter__()
        interrupt = portal.call(server.peer.command, "interrupt")
    assert interrupt["turn"] == number


def test_what_fails_by_itself_is_raised_and_taken_back_by_nobody(
    portal: BlockingPortal,
) -> None:
    undone: list[None] = []

    async def fail() -> None:
        raise ZeroDivisionError

    async def undo(nothing: None) -> None:
        undone.append(nothing)

    with pytest.raises(ZeroDivisionError):
        call(portal, fail, undo, lambda nothing: nothing)
    assert not undone


def test_before_a_block_is_entered_it_takes_the_message_back(
    server: Double, portal: BlockingPortal
) -> None:
    with connect(server.url) as client:
        chat = client.open("c")
        threading.Timer(0.05, press).start()
        with ctrl_c_raises(), chat.send("hi"):
            raise AssertionError("it must not be entered")
        send = portal.call(server.peer.command, "send")
        interrupt = portal.call(server.peer.command, "interrupt")
    assert interrupt["send"] == send["id"]
