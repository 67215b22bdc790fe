"""Which conversations a connection has open, and how one is opened."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Literal

import structlog
from msgspec import UNSET, Struct, UnsetType

from protocol.codec import encode
from protocol.commands import Open
from protocol.control import Reply
from wsserver.connections.errors import error_frame
from wsserver.connections.fetcher import Fetcher
from wsserver.connections.metrics import ConnectionMetrics
from wsserver.connections.session import Session
from wsserver.connections.verdict import Cursor, verdict
from wsserver.connections.viewer import View, ViewOptions
from wsserver.connections.writer import Writer
from wsserver.turns.alarms import Alarms
from wsserver.turns.conversation import Conversation
from wsserver.turns.errors import refusal

MOST_TOOLS_TOLD = 1_000
"""So many of the server's tools a reply to `open` names: more need not fit in a frame."""

logger = structlog.get_logger(__name__)


class _Opened(Struct, frozen=True):
    conversation: Conversation
    view: View


class Views:
    """The open conversations of one connection, by id."""

    def __init__(
        self,
        session: Session,
        writer: Writer,
        fetcher: Fetcher,
        metrics: ConnectionMetrics,
        alarms: Alarms,
        max_open: int,
    ) -> None:
        """Begins with none; `max_open` is the limit that `welcome` announced."""
        self._session = session
        self._writer = writer
        self._fetcher = fetcher
        self._metrics = metrics
        self._alarms = alarms
        self._max_open = max_open
        self._opened: dict[str, _Opened] = {}
        self._deleting: set[str] = set()

    def view_of(self, conversation: Conversation) -> View | None:
        """Returns this connection's view, None if it is not open."""
        opened = self._opened.get(conversation.log.conversation)
        if opened is None or opened.conversation is not conversation:
            return None
        return opened.view

    def heads(self) -> dict[str, int]:
        """Returns the last number of each open conversation."""
        return {
            conversation: opened.view.log.stored
            for conversation, opened in self._opened.items()
        }

    def lags(self) -> list[int]:
        """Returns of each open conversation how many numbers were not sent yet."""
        views = [opened.view for opened in self._opened.values()]
        return [max(0, view.log.stored - view.position) for view in views]

    def ack(self, conversation: str, seq: int) -> None:
        """Opens the window of a conversation; ignored when it is not open."""
        opened = self._opened.get(conversation)
        if opened is not None:
            opened.view.ack(seq)

    def check_room(self, conversation: str) -> None:
        """Refuses one conversation too many.

        Raises:
            CommandError: `too_many_conversations`.
        """
        if conversation in self._opened:
            return
        self._session.share.check_room()
        if len(self._opened) >= self._max_open:
            raise refusal(
                "too_many_conversations",
                f"{len(self._opened)} conversations are open on this connection,"
                " which is the limit; close one first.",
            )

    def open(
        self,
        frame: Open,
        conversation: Conversation,
        cursor: Cursor | None,
        *,
        created: bool,
    ) -> None:
        """Attaches to a conversation, replies, and replaces an earlier view of it.

        One step without an await: what is stored after the head in the reply is
        live, what is before it is replay.

        Raises:
            CommandError: `too_many_conversations`.
        """
        log = conversation.log
        self.check_room(log.conversation)
        judged = verdict(cursor, epoch=log.epoch, head=log.stored, oldest=log.oldest)
        view = View(
            connection=self._session.connection,
            log=log,
            after=judged.after,
            options=ViewOptions(
                handles=frozenset(frame.handles or ()),
                frames=frame.view == "frames",
                tool_deltas="tool_delta" in (frame.include or ()),
                window_bytes=frame.window_bytes,
                max_delay_seconds=None
                if frame.max_delay_ms is None
                else frame.max_delay_ms / 1000,
            ),
            gates=self._writer.gates,
            push=self._writer.push,
            alarms=self._alarms,
            on_wake=self._writer.mark,
            on_starved=self._fetcher.fetch,
            on_deleted=self._deleted,
        )
        if frame.handles:
            view.let_run(self._may_answer(log.conversation))
        running = conversation.running
        outcome: Literal["created", "replay", "reset"]
        outcome = "created" if created else judged.outcome
        reply = Reply(
            re=frame.id,
            ok=True,
            outcome=outcome,
            conversation=log.conversation,
            epoch=log.epoch,
            head=log.stored,
            oldest=log.oldest,
            turn=running if 0 < running <= log.stored else None,
            last_ids=conversation.last_ids(self._session.principal.name),
            reason=judged.reason,
            server_tools=self._tools_to_choose(conversation),
        )
        self._writer.answer(encode(reply))
        self._metrics.resume(outcome, judged.reason)
        if judged.reason == "seq_ahead":
            logger.warning("cursor_ahead", key=log.key, head=log.stored)
        earlier = self._opened.get(log.conversation)
        self._session.share.conversations += earlier is None
        self._opened[log.conversation] = _Opened(conversation, view)
        log.subscribe(view.wake)
        conversation.attach(view)
        if earlier is not None:
            # After the new one is there: a turn that minds being left is not.
            self._leave(earlier)
        view.wake()

    def reconsider(self) -> bool:
        """Goes by new credentials; returns whether they allow to read what is open."""
        for name, opened in self._opened.items():
            if not self._session.may("open", name):
                return False
            if opened.view.let_run(self._may_answer(name)):
                opened.conversation.handles_changed(opened.view)
        return True

    def close(self, conversation: str) -> None:
        """Leaves a conversation; harmless when it is not open."""
        opened = self._opened.pop(conversation, None)
        if opened is not None:
            self._session.share.conversations -= 1
            self._leave(opened)

    @contextmanager
    def deleting(self, conversation: str) -> Generator[None]:
        """Leaves a conversation that this client deletes, without telling it."""
        self._deleting.add(conversation)
        try:
            yield
        finally:
            self._deleting.discard(conversation)
            opened = self._opened.get(conversation)
            if opened is not None and opened.conversation.deleted:
                self.close(conversation)

    def clear(self) -> None:
        """Leaves all, even where leaving one fails."""
        with ExitStack() as left:
            for conversation in self._opened:
                left.callback(self.close, conversation)

    def _may_answer(self, conversation: str) -> bool:
        """Whether it may answer a tool call; else it is not asked to run one."""
        return self._session.may("tool_result", conversation)

    def _tools_to_choose(self, conversation: Conversation) -> list[str] | UnsetType:
        """Returns the server's tools for who may put them into the settings."""
        names = list(conversation.server_tools)[:MOST_TOOLS_TOLD]
        if names and self._session.may("configure", conversation.log.conversation):
            return names
        return UNSET

    def _leave(self, opened: _Opened) -> None:
        opened.view.close()
        opened.conversation.detach(opened.view)

    def _deleted(self, view: View) -> None:
        """Leaves a conversation that somebody deleted, and tells the client."""
        conversation = view.log.conversation
        opened = self._opened.get(conversation)
        assert opened is not None, "a view that was left does not look"
        assert opened.view is view, "a view that was replaced does not look"
        self.close(conversation)
        if conversation in self._deleting:
            return
        gone = refusal(
            "conversation_not_found", f"The conversation {conversation} was deleted."
        )
        self._writer.push(error_frame(gone.body, None, gone=conversation))
