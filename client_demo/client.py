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

import anyio
from anyio.abc import TaskGroup
from msgspec import UNSET
from msgspec.structs import asdict, replace
from websockets.exceptions import InvalidURI
from websockets.uri import parse_uri

from client_demo.chat import Chat
from client_demo.driver import Driver, NoTokenError, TokenSource, fresh_token
from client_demo.errors import (
    ClientError,
    NotConnectedError,
    StoppedError,
)
from client_demo.session import Notice, Notify, Session
from client_demo.tasks import task_group
from client_demo.tools import ClientTool, Handler, tool
from client_demo.unreached import why_unreached
from protocol.backoff import Backoff
from protocol.client import ClientProtocol
from protocol.client_events import Connected, Disconnected, Stopped
from protocol.content import ClientInfo, Config
from protocol.control import AuthExpiring, ErrorFrame, Welcome

DEFAULT_URL = "ws://127.0.0.1:8765/v1/chat"


class Client:
    """A connected client; `connect` makes it."""

    def __init__(
        self,
        machine: ClientProtocol,
        driver: Driver,
        tasks: TaskGroup,
        *,
        new_token: TokenSource | None,
        notify: Notify | None,
    ) -> None:
        self._machine = machine
        self._driver = driver
        self._tasks = tasks
        self._new_token = new_token
        self._notify = notify
        self._session = Session(machine, tasks, flush=driver.flush, notify=self.noticed)
        self._settled = anyio.Event()
        self._failure: ClientError | None = None
        self._fault: ErrorFrame | None = None
        self._give_up_at = 0.0

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
        folded = self._session.conversation(name)
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

    async def run(self) -> None:
        """Drives the connection until it is cancelled or the server ends it."""
        await self._driver.run(self._session.handle)

    def drop(self) -> None:
        """Cuts the connection without a word, as a tunnel does, to see what happens.

        The client notices, connects again and goes on where it was.
        """
        self._driver.drop()

    async def refresh(self, token: str) -> None:
        """Gives new credentials of the same principal, for now and reconnects.

        Raises:
            CommandError: The server refused them.
        """
        await self._session.command(lambda machine: machine.refresh(token))

    async def ready(self, wait_seconds: float) -> None:
        """Waits for the first welcome.

        Args:
            wait_seconds: How long attempts that fail are followed by others.

        Raises:
            NotConnectedError: There was none.
            CommandError: The server refused this client, as for its credentials.
            StoppedError: It refused for another reason.
        """
        self._give_up_at = anyio.current_time() + wait_seconds
        await self._settled.wait()
        if self._failure is not None:
            raise self._failure

    def noticed(self, notice: Notice) -> None:
        """Takes what happens to the connection; the application is told too."""
        match notice:
            case Connected():
                self._settled.set()
            case Stopped():
                self._failure = self._session.stopped
                self._settled.set()
            case ErrorFrame():
                self._fault = notice
            case Disconnected():
                late = anyio.current_time() >= self._give_up_at
                if late and not self._settled.is_set():
                    self._failure = self._not_connected(notice.code)
                    self._settled.set()
            case AuthExpiring():
                if self._new_token is not None:
                    self._tasks.start_soon(self._renew, self._new_token)
            case _:
                pass
        if self._notify is not None:
            self._notify(notice)

    def left(self) -> None:
        """Ends all that waits; nothing can be said any more."""
        if self._session.stopped is None:
            why = "the block of `connect` was left"
            self._session.stop(StoppedError(None, why))

    def _not_connected(self, code: int | None) -> NotConnectedError:
        why, fault = self._driver.failure, self._fault
        if why is not None:
            said = why_unreached(self._driver.url, why)
        elif fault is not None:
            said = f"{fault.code}: {fault.message}"
        else:
            said = f"the server closed with {code}" if code else "it broke off"
        error = NotConnectedError(f"no connection: {said}")
        error.__cause__ = why
        return error

    async def _renew(self, new_token: TokenSource) -> None:
        before = self._machine.token
        try:
            token = await fresh_token(new_token)
            # Those of a connection that began meanwhile are newer.
            if token != before and self._machine.token == before:
                await self.refresh(token)
        except (ClientError, NoTokenError):
            return  # The server ends the connection, and the next one gets a new token.


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
        wait_seconds: How long a first attempt that fails is followed by others.
        notify: Told what may be worth showing, such as `Disconnected`; must
            not wait.
        client: Who this is, for the server's log.
        max_frame_bytes: The longest frame that is taken; not below the server's
            `limits.frame_bytes`.
        open_timeout_seconds: How long the credentials of one attempt may take, and
            then its connection.
        backoff_seconds: The first and the largest window of the back-off.

    Raises:
        ValueError: `url` is none of a WebSocket.
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
        connected = Client(machine, driver, tasks, new_token=new_token, notify=notify)
        tasks.start_soon(connected.run)
        await connected.ready(wait_seconds)
        try:
            yield connected
        finally:
            connected.left()


def check_url(url: str) -> None:
    """Raises ValueError, with an example, if `url` is none of a WebSocket."""
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
