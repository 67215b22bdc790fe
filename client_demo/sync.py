"""The client without `await`: the same names, for programs that are not async.

    with connect("ws://127.0.0.1:8765/v1/chat") as client:
        chat = client.open(model="demo/tools", tools=[weather])
        print(chat.ask("How is the weather in Bergen?"))

The client of `client_demo.client` runs in a thread of its own and stays connected
while the program does something else. All methods may be called from any thread.
Errors are those of the async client. Tools may be plain functions; each call runs
in a thread of its own, so what they share needs a lock.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any, Literal

from anyio import to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from client_demo import chat as async_chat
from client_demo import client as async_client
from client_demo.driver import TokenSource
from client_demo.session import Notify
from client_demo.sync_call import call
from client_demo.sync_turn import Turn
from client_demo.tools import ClientTool, Handler
from protocol.client.events import Cursor
from protocol.commands import Keep, Policy
from protocol.content import ClientInfo, Config, Content
from protocol.control import Reply, Welcome
from protocol.fold import ConversationView

__all__ = ["Chat", "Client", "Turn", "connect"]


class Chat:
    """A conversation that is open; `Client.open` makes it."""

    def __init__(self, portal: BlockingPortal, chat: async_chat.Chat) -> None:
        self._portal = portal
        self._chat = chat

    @property
    def conversation(self) -> str:
        """Its id."""
        return self._chat.conversation

    @property
    def view(self) -> ConversationView:
        """A copy of what there is of it now: history, the running turn, settings."""
        return self._portal.call(lambda: deepcopy(self._chat.view))

    @property
    def server_tools(self) -> tuple[str, ...]:
        """Names of the tools that the server runs itself; see the async one."""
        return self._chat.server_tools

    @property
    def cursor(self) -> Cursor | None:
        """Where it stands: epoch and last number; None before the first open."""
        return self._portal.call(lambda: self._chat.cursor)

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
            policy: What to do while a turn runs.
            on_disconnect: Whether this turn goes on without a connection.
            metadata: Stored with the message.

        Raises:
            CommandError: It can't be sent at all. What the server refuses is
                raised where the turn is awaited.
        """
        send = partial(
            self._chat.send, content, policy=policy, on_disconnect=on_disconnect,
            metadata=metadata,
        )  # fmt: skip
        return Turn(self._portal, self._portal.call(send))

    def ask(
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
        return turn.answer()

    def running(self) -> Turn | None:
        """Joins the turn that runs: its events from here on; None where none does."""
        turn = self._portal.call(self._chat.running)
        return None if turn is None else Turn(self._portal, turn)

    def interrupt(
        self, *, keep: Keep | None = None, seen_seq: int | None = None
    ) -> Reply:
        """Stops the turn that runs.

        Args:
            keep: Which text stays; None for what was seen.
            seen_seq: The last number that the user saw; None takes all that has
                arrived.

        Raises:
            CommandError: The server refused.
        """
        stop = partial(self._chat.interrupt, keep=keep, seen_seq=seen_seq)
        return self._portal.call(stop)

    def configure(self, config: Config) -> None:
        """Changes settings for the turns that start from here on.

        Raises:
            CommandError: The server refused.
        """
        self._portal.call(self._chat.configure, config)

    def fork(self, through: int | None = None, *, new: str | None = None) -> str:
        """Makes a new conversation with the log up to the end of a turn.

        Args:
            through: A number in the last turn that is taken along; None for all.
            new: Its id; None takes one of the server's.

        Returns:
            Its id, for `Client.open`.

        Raises:
            CommandError: The server refused.
        """
        return self._portal.call(partial(self._chat.fork, through, new=new))

    def ack(self, seq: int | None = None) -> None:
        """Says what was dealt with, which opens the window of `window_bytes` again.

        Args:
            seq: The last number that was dealt with; None for all that has arrived.
        """
        self._portal.call(self._chat.ack, seq)

    def close(self) -> None:
        """Lets it go here; a running turn goes on at the server."""
        self._portal.call(self._chat.close)

    def delete(self) -> None:
        """Removes it from the server's store; a running turn is stopped.

        Raises:
            CommandError: The server refused.
        """
        self._portal.call(self._chat.delete)


class Client:
    """A connected client; `connect` makes it."""

    def __init__(self, portal: BlockingPortal, client: async_client.Client) -> None:
        self._portal = portal
        self._client = client

    @property
    def welcome(self) -> Welcome:
        """What the server said last about itself: its models, its limits."""
        return self._client.welcome

    @property
    def connected(self) -> bool:
        """Whether there is a connection at this moment."""
        return self._client.connected

    def open(
        self,
        conversation: str | None = None,
        *,
        model: str | None = None,
        instructions: str | None = None,
        tools: Sequence[ClientTool | Handler] = (),
        params: dict[str, Any] | None = None,
        config: Config | None = None,
        view: Literal["merged", "frames"] = "merged",
        include: Iterable[Literal["tool_delta"]] = (),
        window_bytes: int | None = None,
        max_delay_ms: int | None = None,
        create: bool = True,
        reconfigure: bool = True,
    ) -> Chat:
        """Opens a conversation and waits until its history is there.

        The arguments are those of the async client's `open`.

        Raises:
            CommandError: The server refused.
            ValueError: It is open here already.
        """
        opening = partial(
            self._client.open, conversation, model=model, instructions=instructions,
            tools=tools, params=params, config=config, view=view, include=include,
            window_bytes=window_bytes, max_delay_ms=max_delay_ms, create=create,
            reconfigure=reconfigure,
        )  # fmt: skip
        chat = partial(Chat, self._portal)
        return call(self._portal, opening, async_chat.Chat.close, chat)

    def drop(self) -> None:
        """Cuts the connection without a word, as a tunnel does, to see what happens."""
        self._portal.call(self._client.drop)

    def refresh(self, token: str) -> None:
        """Gives new credentials of the same principal, for now and reconnects.

        Raises:
            CommandError: The server refused them.
        """
        self._portal.call(self._client.refresh, token)


@contextmanager
def connect(
    url: str = async_client.DEFAULT_URL,
    *,
    token: str | Callable[[], str] | None = None,
    wait_seconds: float = 0.0,
    notify: Notify | None = None,
    client: ClientInfo | None = None,
    max_frame_bytes: int = 16 * 2**20,
    open_timeout_seconds: float = 10.0,
    backoff_seconds: tuple[float, float] = (2.0, 30.0),
) -> Generator[Client]:
    """Connects, and stays connected while the block runs.

    Args:
        url: `ws://` or `wss://`, with the path.
        token: Credentials, or a function that gets new ones and may block.
        wait_seconds: How long to keep retrying the first connection.
        notify: Told what may be worth showing, in the client's thread; must not
            wait, nor call the client.
        client: Who this is, for the server's log.
        max_frame_bytes: The longest frame that is taken.
        open_timeout_seconds: How long the credentials of one attempt may take, and
            then its connection.
        backoff_seconds: The first and the largest window of the back-off.

    Raises:
        NotConnectedError: The first attempt failed.
        CommandError: The server refused this client, as for its credentials.
        StoppedError: It refused for another reason.
    """
    source = _in_thread(token) if callable(token) else token
    connecting = async_client.connect(
        url, token=source, wait_seconds=wait_seconds, notify=notify, client=client,
        max_frame_bytes=max_frame_bytes, open_timeout_seconds=open_timeout_seconds,
        backoff_seconds=backoff_seconds,
    )  # fmt: skip
    with start_blocking_portal("asyncio") as portal:
        with portal.wrap_async_context_manager(connecting) as connected:
            yield Client(portal, connected)
        # Whoever still waits for an event in another thread would wait for ever.
        portal.call(portal.stop, True)


def _in_thread(source: Callable[[], str]) -> TokenSource:
    async def new_token() -> str:
        return await to_thread.run_sync(source, abandon_on_cancel=True)

    return new_token
