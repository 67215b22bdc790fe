"""One turn without `await`; `client_demo.sync` makes it."""

from collections import deque
from collections.abc import Generator
from copy import deepcopy
from functools import partial
from types import TracebackType
from typing import Self

import anyio
from anyio.from_thread import BlockingPortal

from client_demo import turn as async_turn
from client_demo.sync_call import call
from protocol.commands import Keep
from protocol.content import Timing
from protocol.control import Reply
from protocol.events import DeltaEvent, DoneEvent, LogEvent
from protocol.view import TurnView


class Turn:
    """A message and all that the assistant does for it.

        for event in chat.send("hi"): ...             # every event, once
        for text in chat.send("hi").pieces(): ...
        with chat.send("hi") as turn: ...             # leaving early stops it
        done = chat.send("hi").wait()                 # only how it ended

    Ctrl-C in the middle loses no event: who iterates on gets the next one.
    """

    def __init__(self, portal: BlockingPortal, turn: async_turn.Turn) -> None:
        self._portal = portal
        self._turn = turn
        self._read: deque[LogEvent | None] = deque()
        self._reading = anyio.Lock()

    @property
    def send_id(self) -> str | None:
        """The id of the message's send; None where somebody else's turn was joined."""
        return self._turn.send_id

    @property
    def turn_id(self) -> int | None:
        """The turn's id, the number of its `start`; None until it begins."""
        return self._turn.turn_id

    @property
    def done(self) -> DoneEvent | None:
        """How it ended; None until its end has arrived, read or not."""
        return self._turn.done

    @property
    def timing(self) -> Timing | None:
        """How long it took, as the server measured it; None before the end."""
        return self._turn.timing

    @property
    def view(self) -> TurnView | None:
        """A copy of all that has arrived of it; None until it begins."""
        return self._portal.call(lambda: deepcopy(self._turn.view))

    @property
    def text(self) -> str:
        """The answer as far as it has arrived and is kept."""
        return self._portal.call(lambda: self._turn.text)

    def pieces(self) -> Generator[str]:
        """Yields the answer's text as it comes; other events are read and passed over.

        Raises:
            ClientError: As for `wait`. However the turn ends, text just ends here;
                `done` says how.
        """
        for event in self:
            if isinstance(event, DeltaEvent):
                yield event.text

    def accepted(self) -> None:
        """Waits until the server has the message: from here on it can't get lost.

        Raises:
            CommandError: The server refused it.
            ClientError: It can't be known.
        """
        self._portal.call(self._turn.accepted)

    def wait(self) -> DoneEvent:
        """Waits for the end.

        Raises:
            ClientError: There will be none, as for `accepted`.
        """
        return self._portal.call(self._turn.wait)

    def answer(self) -> str:
        """Waits for the whole answer.

        Raises:
            TurnError: The turn failed.
            IncompleteAnswerError: It was interrupted or cut short; has the text.
            ClientError: As for `accepted`.
        """
        return self._portal.call(self._turn.answer)

    def interrupt(
        self, *, keep: Keep | None = None, seen_seq: int | None = None
    ) -> Reply:
        """Stops it, in whatever phase it is; its `done` follows.

        Args:
            keep: Which text stays; None for what was seen, where that is known.
            seen_seq: The last number that the user saw; None takes that of the
                last event that was read from here.

        Raises:
            ClientError: The server refused, or the client has stopped.
        """
        stop = partial(self._turn.interrupt, keep=keep, seen_seq=seen_seq)
        return self._portal.call(stop)

    def __enter__(self) -> Self:
        return call(self._portal, self._turn.__aenter__, _leave, lambda _: self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._portal.call(self._turn.__aexit__, kind, error, traceback)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> LogEvent:
        while not self._read:
            # After a Ctrl-C here the reading goes on, and what it gets waits.
            self._portal.call(self._read_one)
        event = self._read.popleft()
        if event is None:
            self._read.append(None)
            raise StopIteration
        return event

    async def _read_one(self) -> None:
        async with self._reading:
            if not self._read:
                self._read.append(await anext(self._turn, None))


async def _leave(turn: async_turn.Turn) -> None:
    await turn.__aexit__(None, None, None)
