"""One client's connection: driven until it ends, its first welcome awaited.

`client_demo.client` is what applications see of it; `client_demo.driver` moves the
bytes, `client_demo.session` hands on what they say.
"""

import anyio
from anyio.abc import TaskGroup

from client_demo.driver import Driver, NoTokenError, TokenSource, fresh_token
from client_demo.errors import ClientError, NotConnectedError, StoppedError
from client_demo.session import Notice, Notify, Session
from client_demo.unreached import why_unreached
from protocol.client.events import Connected, Disconnected, Stopped
from protocol.client.machine import ClientProtocol
from protocol.control import AuthExpiring, ErrorFrame


class Connection:
    """Runs a client, and says why it can't be run.

    Attributes:
        machine: The protocol's client half.
        session: Everything of the client but its sockets.
    """

    def __init__(
        self,
        machine: ClientProtocol,
        driver: Driver,
        tasks: TaskGroup,
        *,
        new_token: TokenSource | None,
        notify: Notify | None,
    ) -> None:
        """Takes the parts.

        Args:
            machine: The protocol's client half.
            driver: What moves the bytes.
            tasks: Where tools run, and what renews credentials.
            new_token: Gets credentials when they are about to expire.
            notify: The application's, told what may be worth showing.
        """
        self.machine = machine
        self.session = Session(machine, tasks, flush=driver.flush, notify=self._noticed)
        self._driver = driver
        self._tasks = tasks
        self._new_token = new_token
        self._notify = notify
        self._settled = anyio.Event()
        self._failure: ClientError | None = None
        self._fault: ErrorFrame | None = None
        self._give_up_at = 0.0

    async def run(self) -> None:
        """Drives the connection until it is cancelled or the server ends it."""
        await self._driver.run(self.session.handle)

    def drop(self) -> None:
        """Cuts the connection without a word."""
        self._driver.drop()

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

    def left(self) -> None:
        """Ends all that waits; nothing can be said any more."""
        if self.session.stopped is None:
            why = "the block of `connect` was left"
            self.session.stop(StoppedError(None, why))

    def _noticed(self, notice: Notice) -> None:
        """Takes what happens to the connection; the application is told too."""
        match notice:
            case Connected():
                self._settled.set()
            case Stopped():
                self._failure = self.session.stopped
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
        before = self.machine.token
        try:
            token = await fresh_token(new_token)
            # Those of a connection that began meanwhile are newer.
            if token != before and self.machine.token == before:
                await self.session.command(lambda machine: machine.refresh(token))
        except (ClientError, NoTokenError):
            return  # The server ends the connection, and the next one gets a new token.
