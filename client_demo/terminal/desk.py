"""The conversation that is open in the terminal, and what commands make of it.

Shows and reads nothing; `client_demo.terminal.program` does.
"""

from collections.abc import Sequence
from contextlib import suppress

from client_demo.chat import Chat
from client_demo.client import Client
from client_demo.errors import ConversationNotFoundError
from client_demo.terminal.memory import ChatMemory, Remembered
from client_demo.tools import ClientTool
from protocol.content import Config, Content, TextPart, Tool
from protocol.events import MessageEvent

_TITLE_CHARACTERS = 60


class DeskError(Exception):
    """A command can't be obeyed; the message says why."""


class GoneError(DeskError):
    """The server no longer has a conversation that is remembered, or was until now."""


class Desk:
    """Opens conversations, one at a time, and remembers them."""

    def __init__(
        self, client: Client, memory: ChatMemory, tools: Sequence[ClientTool]
    ) -> None:
        """Opens nothing yet.

        Args:
            client: Connected.
            memory: Loaded.
            tools: What the terminal runs.
        """
        self._client = client
        self._memory = memory
        self._tools = {made.name: made for made in tools}
        self._chat: Chat | None = None

    @property
    def chat(self) -> Chat:
        """The conversation that is open."""
        assert self._chat is not None, "one is opened first of all"
        return self._chat

    @property
    def models(self) -> list[str]:
        """What the server offers."""
        return self._client.welcome.models

    @property
    def model(self) -> str:
        """Which model answers, for a person."""
        model = self.chat.view.config.model
        return model if isinstance(model, str) else "the server's model"

    @property
    def connected(self) -> bool:
        """Whether there is a connection at this moment."""
        return self._client.connected

    def drop(self) -> None:
        """Cuts the connection, as a tunnel does."""
        self._client.drop()

    def listing(self) -> list[Remembered]:
        """Returns the conversations that are remembered, the newest first."""
        return self._memory.conversations[::-1]

    async def open(
        self, conversation: str | None = None, *, model: str | None = None
    ) -> bool:
        """Opens a conversation in place of the one that is.

        Args:
            conversation: Its id; None for a new one.
            model: Which model answers; None leaves it, or takes the server's.

        Returns:
            Whether it is as it was left: False where the server's log of it is
            another one now.

        Raises:
            GoneError: It was there when it was left; it is remembered no more. The
                former one stays open, as with the other errors.
            ClientError: The server refused.
        """
        former = self._chat
        if former is not None and former.conversation == conversation:
            return True
        left = self._remembered(conversation)
        try:
            chat = await self._client.open(
                conversation,
                model=model,
                tools=[*self._tools.values()],
                create=left is None,
                reconfigure=False,
            )
        except ConversationNotFoundError as error:
            if left is None:
                raise
            await self._memory.forget(left.conversation)
            name = left.title or left.conversation
            raise GoneError(f"{name}: {error.message}") from error
        self._chat = chat
        if former is not None:
            await former.close()
        if model is not None and chat.view.config.model != model:
            await chat.configure(Config(model=model))
        now = self._state()
        await self._memory.put(now)
        return left is None or left.epoch in (None, now.epoch)

    async def remember(self) -> None:
        """Notes where the conversation stands.

        Raises:
            MemoryFileError: It can't be written down.
        """
        await self._memory.put(self._state())

    async def switch(self, which: str) -> bool:
        """Opens another conversation: by its place in `listing`, from 1, or its id.

        Returns:
            As `open`.
        """
        if not which:
            raise DeskError("say which: a number of /list, or an id")
        if not which.isdecimal():
            return await self.open(which)
        listing = self.listing()
        if not 1 <= int(which) <= len(listing):
            raise DeskError(f"there is no number {which}; /list has {len(listing)}")
        return await self.open(listing[int(which) - 1].conversation)

    async def fork(self, answers: int) -> Content | None:
        """Goes on in a copy of the conversation.

        Args:
            answers: How many questions with their answers are left out at its end.

        Returns:
            The first question that was left out; None where none was.

        Raises:
            DeskError: There are not so many.
            CommandError: The server refused.
        """
        questions = [
            shown
            for shown in self.chat.view.timeline
            if isinstance(shown, MessageEvent)
        ]
        if not 0 <= answers <= len(questions):
            raise DeskError(_not_so_many(len(questions)))
        left_out = questions[-answers] if answers else None
        through = None if left_out is None else left_out.seq - 1
        await self.open(await self.chat.fork(through))
        return None if left_out is None else left_out.content

    async def delete(self) -> None:
        """Deletes the conversation at the server; goes to the newest that is left."""
        gone = self.chat
        await gone.delete()
        self._chat = None
        await self._memory.forget(gone.conversation)
        while self._chat is None:
            newest = self._memory.newest
            with suppress(GoneError):
                await self.open(None if newest is None else newest.conversation)

    def tools(self) -> list[tuple[Tool, str]]:
        """Returns all tools, each with `on`, `off`, or `elsewhere`."""
        declared = {one.name: one for one in self.chat.view.config.tools or ()}
        mine = [
            (made.declaration, "on" if name in declared else "off")
            for name, made in self._tools.items()
        ]
        others = [
            (one, "elsewhere")
            for name, one in declared.items()
            if name not in self._tools
        ]
        return mine + others

    async def switch_tool(self, name: str, *, on: bool) -> None:
        """Offers a tool to the model, or takes it away.

        Raises:
            DeskError: The terminal has no such tool.
            CommandError: The server refused.
        """
        if name not in self._tools:
            raise DeskError(f"there is no tool {name} here; /tools lists them")
        offered = [one for one in self.chat.view.config.tools or () if one.name != name]
        if on:
            offered.append(self._tools[name].declaration)
        await self.chat.configure(Config(tools=offered))

    def _remembered(self, conversation: str | None) -> Remembered | None:
        for one in self._memory.conversations:
            if one.conversation == conversation:
                return one
        return None

    def _state(self) -> Remembered:
        chat = self.chat
        cursor = chat.cursor
        return Remembered(
            conversation=chat.conversation,
            title=_title(chat),
            epoch=None if cursor is None else cursor.epoch,
            last=chat.view.last,
        )


def plain(content: Content) -> str:
    """Returns a message's text, on one line for each part."""
    if isinstance(content, str):
        return content
    return " ".join(
        part.text if isinstance(part, TextPart) else "[image]" for part in content
    )


def _not_so_many(questions: int) -> str:
    match questions:
        case 0:
            return "nothing has been asked here yet"
        case 1:
            return "only one question has been asked here"
        case _:
            return f"only {questions} questions have been asked here"


def _title(chat: Chat) -> str:
    for shown in chat.view.timeline:
        if isinstance(shown, MessageEvent):
            return " ".join(plain(shown.content).split())[:_TITLE_CHARACTERS]
    return ""
