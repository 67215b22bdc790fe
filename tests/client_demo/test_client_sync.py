"""The client without `await`, on the real server."""

import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from client_demo import IncompleteAnswerError, NotConnectedError, ToolContext
from client_demo.session import Notice
from client_demo.sync import Client, connect
from protocol.client.events import Connected
from protocol.content import Config
from protocol.events import DeltaEvent
from tests.fakes.server import ServerProcess
from tests.fakes.server import server as server_process

WAIT_SECONDS = 15


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as made:
        yield made


@pytest.fixture(scope="module")
def real(
    portal: BlockingPortal, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    folder: Path = tmp_path_factory.mktemp("server")
    starting = server_process("--store", "memory", folder=folder)
    with portal.wrap_async_context_manager(starting) as made:
        yield made


@pytest.fixture
def client(real: ServerProcess) -> Iterator[Client]:
    with connect(real.url, backoff_seconds=(0.05, 0.2)) as made:
        yield made


def test_a_whole_talk(client: Client) -> None:
    assert client.connected
    assert "demo/echo" in client.welcome.models
    chat = client.open(model="demo/echo")
    assert chat.ask("one two") == "one two"
    with chat.send("three") as turn:
        got = "".join(turn.pieces())
    assert got == turn.text == "three"
    assert turn.done is not None
    assert turn.done.status == "completed"
    assert turn.timing is not None
    assert (turn.turn_id, turn.send_id) != (None, None)
    assert [each.text for each in chat.view.turns.values()] == ["one two", "three"]
    assert chat.cursor is not None
    assert chat.cursor.last == chat.view.last
    assert chat.running() is None
    fork = client.open(chat.fork())
    chat.configure(Config(model="demo/fast"))
    assert chat.view.config.model == "demo/fast"
    assert fork.view.config.model == "demo/echo"
    fork.delete()
    chat.close()


def test_a_view_is_a_copy(client: Client) -> None:
    chat = client.open(model="demo/echo")
    before = chat.view
    chat.ask("hi")
    assert not before.turns
    assert len(chat.view.turns) == 1


def test_leaving_early_stops_the_turn(client: Client) -> None:
    chat = client.open(model="demo/long")
    seen = ""
    with chat.send("hi") as turn:
        for piece in turn.pieces():
            seen += piece
            if len(seen) > 40:
                break
    assert turn.wait().reason == "by_client"
    assert turn.text == seen
    with pytest.raises(IncompleteAnswerError):
        turn.answer()
    assert turn.interrupt().outcome == "already_finished"
    assert chat.interrupt().outcome == "already_finished"


def test_ctrl_c_loses_no_event(client: Client) -> None:
    """It comes while the program waits for the next event; then it reads on."""
    turn = client.open(model="demo/emoji").send("hi")
    main = threading.main_thread().ident
    assert main is not None
    got = ""
    interrupts = 0
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        while turn.done is None:
            try:
                if interrupts < 3:
                    threading.Timer(0.02, signal.pthread_kill, [main, 2]).start()
                for event in turn:
                    got += event.text if isinstance(event, DeltaEvent) else ""
            except KeyboardInterrupt:
                interrupts += 1
    finally:
        signal.signal(signal.SIGINT, old)
    assert interrupts == 3
    assert got == turn.text


def test_a_cut_in_the_middle_of_blocking_tools(real: ServerProcess) -> None:
    """Two calls at once in threads; each runs once, and both results arrive."""
    runs: Counter[str] = Counter()
    running = threading.Barrier(3)
    again = threading.Event()

    def noticed(notice: Notice) -> None:
        if isinstance(notice, Connected) and notice.resumed:
            again.set()

    def get_time(city: str, context: ToolContext) -> str:
        """Tells the time."""
        runs[city] += 1
        running.wait(WAIT_SECONDS)
        assert again.wait(WAIT_SECONDS)
        context.progress()
        return f"noon in {city}"

    with connect(real.url, backoff_seconds=(0.05, 0.2), notify=noticed) as client:
        chat = client.open(model="demo/tools", tools=[get_time])
        turn = chat.send("What time is it in Bern and in Oslo?")
        running.wait(WAIT_SECONDS)
        client.drop()
        answer = turn.answer()
    assert runs == {"Bern": 1, "Oslo": 1}
    assert 0 < answer.index("noon in Bern") < answer.index("noon in Oslo")


def test_a_token_from_a_function_and_no_server(real: ServerProcess) -> None:
    asked: list[int] = []

    def token() -> str:
        asked.append(threading.get_ident())
        return "t"

    with pytest.raises(NotConnectedError), connect("ws://127.0.0.1:9", token=token):
        raise AssertionError("there is no server")
    assert asked
    assert threading.get_ident() not in asked


def test_what_waits_ends_with_the_client(real: ServerProcess) -> None:
    errors: list[BaseException] = []

    with connect(real.url) as client:
        turn = client.open(model="demo/silent").send("hi")
        turn.accepted()

        def read() -> None:
            try:
                for _ in turn:
                    waiting.set()
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        waiting = threading.Event()
        reader = threading.Thread(target=read)
        reader.start()
        assert waiting.wait(WAIT_SECONDS)
    reader.join(WAIT_SECONDS)
    assert not reader.is_alive()
    assert errors
