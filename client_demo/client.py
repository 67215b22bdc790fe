"""The Python client: connect, open conversations, talk.

    async with connect("ws://127.0.0.1:8765/v1/chat") as client:
        chat = await client.open("my-chat", model="demo/markdown")
        print(await chat.ask("hi"))

It reconnects by itself, goes on where it was, and sends again what was not
replied to; nothing is lost or doubled. It runs on asyncio.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from secrets import SystemRandom, token_hex
from typing import Any, Literal

from msgspec import UNSET
from msgspec.structs import asdict, replace
from websockets.exceptions import InvalidURI
from websockets.uri import parse_uri

from client_demo.chat import Chat
from client_demo.connection import Connection
from client_demo.driver import Driver, TokenSource
from client_demo.session import Notify
from client_demo.tasks import task_group
from client_demo.tools import ClientTool, Handler, tool
from protocol.backoff import Backoff
from protocol.client.machine import ClientProtocol
from protocol.content import ClientInfo, Config
from protocol.control import Welcome

DEFAULT_URL = "ws://127.0.0.1:8765/v1/chat"


class Client:
    """A connected client; `connect` makes it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._machine = connection.machine
        self._session = connection.session

    @property
    def welcome(self) -> Welcome:
        """What the server said last about itself: its models, its limits."""
        assert self._machine.welcome is not None, "made only once it was welcomed"
        return self._machine.welcome

    @property
    def connected(self) -> bool:
        """Whether there is a connection at this moment."""
        return self._machine.phase == "online"

    async def open(
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

        Where it exists already and its settings are others than those given
        here, it is configured anew, unless told otherwise.

        Args:
            conversation: Its id; None for a new one.
            model: Which model answers.
            instructions: The system prompt.
            tools: Functions, async or plain, that the model may call and this
                client runs.
            params: For the model, such as `temperature`.
            config: Settings beyond these; the others take precedence.
            view: `frames` never joins pieces of text.
            include: Event types that come only on request.
            window_bytes: The server holds events back while so many bytes of them
                were not said to be dealt with by `Chat.ack`; None for no limit.
            max_delay_ms: How long the server may gather text.
            create: False opens only what the server has.
            reconfigure: False leaves the settings of one that exists as they are;
                the tools are run here all the same.

        Raises:
            ConversationNotFoundError: The server does not have it.
            CommandError: The server refused for another reason.
            ValueError: It is open here already.
        """
        name = conversation or f"c-{token_hex(12)}"
        if self._session.is_open(name):
            raise ValueError(f"{name!r} is open already")
        own = {
            made.name: made
            for made in (
                one if isinstance(one, ClientTool) else tool(one) for one in tools
            )
        }
        wanted = _config(config or Config(), model, instructions, params, own)
        has_window = window_bytes is not None
        folded = self._session.conversation(name, has_window=has_window)
        self._session.tools.handle(name, own)
        opened = False
        try:
            reply = await self._session.command(
                lambda machine: machine.open(
                    name,
                    create=create,
                    config=wanted,
                    handles=own,
                    view=view,
                    include=include,
                    window_bytes=window_bytes,
                    max_delay_ms=max_delay_ms,
                )
            )
            await folded.history()
            chat = Chat(self._session, folded)
            change = _change(chat.view.config, wanted)
            if reconfigure and reply.outcome != "created" and change is not None:
                await chat.configure(change)
            opened = True
        finally:
            if not opened:
                self._session.abandon(name)
        return chat

    def drop(self) -> None:
        """Cuts the connection without a word, as a tunnel does, to see what happens.

        The client notices, connects again and goes on where it was.
        """
        self._connection.drop()

    async def refresh(self, token: str) -> None:
        """Gives new credentials of the same principal, for now and reconnects.

        Raises:
            CommandError: The server refused them.
        """
        await self._session.command(lambda machine: machine.refresh(token))


@asynccontextmanager
async def connect(
    url: str = DEFAULT_URL,
    *,
    token: str | TokenSource | None = None,
    wait_seconds: float = 0.0,
    notify: Notify | None = None,
    client: ClientInfo | None = None,
    max_frame_bytes: int = 16 * 2**20,
    open_timeout_seconds: float = 10.0,
    backoff_seconds: tuple[float, float] = (2.0, 30.0),
) -> AsyncGenerator[Client]:
    """Connects, and stays connected while the block runs.

    A first attempt that fails raises; later the client reconnects for as long
    as it takes, with full jitter, unless the server says that it is no use.
    Whoever still waits for something when the block is left gets a `StoppedError`.

    Args:
        url: `ws://` or `wss://`, with the path.
        token: Credentials, or an async function that gets new ones, which is
            called before each connection and when they are about to expire. Where
            it fails the attempt has failed, and others follow as after any.
        wait_seconds: How long to keep retrying the first connection.
        notify: Told what may be worth showing, such as `Disconnected`; must
            not wait.
        client: Who this is, for the server's log.
        max_frame_bytes: The longest frame that is taken; not below the server's
            `limits.frame_bytes`.
        open_timeout_seconds: How long the credentials of one attempt may take, and
            then its connection.
        backoff_seconds: The first and the largest window of the back-off.

    Raises:
        ValueError: `url` is not a WebSocket URL.
        NotConnectedError: The first attempt failed.
        CommandError: The server refused this client, as for its credentials.
        StoppedError: It refused for another reason.
    """
    check_url(url)
    random = SystemRandom().random
    machine = ClientProtocol(
        prefix=token_hex(8),
        random=random,
        token=token if isinstance(token, str) else None,
        client=client or ClientInfo(name="client_demo"),
        backoff=Backoff(
            random=random,
            base_seconds=backoff_seconds[0],
            cap_seconds=backoff_seconds[1],
        ),
        welcome_timeout_seconds=open_timeout_seconds,
    )
    new_token = token if callable(token) else None
    driver = Driver(
        url,
        machine,
        new_token=new_token,
        max_frame_bytes=max_frame_bytes,
        open_timeout_seconds=open_timeout_seconds,
    )
    async with task_group() as tasks:
        connection = Connection(
            machine, driver, tasks, new_token=new_token, notify=notify
        )
        tasks.start_soon(connection.run)
        await connection.ready(wait_seconds)
        try:
            yield Client(connection)
        finally:
            connection.left()


def check_url(url: str) -> None:
    """Raises ValueError, with an example, if `url` is not a WebSocket URL."""
    try:
        parse_uri(url)
    except InvalidURI as error:
        raise ValueError(f"{error}; such as {DEFAULT_URL}") from None


def _config(
    given: Config,
    model: str | None,
    instructions: str | None,
    params: dict[str, Any] | None,
    tools: dict[str, ClientTool],
) -> Config:
    members: dict[str, Any] = {
        name: value
        for name, value in (
            ("model", model),
            ("instructions", instructions),
            ("params", params),
        )
        if value is not None
    }
    if tools:
        members["tools"] = [made.declaration for made in tools.values()]
    return replace(given, **members)


def _change(has: Config, wanted: Config) -> Config | None:
    """Returns the wanted members that are otherwise, None where none is."""
    members = {
        name: value
        for name, value in asdict(wanted).items()
        if value is not UNSET and (value or UNSET) != (getattr(has, name) or UNSET)
    }
    return Config(**members) if members else None
