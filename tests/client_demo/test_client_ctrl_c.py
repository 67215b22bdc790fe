"""Ctrl-C in the client without `await`: what was begun is taken back."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from client_demo.sync import connect
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
