"""One simulated client: the socket it has now, and what it does when that is gone.

Frames go to their conversations as they came. A connection that is lost is made
again with back-off, one that the scenario dropped only when that says so.
"""

from collections.abc import Collection
from random import Random
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from client_demo.load.connection import (
    Connection,
    NotConnectedError,
    Pace,
    Site,
    dial,
)
from client_demo.load.figures import Measure
from client_demo.load.script_error import ScriptError
from client_demo.load.tally import Tally
from client_demo.load.violations import Found, Kind
from protocol.backoff import Backoff
from protocol.codec import UnknownFrame, decode_server_frame
from protocol.codes import NO_CLOSE_FRAME, advice
from protocol.control import CaughtUp, ControlFrame, ErrorFrame, Reply, ToolRequest
from protocol.events import Event, LogEvent
from protocol.frame_error import FrameError

_MOST_ATTEMPTS = 8


def command_id(talk: str, number: int) -> str:
    """Makes the id of a conversation's command."""
    return f"{talk}.{number}"


def talk_of(command: str) -> str:
    """Returns whose command that is."""
    return command.rpartition(".")[0]


class Talker(Protocol):
    """A conversation, as the socket's owner sees it."""

    @property
    def found(self) -> Found:
        """Told of violations."""
        ...

    def frame(self, data: bytes) -> None:
        """A frame that is for it came; what it says is told next."""
        ...

    def event(self, event: LogEvent, now: float) -> None:
        """An event of it came."""
        ...

    def control(self, frame: Reply | CaughtUp | ToolRequest, now: float) -> None:
        """A control frame for it came."""
        ...

    def ack(self) -> bytes | None:
        """Returns an `ack` where one is due."""
        ...

    def stir(self) -> None:
        """Something about the connection has changed."""
        ...


class Peer:
    """One client.

    Attributes:
        pace: How fast it reads.
        talks: Its conversations by name.
        tally: Where to count.
        tasks: What it does besides; ends with it.
        began_at: When its newest connection began to be made.
    """

    def __init__(
        self,
        site: Site,
        tally: Tally,
        tasks: TaskGroup,
        *,
        random: Random,
        slow: bool,
        measured: bool,
        found: Found,
    ) -> None:
        """Takes what all its connections have in common.

        Args:
            site: Where to connect.
            tally: Where to count.
            tasks: Where to read.
            random: For the jitter.
            slow: It will read slowly at times.
            measured: Whether its times count.
            found: Told of violations while there is no conversation.
        """
        self.pace = Pace()
        self.talks: dict[str, Talker] = {}
        self.tally = tally
        self.tasks = tasks
        self.began_at = 0.0
        self._site = site
        self._slow = slow
        self._measured = measured
        self._found = found
        self._backoff = Backoff(random=random.random)
        self._generation = 0
        self._connection: Connection | None = None
        self._reading = anyio.CancelScope()
        self._fatal: str | None = None
        self._dropped = False
        self._returned = anyio.Event()
        self._dialling = anyio.Lock()
        self._owed: set[str] = set()

    @property
    def alive(self) -> int:
        """The number of the connection, from 1; 0 while there is none."""
        gone = self._connection is None or self._connection.ended.is_set()
        return 0 if gone else self._generation

    @property
    def label(self) -> str:
        """The newest connection's id, as the server's log has it."""
        connection = self._connection
        return "none" if connection is None else connection.welcome.connection

    def time(self, measure: Measure, seconds: float) -> None:
        """Counts a time, unless it is this end that is slow."""
        if self._measured and not self.pace.is_slow(anyio.current_time()):
            self.tally.time(measure, seconds)

    async def connect(self) -> None:
        """Makes a connection.

        Raises:
            NotConnectedError: It did not work.
        """
        self.began_at = anyio.current_time()
        connection = await dial(self._site, slow=self._slow)
        self.time("connect", anyio.current_time() - self.began_at)
        self.tally.count("connections")
        self._connection = connection
        self._generation += 1
        self._reading = anyio.CancelScope()
        self.tasks.start_soon(self._read, connection, self._reading)

    async def ready(self) -> int:
        """Waits until there is a connection, and makes it unless it was dropped.

        Returns:
            Its number.

        Raises:
            ScriptError: There will be none.
        """
        while not self.alive:
            if self._dropped:
                await self._returned.wait()
                continue
            async with self._dialling:
                if not self.alive and not self._dropped:
                    await self._make()
        return self._generation

    def left(self, name: str, owed: Collection[str]) -> None:
        """A conversation is over.

        Args:
            name: Which.
            owed: Its commands whose replies may still come.
        """
        self.talks.pop(name, None)
        self._owed.update(owed)

    async def send(self, data: bytes) -> None:
        """Sends a frame; void where there is no connection."""
        if self._connection is not None:
            self.tally.count("sent_frames")
            await self._connection.send(data)

    async def drop(self) -> None:
        """Cuts the connection and stays away until `resume`."""
        async with self._dialling:
            if not self._dropped:
                self._returned = anyio.Event()
            self._dropped = True
            if self.alive:
                self.tally.count("drops")
                await self._cut()

    async def resume(self) -> None:
        """Connects again after `drop`, unless another conversation did.

        Raises:
            ScriptError: It did not work.
        """
        async with self._dialling:
            try:
                if not self.alive:
                    await self.connect()
            except NotConnectedError as error:
                raise ScriptError(error.code, str(error)) from error
            finally:
                self._dropped = False
                self._returned.set()

    async def leave(self) -> None:
        """Says goodbye."""
        self._dropped = True
        if self._connection is not None and self.alive:
            await self._connection.close()

    async def _cut(self) -> None:
        if self._connection is not None:
            self._reading.cancel()
            self._connection.abort()
            await self._connection.ended.wait()

    def take(self, data: bytes, now: float) -> Talker | None:
        """Takes a frame in, as it came; returns whose it was."""
        self.tally.count("frames")
        self.tally.count("bytes", len(data))
        try:
            frame = decode_server_frame(data)
        except FrameError as error:
            self._fault("bad_frame", f"{error}: {data[:200]!r}")
            return None
        if isinstance(frame, UnknownFrame):
            return self._event(frame.skip, data, now) if frame.skip else None
        if isinstance(frame, Event):
            return self._event(frame, data, now)
        return self._control(frame, data, now)

    def _event(self, event: LogEvent, data: bytes, now: float) -> Talker | None:
        talk = self.talks.get(event.conversation)
        if talk is None:
            self._fault("foreign_event", f"{event.seq} of {event.conversation}")
        else:
            talk.frame(data)
            talk.event(event, now)
        return talk

    def _control(self, frame: ControlFrame, data: bytes, now: float) -> Talker | None:
        match frame:
            case Reply():
                talk = self.talks.get(talk_of(frame.re))
                if talk is None and frame.re not in self._owed:
                    self._fault("foreign_reply", f"a reply to {frame.re}")
                self._owed.discard(frame.re)
            case CaughtUp() | ToolRequest():
                talk = self.talks.get(frame.conversation)
            case ErrorFrame():
                self.tally.error(frame.code, frame.message)
                return None
            case _:
                return None
        if talk is not None:
            talk.frame(data)
            talk.control(frame, now)
        return talk

    def _fault(self, kind: Kind, what: str) -> None:
        """Tells of a violation: to the first conversation, which has frames."""
        for talk in self.talks.values():
            talk.found(kind, None, what)
            return
        self._found(kind, None, what)

    async def _read(self, connection: Connection, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                while True:
                    await self.pace.before()
                    data = await connection.receive()
                    if data is None:
                        break
                    talk = self.take(data, anyio.current_time())
                    ack = None if talk is None else talk.ack()
                    if ack is not None:
                        await connection.send(ack)
                    await self.pace.after(len(data))
        finally:
            self._lost(connection)

    def _lost(self, connection: Connection) -> None:
        connection.ended.set()
        code = connection.code
        if not self._dropped and code is not None:
            self.tally.count("disconnects")
            self.tally.count(f"closes.{'none' if code == NO_CLOSE_FRAME else code}")
            if advice(code) == "stop":
                self._fatal = f"closed_{code}"
        for talk in self.talks.values():
            talk.stir()

    async def _make(self) -> None:
        for _ in range(_MOST_ATTEMPTS):
            if self._fatal is not None:
                raise ScriptError(self._fatal)
            await anyio.sleep(self._backoff.delay_seconds())
            try:
                await self.connect()
            except NotConnectedError as error:
                self.tally.error(error.code, str(error))
            else:
                return
        raise ScriptError("connect_failed", f"{_MOST_ATTEMPTS} attempts")
