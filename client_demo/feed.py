"""What one reader of a turn gets: the reply to its send, then the turn's events.

The inner side of `client_demo.turn`; `client_demo.conversation` fills it.
"""

import anyio

from client_demo.errors import ClientError
from client_demo.inbox import Inbox
from protocol.client.events import ResetReason
from protocol.control import Reply
from protocol.events import DoneEvent, LogEvent


class TurnFeed:
    """A send on its way to be a turn, and the turn.

    Attributes:
        send: The id of the send; None before it has one, and for a turn that
            somebody else began.
        message: The number of its message; None until it is in the log.
        number: The turn's; None until it has begun.
        done: How it ended; None before.
        reply: What the server said to the send; None before.
        doubt: Why a message that the server took may be gone; None where it is
            not in doubt.
        started_reading: The application got events of it, which a reset voids.
    """

    def __init__(self, send: str | None, number: int | None = None) -> None:
        self.send = send
        self.message: int | None = None
        self.number = number
        self.done: DoneEvent | None = None
        self.reply: Reply | None = None
        self.doubt: ResetReason | None = None
        self.started_reading = False
        self.inbox = Inbox()
        self._accepted = anyio.Event()
        self._error: ClientError | None = None
        if number is not None:
            self._accepted.set()

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.done is not None or self._error is not None

    def accept(self, reply: Reply) -> None:
        """Takes the server's reply to the send."""
        self.reply = reply
        self._accepted.set()

    def put(self, event: LogEvent) -> None:
        """Takes an event of the turn."""
        if isinstance(event, DoneEvent):
            self.done = event
        self.inbox.put(event)
        if self.done is not None:
            self.inbox.end()

    def fail(self, error: ClientError) -> None:
        """Says that nothing more will come, and why."""
        if not self.over:
            self._error = error
            self.inbox.end(error)
            self._accepted.set()

    def begin_anew(self, reason: ResetReason) -> None:
        """Forgets what was not read: the log comes again from its beginning."""
        self.doubt = reason if self.reply is not None else None
        self.message = None
        self.number = None
        self.inbox.clear()

    async def accepted(self) -> None:
        """Waits until the server has taken the send.

        Raises:
            ClientError: It has not.
        """
        await self._accepted.wait()
        if self._error is not None:
            raise self._error
