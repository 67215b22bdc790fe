"""Commands in: each to whom it concerns, in order for its conversation.

A command of a conversation that is in memory acts before the next frame is read.
One that needs the store waits in the lane of its conversation, and holds up no
other: an interrupt elsewhere never waits. New credentials, which may have to be
asked about elsewhere, have a lane of their own.
"""

from collections.abc import Callable
from typing import cast

from anyio.abc import TaskGroup
from msgspec import structs

from protocol.codec import encode
from protocol.commands import (
    Ack,
    ClientFrame,
    Close,
    Command,
    Configure,
    Delete,
    Fork,
    Hello,
    Interrupt,
    Open,
    Ping,
    Refresh,
    Send,
    ToolProgress,
    ToolResult,
)
from protocol.content import ErrorBody
from protocol.control import Pong, Reply
from wsserver.auth.principal import Verb
from wsserver.connections.backlog import Backlog
from wsserver.connections.errors import Answering, command_id
from wsserver.connections.gates import Held
from wsserver.connections.session import Session
from wsserver.connections.verdict import Cursor, read_cursor
from wsserver.connections.viewer import View
from wsserver.connections.views import Views
from wsserver.connections.writer import Writer
from wsserver.engine.moments import timestamp
from wsserver.log.waiting import until_kept
from wsserver.turns.applied import Applied
from wsserver.turns.conversation import Conversation
from wsserver.turns.directory import Directory
from wsserver.turns.errors import refusal, unknown_conversation

ConversationFrame = (
    Open | Configure | Send | Interrupt | ToolResult | ToolProgress | Fork | Ack
    | Close | Delete
)  # fmt: skip

MAX_HELD = 1_000
"""Replies of one connection that may wait for the store."""

_REFRESHES = ""
"""The lane of what belongs to no conversation; every key has a slash."""


class Dispatch:
    """Handles the frames of one client after its `hello`."""

    def __init__(
        self,
        session: Session,
        *,
        directory: Directory,
        views: Views,
        writer: Writer,
        tasks: TaskGroup,
        max_waiting: int,
        refuse: Callable[[ErrorBody, str | None], None],
        wall: Callable[[], float],
        new_id: Callable[[], str],
        refreshed: Callable[[], None],
    ) -> None:
        """Handles nothing before `take`.

        Args:
            session: Who the client is.
            directory: Where conversations are.
            views: Which of them are open here.
            writer: Takes what is answered.
            tasks: The connection's.
            max_waiting: How many commands may wait for the store.
            refuse: Answers with an error.
            wall: Returns seconds since the epoch.
            new_id: Returns an id for a conversation, hard to guess.
            refreshed: Told of new credentials.
        """
        self._session = session
        self._directory = directory
        self._views = views
        self._writer = writer
        self._backlog = Backlog(tasks=tasks, handle=self._handle, limit=max_waiting)
        self._refuse = refuse
        self._wall = wall
        self._new_id = new_id
        self._refreshed = refreshed

    def take(self, frame: ClientFrame) -> None:
        """Handles a frame at once, or lets it wait in its lane; raises nothing."""
        with Answering(self._refuse, command_id(frame)):
            match frame:
                case Ping():
                    pong = Pong(t=frame.t, server_time=timestamp(self._wall()))
                    self._writer.answer(encode(pong))
                case Refresh():
                    self._backlog.add(_REFRESHES, frame)
                case Hello():
                    raise refusal(
                        "bad_frame",
                        "`hello` was said before; send `refresh` for new credentials.",
                        param="$.type",
                    )
                case _:
                    self._route(frame)

    async def _handle(self, frame: ClientFrame) -> None:
        """Handles a frame whose turn in the backlog it is; raises nothing."""
        with Answering(self._refuse, command_id(frame)):
            match frame:
                case Open():
                    await self._open(frame)
                case Fork():
                    await self._fork(frame)
                case Delete():
                    await self._delete(frame)
                case Refresh():
                    await self._session.refresh(frame.token)
                    self._reply(frame, "refreshed")
                    self._refreshed()
                case Interrupt():
                    await self._interrupt(frame)
                case Configure() | Send() | ToolResult():
                    self._apply(frame, _known(await self._find(frame.conversation)))
                case Close() | Ack() | ToolProgress():
                    self._at_once(frame, self._key(frame.conversation))
                case _:
                    raise AssertionError(f"{type(frame)} never has to wait")

    def _route(self, frame: ConversationFrame) -> None:
        if isinstance(frame, Open):
            read_cursor(frame.after, frame.epoch)
            if frame.conversation is None:
                frame = structs.replace(frame, conversation=self._new_id())
        verb = cast("Verb", frame.__struct_config__.tag)
        key = self._session.authorize(verb, _conversation(frame))
        if self._backlog.holds(key) or not self._at_once(frame, key):
            self._backlog.add(key, frame)

    def _at_once(self, frame: ConversationFrame, key: str) -> bool:
        """Handles a frame that needs nothing of the store; says whether it did."""
        match frame:
            case Close():
                self._views.close(frame.conversation)
                self._reply(frame, "closed")
                return True
            case Ack():
                self._views.ack(frame.conversation, frame.seq)
                return True
            case ToolProgress():
                running = self._loaded(key)
                if running is not None:
                    running.tool_progress(frame.call)
                return True
            case Fork() | Delete():
                return False
            case _:
                conversation = self._loaded(key)
                return conversation is not None and self._in_memory(frame, conversation)

    def _in_memory(
        self,
        frame: Open | Configure | Send | Interrupt | ToolResult,
        conversation: Conversation,
    ) -> bool:
        if isinstance(frame, Open) and conversation.log.kept:
            cursor = read_cursor(frame.after, frame.epoch)
            self._views.open(frame, conversation, cursor, created=False)
        elif isinstance(frame, Open) or not conversation.remembers(
            frame, self._session.principal
        ):
            return False
        else:
            self._apply(frame, conversation)
        return True

    async def _open(self, frame: Open) -> None:
        name, cursor = _conversation(frame), read_cursor(frame.after, frame.epoch)
        self._views.check_room(name)
        while not await self._opened(frame, name, cursor):
            pass  # it was deleted meanwhile, so there is none

    async def _opened(self, frame: Open, name: str, cursor: Cursor | None) -> bool:
        """Opens a conversation that is there, or a new one; says whether it did."""
        conversation, created = await self._find(name), False
        if conversation is None:
            if cursor is not None or frame.epoch is not None:
                raise unknown_conversation()
            if not self._session.may("create", name):
                raise unknown_conversation(
                    "and these credentials do not allow making one"
                )
            key, principal = self._key(name), self._session.principal
            conversation, created = await self._directory.create(
                key, frame.config, principal
            )
        with conversation.held():
            await until_kept(conversation.log)
            if conversation.deleted:
                await self._directory.until_deleted(conversation.log.key)
                return False
            self._views.open(frame, conversation, cursor, created=created)
            return True

    async def _fork(self, frame: Fork) -> None:
        name = frame.new or self._new_id()
        self._session.authorize("create", name)
        source = _known(await self._find(frame.conversation))
        principal = self._session.principal
        applied = await self._directory.fork(source, frame, name, principal)
        self._writer.answer(encode(applied.reply))

    async def _delete(self, frame: Delete) -> None:
        key, principal = self._key(frame.conversation), self._session.principal
        with self._views.deleting(frame.conversation):
            applied = await self._directory.delete(key, frame, principal)
        self._writer.answer(encode(applied.reply))

    async def _interrupt(self, frame: Interrupt) -> None:
        conversation = _known(await self._find(frame.conversation))
        with conversation.held():
            view = self._views.view_of(conversation)
            principal = self._session.principal
            applied = await conversation.apply_older(frame, principal, view)
            self._applied(frame, conversation, view, applied)

    def _apply(
        self,
        frame: Configure | Send | Interrupt | ToolResult,
        conversation: Conversation,
    ) -> None:
        gates = self._writer.gates
        if gates.held >= MAX_HELD and not isinstance(frame, Interrupt):
            raise refusal(
                "store_unavailable",
                f"{gates.held} replies wait for the log to be written, which is the"
                " limit; send this again later under the same id.",
                retry_after_ms=1000,
            )
        view = self._views.view_of(conversation)
        applied = conversation.apply(frame, self._session.principal, view)
        self._applied(frame, conversation, view, applied)

    def _applied(
        self,
        frame: Command,
        conversation: Conversation,
        view: View | None,
        applied: Applied,
    ) -> None:
        if view is not None and applied.flush_through:
            view.flush(applied.flush_through)
        reply, meanwhile = applied.reply, None
        if isinstance(frame, Interrupt):
            meanwhile = encode(structs.replace(reply, stored=False))
        self._writer.gates.hold(
            conversation.log,
            Held(
                frame=encode(reply),
                re=frame.id,
                changes=conversation.log.changes,
                view=view,
                sent_through=applied.flush_through,
                meanwhile=meanwhile,
            ),
        )

    async def _find(self, conversation: str) -> Conversation | None:
        key = self._key(conversation)
        return self._loaded(key) or await self._directory.find(key)

    def _loaded(self, key: str) -> Conversation | None:
        conversation = self._directory.loaded(key)
        return None if conversation is None or conversation.deleted else conversation

    def _key(self, conversation: str) -> str:
        return self._session.principal.key(conversation)

    def _reply(self, frame: Command, outcome: str) -> None:
        self._writer.answer(encode(Reply(re=frame.id, ok=True, outcome=outcome)))


def _conversation(frame: ConversationFrame) -> str:
    assert frame.conversation is not None, "an open without one was given one"
    return frame.conversation


def _known(conversation: Conversation | None) -> Conversation:
    if conversation is None:
        raise unknown_conversation()
    return conversation
