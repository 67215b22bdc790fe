"""One turn as the application follows it: its events, its text, its end."""

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self

from anyio import get_cancelled_exc_class

from client_demo.conversation import Conversation
from client_demo.errors import (
    ClientError,
    IncompleteAnswerError,
    TurnError,
    turn_error,
)
from client_demo.feed import TurnFeed
from client_demo.session import Session
from protocol.client.machine import ClientProtocol
from protocol.commands import Interrupt, Keep
from protocol.content import Timing
from protocol.control import Reply
from protocol.events import DeltaEvent, DoneEvent, LogEvent
from protocol.view import TurnView


class Turn:
    """A message and all that the assistant does for it.

    Ways to follow it; each comes to an end with the turn:

        async for event in chat.send("hi"): ...       # every event, once
        async for text in chat.send("hi").pieces(): ...
        async with chat.send("hi") as turn: ...       # leaving early stops it
        done = await chat.send("hi").wait()           # only how it ended

    Events that are not read are kept, their text joined. A turn that nobody
    follows goes on all the same and is in `chat.view`. After a message with the
    policy `steer` these are the events of the turn that it steers.
    """

    def __init__(
        self, session: Session, conversation: Conversation, feed: TurnFeed
    ) -> None:
        self._session = session
        self._conversation = conversation
        self._feed = feed
        self._seen: int | None = None

    @property
    def send_id(self) -> str | None:
        """The id of the message's send; None where somebody else's turn was joined."""
        return self._feed.send

    @property
    def turn_id(self) -> int | None:
        """The turn's id, the number of its `start`; None until it begins."""
        return self._feed.number

    @property
    def done(self) -> DoneEvent | None:
        """How it ended; None until its end has arrived, read or not."""
        return self._feed.done

    @property
    def timing(self) -> Timing | None:
        """How long it took, as the server measured it; None before the end."""
        return self._feed.done.timing if self._feed.done else None

    @property
    def view(self) -> TurnView | None:
        """All that has arrived of it; None until it begins."""
        number = self._feed.number
        return None if number is None else self._conversation.view.turns.get(number)

    @property
    def text(self) -> str:
        """The answer as far as it has arrived and is kept."""
        return self.view.text if self.view is not None else ""

    async def pieces(self) -> AsyncGenerator[str]:
        """Yields the answer's text as it comes; other events are read and passed over.

        Raises:
            ClientError: As for `wait`. However the turn ends, text just ends here;
                `done` says how.
        """
        async for event in self:
            if isinstance(event, DeltaEvent):
                yield event.text

    async def accepted(self) -> None:
        """Waits until the server has the message: from here on it can't get lost.

        Raises:
            CommandError: The server refused it.
            ClientError: It can't be known.
        """
        await self._feed.accepted()

    async def wait(self) -> DoneEvent:
        """Waits for the end.

        Raises:
            ClientError: There will be none, as for `accepted`.
        """
        while self._feed.done is None:
            await self._feed.inbox.next()
        return self._feed.done

    async def answer(self) -> str:
        """Waits for the whole answer.

        Raises:
            TurnError: The turn failed.
            IncompleteAnswerError: It was interrupted or cut short; has the text.
            ClientError: As for `accepted`.
        """
        done = await self.wait()
        if done.status == "completed":
            return self.text
        if done.status != "failed":
            raise IncompleteAnswerError(self.text, done)
        error = self.view.error if self.view is not None else None
        if error is None:
            raise TurnError("internal", "no reason given", retryable=False)
        raise turn_error(error)

    async def interrupt(
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
        return await self._session.command(
            lambda machine: self._stop(machine, keep, seen_seq)
        )

    async def __aenter__(self) -> Self:
        try:
            await self.accepted()
        except get_cancelled_exc_class():
            self._leave()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LogEvent:
        self._feed.started_reading = True
        event = await self._feed.inbox.next()
        if event is None:
            raise StopAsyncIteration
        self._seen = event.seq
        return event

    def _leave(self) -> None:
        if not self._feed.over and self._session.stopped is None:
            self._session.submit(
                lambda machine: self._stop(machine, None, None), _ignore
            )

    def _stop(
        self, machine: ClientProtocol, keep: Keep | None, seen_seq: int | None
    ) -> Interrupt:
        number = self._feed.number
        return machine.interrupt(
            self._conversation.name,
            turn=number,
            send=self._feed.send if number is None else None,
            seen_seq=self._seen if seen_seq is None else seen_seq,
            keep=keep,
        )


def _ignore(result: Reply | ClientError) -> None:
    """What became of an interrupt that nobody waits for."""
    del result
