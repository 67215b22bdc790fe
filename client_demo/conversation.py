"""One open conversation inside the client: its fold, and who reads which turn.

`client_demo.chat` is what applications see of it. Nothing here waits: events
come from the reader and are put where they belong.
"""

import anyio

from client_demo.errors import ClientError, ConversationResetError
from client_demo.feed import TurnFeed
from protocol.client.events import Reset
from protocol.control import Reply
from protocol.events import (
    DoneEvent,
    LogEvent,
    MessageEvent,
    StartEvent,
    TurnEvent,
)
from protocol.fold import ConversationView


class Conversation:
    """Folds events and hands them to the feeds of their turns.

    Attributes:
        name: The conversation's id.
        view: What there is of it; another object after a reset.
        server_tools: Names of tools that the server offers to run in it.
        acks_itself: What is replayed opens the window of `window_bytes` as it comes:
            who waits for the replay can't say that it was dealt with.
    """

    def __init__(self, name: str, *, has_window: bool) -> None:
        self.name = name
        self.acks_itself = has_window
        self.view = ConversationView(conversation=name)
        self.server_tools: tuple[str, ...] = ()
        self._has_window = has_window
        self._caught_up = anyio.Event()
        self._error: ClientError | None = None
        self._sends: dict[str, TurnFeed] = {}
        self._turns: dict[int, list[TurnFeed]] = {}

    async def history(self) -> None:
        """Waits until the history is in the view.

        Raises:
            ClientError: The conversation was lost before that.
        """
        await self._caught_up.wait()
        self.must_be_open()

    def must_be_open(self) -> None:
        """Makes sure that events of it still come.

        Raises:
            ClientError: It was closed, deleted or lost.
        """
        if self._error is not None:
            raise self._error

    def opened(self, reply: Reply) -> None:
        """Takes the verdict of the first open: where the events begin."""
        self.view.last = (reply.oldest or 1) - 1
        self.server_tools = tuple(reply.server_tools or ())

    def await_turn(self, feed: TurnFeed) -> None:
        """Adds a reader whose send is on its way."""
        assert feed.send is not None, "the turn of a send"
        self._sends[feed.send] = feed

    def running_turn(self) -> TurnFeed | None:
        """Adds a reader of the turn that runs; None where none does."""
        running = self.view.running
        if running is None:
            return None
        feed = TurnFeed(None, running.turn)
        if self._error is not None:
            feed.fail(self._error)
        else:
            self._turns.setdefault(running.turn, []).append(feed)
        return feed

    def refused(self, feed: TurnFeed, error: ClientError) -> None:
        """Ends a reader whose send came to nothing."""
        if feed.send is not None:
            self._sends.pop(feed.send, None)
        feed.fail(error)

    def apply(self, event: LogEvent) -> None:
        """Takes the next event."""
        self.view.apply(event)
        if isinstance(event, TurnEvent):
            if isinstance(event, StartEvent):
                self._begin(event)
            feeds = self._turns.get(event.turn)
            if feeds is not None:
                for feed in feeds:
                    feed.put(event)
                if isinstance(event, DoneEvent):
                    del self._turns[event.turn]
        elif isinstance(event, MessageEvent) and event.id in self._sends:
            self._in_log(self._sends[event.id], event)

    def offline(self) -> None:
        """The connection is gone; what was missed is replayed on the next one."""
        self.acks_itself = self._has_window

    def reset(self, reset: Reset) -> None:
        """Begins anew; readers that got something already must begin anew too."""
        self.acks_itself = self._has_window
        self.view = ConversationView(conversation=self.name, last=reset.cursor.last)
        waiting = [*self._sends.values()]
        for feeds in self._turns.values():
            waiting += feeds
        self._sends.clear()
        self._turns.clear()
        for feed in waiting:
            if feed.send is None or feed.started_reading:
                feed.fail(ConversationResetError(reset.reason))
            else:
                feed.begin_anew(reset.reason)
                self._sends[feed.send] = feed

    def replayed(self) -> None:
        """The history is there; a message that was taken and is not is lost."""
        self.acks_itself = False
        self._caught_up.set()
        for feed in [*self._sends.values()]:
            if feed.doubt is not None and feed.message is None:
                self.refused(feed, ConversationResetError(feed.doubt))

    def fail(self, error: ClientError) -> None:
        """Ends all readers, and what waits for the history."""
        self._error = error
        self._caught_up.set()
        for feed in self._sends.values():
            feed.fail(error)
        for feeds in self._turns.values():
            for feed in feeds:
                feed.fail(error)
        self._sends.clear()
        self._turns.clear()

    def _in_log(self, feed: TurnFeed, event: MessageEvent) -> None:
        feed.message = event.seq
        feed.put(event)
        if event.steers is not None and self._runs(event.steers):
            self._join(feed, event.steers)

    def _runs(self, turn: int) -> bool:
        running = self.view.running
        return running is not None and running.turn == turn

    def _begin(self, event: StartEvent) -> None:
        for feed in self._sends.values():
            if feed.message == event.message:
                self._join(feed, event.turn)
                return

    def _join(self, feed: TurnFeed, turn: int) -> None:
        assert feed.send is not None, "the turn of a send"
        feed.number = turn
        del self._sends[feed.send]
        self._turns.setdefault(turn, []).append(feed)
