"""One conversation of a simulated client, over as many connections as it takes.

What arrives goes to the oracle first, as it came. Commands that were not replied to
are sent again under the same id after a connection was lost.
"""

from collections import Counter
from collections.abc import Callable, Collection

import anyio
from msgspec.structs import replace

from client_demo.load.oracle import Oracle
from client_demo.load.peer import Peer, command_id
from client_demo.load.recording import Recording
from client_demo.load.script_error import ScriptError
from client_demo.load.turn_watch import TurnWatch
from client_demo.load.violations import Found
from protocol.codec import encode
from protocol.commands import Ack, Command, Open
from protocol.control import CaughtUp, Reply, ToolRequest
from protocol.events import LogEvent, ToolResultEvent

_REPLY_SECONDS = 60.0


class Talk:
    """One conversation.

    Attributes:
        name: Its id.
        oracle: What it saw.
        recording: Its last frames.
        watch: The last message that was sent; None before the first.
        seen: Events by type since that.
        caught_up: Whether the last replay is over.
        found: Told of violations.
        answered_at: Tool calls that were answered, and when.
    """

    def __init__(
        self,
        name: str,
        peer: Peer,
        *,
        open_frame: Open,
        found: Found,
        recording: Recording,
        on_tool: Callable[[ToolRequest], None],
    ) -> None:
        """Begins before it is opened.

        Args:
            name: Its id.
            peer: Whose socket to use.
            open_frame: How to open it first.
            found: Told of violations.
            recording: Where to put frames.
            on_tool: Told of requests for tools.
        """
        self.name = name
        self.oracle = Oracle(found)
        self.recording = recording
        self.watch: TurnWatch | None = None
        self.seen: Counter[str] = Counter()
        self.caught_up = False
        self.answered_at: dict[str, float] = {}
        self._peer = peer
        self._open_frame = open_frame
        self.found = found
        self._on_tool = on_tool
        self._watches: list[TurnWatch] = []
        self._generation = 0
        self._attaching = anyio.Lock()
        self._opening: Open | None = None
        self._opening_at = self._since = 0.0
        self._resuming = False
        self._unreplied: dict[str, bytes] = {}
        self._replies: dict[str, tuple[Reply, float]] = {}
        self._given = 0
        self._unacked = 0
        self._moved = anyio.Event()

    @property
    def settled(self) -> bool:
        """Whether nothing runs or waits, and everything that was replayed is here."""
        busy = self.oracle.running or any(not watch.over for watch in self._watches)
        return self.caught_up and not busy

    @property
    def owed(self) -> Collection[str]:
        """Commands that were not replied to."""
        return self._unreplied.keys()

    def new_id(self) -> str:
        """Returns an id for a command."""
        self._given += 1
        return command_id(self.name, self._given)

    def watched(self, watch: TurnWatch) -> None:
        """A message is about to be sent."""
        self._watches = [one for one in self._watches if not one.over]
        self._watches.append(watch)
        self.watch = watch
        self.seen.clear()

    async def attach(self, *, since: float | None = None) -> None:
        """Opens it on the connection there is, from where it is.

        Args:
            since: When the way back to it began; None for now, or for when the
                connection was made, if that is later.

        Raises:
            ScriptError: It can't be opened.
        """
        asked_at = anyio.current_time()
        async with self._attaching:
            while not self._is_attached():
                generation = await self._peer.ready()
                self._since = since or max(asked_at, self._peer.began_at)
                reply = await self._open()
                if reply is None:
                    continue
                if not reply.ok:
                    raise refusal(reply)
                self._generation = generation
                for data in [*self._unreplied.values()]:
                    await self._transmit(data)

    async def command(
        self, frame: Command, within_seconds: float = _REPLY_SECONDS
    ) -> tuple[Reply, float]:
        """Gives a command; returns its reply and when that came.

        Raises:
            ScriptError: There was none.
        """
        data = encode(frame)
        self._unreplied[frame.id] = data
        if self._is_attached():
            await self._transmit(data)
        await self.until(lambda: frame.id in self._replies, within_seconds)
        return self._replies.pop(frame.id)

    async def until(self, holds: Callable[[], object], within_seconds: float) -> None:
        """Waits until something holds; opens it again when the connection is gone.

        Raises:
            ScriptError: It took too long (`wait_timeout`), or never will be.
        """
        with anyio.move_on_after(within_seconds):
            while not holds():
                if self._is_attached():
                    await self._moved.wait()
                else:
                    await self.attach()
        if not holds():
            raise ScriptError("wait_timeout", f"in {within_seconds:g} s")

    def stir(self) -> None:
        """Wakes who waits."""
        moved, self._moved = self._moved, anyio.Event()
        moved.set()

    def frame(self, data: bytes) -> None:
        """A frame that is for it came; what it says is told next."""
        self._unacked += len(data)
        self.recording.came(self._peer.tally.clock(), self._peer.label, data)

    def control(self, frame: Reply | CaughtUp | ToolRequest, now: float) -> None:
        """A control frame for it came."""
        match frame:
            case Reply():
                self._reply(frame, now)
            case CaughtUp():
                self._caught_up(frame, now)
            case ToolRequest():
                self.oracle.requested(frame)
                self.seen["tool_request"] += 1
                self._on_tool(frame)
        self.stir()

    def event(self, event: LogEvent, now: float) -> None:
        """An event of it came."""
        self.oracle.event(event)
        self.seen[str(event.__struct_config__.tag)] += 1
        slow = self._peer.pace.is_slow(now)
        for watch in self._watches:
            if slow:
                watch.spoil()
            watch.take(event, now)
        if isinstance(event, ToolResultEvent) and event.call in self.answered_at:
            self._peer.time("tool", now - self.answered_at.pop(event.call))
        self.stir()

    def ack(self) -> bytes | None:
        """Returns an `ack` where half of the window is used up."""
        window = self._open_frame.window_bytes
        if window is None or self._unacked < window // 2 or not self.oracle.last:
            return None
        self._unacked = 0
        return encode(Ack(conversation=self.name, seq=self.oracle.last))

    def _reply(self, reply: Reply, now: float) -> None:
        opening = self._opening
        if opening is not None and reply.re == opening.id:
            self._opening = None
            if reply.ok:
                self._opened(reply, opening, now)
        elif self._unreplied.pop(reply.re, None) is None:
            self._not_owed(reply.re)
            return
        self._replies[reply.re] = (reply, now)
        if reply.outcome == "interrupted" and reply.turn is not None:
            self.oracle.interrupted(reply.turn)

    def _not_owed(self, command: str) -> None:
        number = command.rpartition(".")[2]
        if number.isdecimal() and 1 <= int(number) <= self._given:
            self.found("reply_twice", None, f"{command} was replied to before")
        else:
            self.found("foreign_reply", None, f"a reply to {command}")

    def _opened(self, reply: Reply, opening: Open, now: float) -> None:
        after = opening.after if isinstance(opening.after, int) else None
        self.oracle.opened(reply, after)
        if after is None:
            self._peer.time("open", now - self._opening_at)
        else:
            self._peer.tally.count(f"resumes.{reply.outcome}")

    def _caught_up(self, frame: CaughtUp, now: float) -> None:
        self.oracle.caught_up(frame)
        self.seen["caught_up"] += 1
        if self._resuming and not self.caught_up:
            self._peer.time("resume", now - self._since)
        self.caught_up = True

    def _is_attached(self) -> bool:
        return self._generation > 0 and self._peer.alive == self._generation

    async def _open(self) -> Reply | None:
        """Opens it; returns None where the connection was lost meanwhile."""
        frame = replace(self._open_frame, id=self.new_id())
        self._resuming = self.oracle.epoch is not None
        if self._resuming:
            cursor = {"after": self.oracle.last, "epoch": self.oracle.epoch}
            frame = replace(frame, **cursor)
            for watch in self._watches:
                watch.lost()
        self._opening, self._opening_at = frame, anyio.current_time()
        self.caught_up = False
        self._unacked = 0
        generation = self._peer.alive
        await self._transmit(encode(frame))
        with anyio.move_on_after(_REPLY_SECONDS):
            while frame.id not in self._replies and self._peer.alive == generation:
                await self._moved.wait()
        if frame.id in self._replies:
            return self._replies.pop(frame.id)[0]
        if self._peer.alive == generation:
            raise ScriptError("wait_timeout", "no reply to `open`")
        return None

    async def _transmit(self, data: bytes) -> None:
        self.recording.sent(self._peer.tally.clock(), self._peer.label, data)
        await self._peer.send(data)


def refusal(reply: Reply) -> ScriptError:
    """Makes the error of a command that was refused."""
    error = reply.error
    if error is None:
        return ScriptError("internal", "refused without a reason")
    return ScriptError(
        error.code,
        error.message,
        retry_after_seconds=(error.retry_after_ms or 0) / 1000,
    )
