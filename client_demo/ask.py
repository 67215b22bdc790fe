"""`ask`: one question, the answer on standard output."""

import signal
import sys

import anyio
from anyio.abc import TaskGroup

from client_demo.client import connect
from client_demo.complaints import complaint
from client_demo.errors import ClientError, NotConnectedError
from client_demo.exit_codes import COMPLETE, FAILED, INCOMPLETE, NO_CONNECTION
from client_demo.session import Notice
from client_demo.tasks import task_group
from client_demo.turn import Turn
from protocol.client.events import Connected, Disconnected
from protocol.codec import encode
from protocol.control_characters import without_controls
from protocol.events import DeltaEvent, DoneEvent, RefusalEvent


async def ask(
    prompt: str,
    *,
    url: str,
    token: str | None,
    model: str | None,
    conversation: str | None,
    instructions: str | None = None,
    as_json: bool,
) -> int:
    """Asks and prints; an interrupt (Ctrl-C) stops the answer and keeps what was shown.

    Args:
        prompt: What to ask.
        url: The server's.
        token: Credentials.
        model: None takes the conversation's or the server's.
        conversation: Goes on with this one; None begins one.
        instructions: What the model is told before all; None leaves it.
        as_json: Prints each event as a line of JSON in place of the text.

    Returns:
        The exit code: 0 whole, 1 failed or refused, 3 interrupted or incomplete, 4 no
        connection.
    """
    models: list[str] = []
    try:
        async with connect(url, token=token, notify=_Outages().noticed) as client:
            models = client.welcome.models
            chat = await client.open(
                conversation, model=model, instructions=instructions
            )
            turn = chat.send(prompt)
            async with task_group() as tasks:
                tasks.start_soon(_obey_signals, turn, tasks)
                await _print(turn, as_json=as_json)
            return _verdict(turn)
    except NotConnectedError as error:
        _complain(str(error))
        return NO_CONNECTION
    except ClientError as error:
        _complain(complaint(error, token=token, models=models))
    return FAILED


class _Outages:
    """Says once that the connection is lost, and once that it is back."""

    def __init__(self) -> None:
        self._connected = False

    def noticed(self, notice: Notice) -> None:
        match notice:
            case Connected():
                self._connected = True
                if notice.resumed:
                    _complain("connected again")
            case Disconnected() if self._connected:
                self._connected = False
                _complain("connection lost; trying again (Ctrl-C twice to give up)")
            case _:
                pass


async def _print(turn: Turn, *, as_json: bool) -> None:
    out = sys.stdout
    shown = without_controls if out.isatty() else str
    async for event in turn:
        if as_json:
            out.write(shown(encode(event).decode()) + "\n")
        elif isinstance(event, DeltaEvent):
            out.write(shown(event.text))
        elif isinstance(event, RefusalEvent):
            _complain(event.text, end="")
        elif isinstance(event, DoneEvent):
            out.write("\n")
        out.flush()


async def _obey_signals(turn: Turn, tasks: TaskGroup) -> None:
    """Stops the answer at the first signal, and does not wait at the second."""
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        await anext(signals)
        tasks.start_soon(turn.interrupt)
        await anext(signals)
        tasks.cancel_scope.cancel()


def _verdict(turn: Turn) -> int:
    done = turn.done
    if done is None:
        _complain("interrupted before the server said how it ended")
        return INCOMPLETE
    if turn.view is not None and turn.view.proven is False:
        _complain("the text received is not the text that the server keeps")
        return FAILED
    if done.status == "completed":
        return COMPLETE
    if done.status != "failed":
        _complain(f"{done.status}: {done.reason}")
        return INCOMPLETE
    error = turn.view.error if turn.view is not None else None
    _complain(f"{error.code}: {error.message}" if error else "the turn failed")
    return FAILED


def _complain(message: str, end: str = "\n") -> None:
    sys.stderr.write(without_controls(message) + end)
