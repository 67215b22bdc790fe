"""One conversation as the application uses it."""

from typing import Any, Literal

from client_demo.conversation import Conversation
from client_demo.errors import ClientError, ConversationNotFoundError
from client_demo.feed import TurnFeed
from client_demo.session import Session
from client_demo.turn import Turn
from protocol.client.events import Cursor
from protocol.client.machine import ClientProtocol
from protocol.commands import Interrupt, Keep, Policy, Send
from protocol.content import Config, Content
from protocol.control import Reply
from protocol.fold import ConversationView


class Chat:
    """A conversation that is open; `Client.open` makes it.

    What it raises beyond what is named: `StoppedError` once the client has
    stopped, `ConversationNotFoundError` once it was closed here or deleted.
    """

    def __init__(self, session: Session, conversation: Conversation) -> None:
        self._session = session
        self._conversation = conversation

    @property
    def conversation(self) -> str:
        """Its id."""
        return self._conversation.name

    @property
    def view(self) -> ConversationView:
        """What there is of it: history, the running turn, settings.

        Another object after the server had to begin the log anew.
        """
        return self._conversation.view

    @property
    def server_tools(self) -> tuple[str, ...]:
        """Names of the tools that the server runs itself, as it said at the opening.

        A `Config` may list them without `parameters`. Also empty if you may
        not configure the conversation.
        """
        return self._conversation.server_tools

    @property
    def cursor(self) -> Cursor | None:
        """Where it stands: epoch and last number; None before the first open."""
        return self._session.machine.cursor(self.conversation)

    def send(
        self,
        content: Content,
        *,
        policy: Policy = "queue",
        on_disconnect: Literal["continue", "cancel"] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Turn:
        """Says something; the message is on its way when this returns.

        Args:
            content: Text, or parts.
            policy: What to do while a turn runs; `interrupt` keeps of it what
                had arrived here.
            on_disconnect: Whether this turn goes on without a connection.
            metadata: Stored with the message.

        Raises:
            CommandError: It can't be sent at all. What the server refuses is
                raised where the turn is awaited.
        """
        self._conversation.must_be_open()
        feed = TurnFeed(None)

        def give(machine: ClientProtocol) -> Send:
            return machine.send(
                self.conversation,
                content,
                policy=policy,
                seen_seq=self.view.last if policy == "interrupt" else None,
                on_disconnect=on_disconnect,
                metadata=metadata,
            )

        def settle(result: Reply | ClientError) -> None:
            if isinstance(result, ClientError):
                self._conversation.refused(feed, result)
            else:
                feed.accept(result)

        feed.send = self._session.submit(give, settle).id
        if not feed.over:
            self._conversation.await_turn(feed)
        return Turn(self._session, self._conversation, feed)

    async def ask(
        self,
        content: Content,
        *,
        policy: Policy = "queue",
        on_disconnect: Literal["continue", "cancel"] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> str:
        """Says something and waits for the whole answer; the arguments are `send`'s.

        Raises:
            CommandError: The server refused the message.
            TurnError: The turn failed.
            IncompleteAnswerError: It was interrupted or cut short; has the text.
        """
        turn = self.send(
            content, policy=policy, on_disconnect=on_disconnect, metadata=metadata
        )
        return await turn.answer()

    def running(self) -> Turn | None:
        """Joins the turn that runs: its events from here on; None where none does.

        What came before is in its `view`.
        """
        feed = self._conversation.running_turn()
        return feed and Turn(self._session, self._conversation, feed)

    async def interrupt(
        self, *, keep: Keep | None = None, seen_seq: int | None = None
    ) -> Reply:
        """Stops the turn that runs.

        Args:
            keep: Which text stays; None for what was seen.
            seen_seq: The last number that the user saw; None takes all that has
                arrived.

        Returns:
            The server's reply; `already_finished` is an outcome, not an error.

        Raises:
            CommandError: The server refused.
        """
        running = self.view.running
        seen = self.view.last if seen_seq is None else seen_seq

        def give(machine: ClientProtocol) -> Interrupt:
            return machine.interrupt(
                self.conversation,
                turn=running.turn if running else None,
                seen_seq=seen,
                keep=keep,
            )

        return await self._session.command(give)

    async def configure(self, config: Config) -> None:
        """Changes settings for the turns that start from here on.

        Raises:
            CommandError: The server refused.
        """
        await self._session.command(
            lambda machine: machine.configure(self.conversation, config)
        )

    async def fork(self, through: int | None = None, *, new: str | None = None) -> str:
        """Makes a new conversation with the log up to the end of a turn.

        Args:
            through: A number in the last turn that is taken along; None for all.
            new: Its id; None takes one of the server's.

        Returns:
            Its id, for `Client.open`.

        Raises:
            CommandError: The server refused.
        """
        last = self.view.last if through is None else through
        reply = await self._session.command(
            lambda machine: machine.fork(self.conversation, last, new=new)
        )
        assert reply.conversation is not None, "the reply to a fork names it"
        return reply.conversation

    def ack(self, seq: int | None = None) -> None:
        """Says what was dealt with, which opens the window of `window_bytes` again.

        What is replayed, at the opening and after a reconnect, opens it by itself.

        Args:
            seq: The last number that was dealt with; None for all that has arrived.
        """
        self._session.ack(self.conversation, seq)

    async def close(self) -> None:
        """Lets it go here; a running turn goes on at the server."""
        self._session.forget(self.conversation, _gone("closed"))
        await self._session.command(lambda machine: machine.close(self.conversation))

    async def delete(self) -> None:
        """Removes it from the server's store; a running turn is stopped.

        Raises:
            CommandError: The server refused.
        """
        self._session.deleted(self.conversation, _gone("deleted"))
        await self._session.command(lambda machine: machine.delete(self.conversation))


def _gone(how: str) -> ConversationNotFoundError:
    return ConversationNotFoundError(
        "conversation_not_found", f"the conversation was {how} here", retryable=False
    )
