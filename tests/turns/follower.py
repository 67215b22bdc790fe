"""A viewer that follows a log by a cursor, as a connection does, and folds it."""

from typing import Any

import anyio
import msgspec

from protocol.events import LogEvent, SkipEvent, TextEvent
from protocol.fold import ConversationView
from tests.fakes.rig import FakeViewer
from wsserver.log.entry import Entry
from wsserver.turns.conversation import Conversation

_decode = msgspec.json.Decoder(LogEvent).decode


class Follower(FakeViewer):
    """A client that shows a conversation.

    Attributes:
        view: What it shows.
        position: Its cursor.
        events: What it was sent.
    """

    def __init__(
        self, conversation: Conversation, connection: str, *handles: str
    ) -> None:
        super().__init__(conversation, connection, *handles)
        self.view = ConversationView(last=conversation.log.oldest - 1)
        self.position = conversation.log.oldest - 1
        self.events: list[Any] = []
        self.pause_seconds = 0.0
        self._woken = anyio.Event()
        self._scope = anyio.CancelScope()

    def sent_through(self) -> int:
        return self.position

    def request_tool(self, request: Any) -> None:
        assert request.name in self.handles
        super().request_tool(request)

    def stop(self) -> None:
        """The connection is gone."""
        self._scope.cancel()
        self._conversation.detach(self)

    async def run(self, conversation: Conversation) -> None:
        """Follows a conversation from the cursor on, until it is stopped."""
        self._conversation = conversation
        with anyio.CancelScope() as self._scope:
            await self._follow()

    async def _follow(self) -> None:
        log = self._conversation.log
        log.subscribe(self._wake)
        try:
            while True:
                self._woken = anyio.Event()
                entries = log.read(self.position, 300)
                if entries is None:
                    entries = await log.fetch(self.position, 300)
                if not entries:
                    await self._woken.wait()
                for entry in entries:
                    self._take(entry)
                if self.pause_seconds:
                    await anyio.sleep(self.pause_seconds)
        finally:
            log.unsubscribe(self._wake)

    def _wake(self) -> None:
        self._woken.set()

    def _take(self, entry: Entry) -> None:
        log = self._conversation.log
        assert entry.seq <= log.stored, "it is not stored"
        event = _decode(entry.frame(msgspec.json.encode(log.conversation)))
        if isinstance(event, TextEvent) and event.turn in self.muted:
            event = SkipEvent(
                conversation=event.conversation,
                seq=event.seq,
                first=entry.first if entry.first != entry.seq else None,
            )
        assert entry.first == self.position + 1
        self.view.apply(event)
        self.events.append(event)
        self.position = entry.seq
