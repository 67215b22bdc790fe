"""The real server below its sockets, built anew after every restart."""

import random
from collections.abc import Callable

import anyio
import msgspec
from anyio.abc import TaskGroup

from protocol.content import Limits, ServerInfo
from tests.fakes.rig import NoMetrics, OneModel
from tests.fakes.timers import TaskTimers
from tests.simulation.disk import Disk
from tests.simulation.link import Link, Traits
from tests.simulation.model import Model
from tests.simulation.watch import Watch
from wsserver.auth.principal import Principal, Verb
from wsserver.connections.connection import Connection
from wsserver.connections.quotas import Quotas
from wsserver.connections.settings import ConnectionSettings
from wsserver.connections.transport import Handshake
from wsserver.drain import drain
from wsserver.engine.limits import TurnLimits
from wsserver.engine.tools import ToolTimes
from wsserver.log.committer import Committer
from wsserver.log.store import StoreError
from wsserver.turns.alarms import Alarms
from wsserver.turns.clock import Clock
from wsserver.turns.directory import Directory
from wsserver.turns.services import ConversationLimits, Services

EPOCH = 1_700_000_000.0
SPACE = "space"
HEARTBEAT_SECONDS = 20.0
SETTINGS = ConnectionSettings(
    server=ServerInfo(name="wsserver", version="0"),
    limits=Limits(
        frame_bytes=262_144,
        conversations=128,
        active_turns=16,
        queued=8,
        pending_tools=32,
        tool_output_bytes=131_072,
        idempotency_s=86_400,
    ),
    heartbeat_seconds=HEARTBEAT_SECONDS,
)
LIMITS = ConversationLimits(
    active_turns=64, turn=TurnLimits(tool_times=ToolTimes(default_seconds=20.0))
)


class SeededClock(Clock):
    """Virtual time, and chance that a seed decides."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def now(self) -> float:
        return anyio.current_time()

    def wall(self) -> float:
        return EPOCH + self.now()

    def jitter(self) -> float:
        return self._chance.random()

    def token(self) -> str:
        return f"{self._chance.getrandbits(64):016x}"


class Tokens:
    """Every token is a principal's name; all share one space."""

    async def run(self) -> None:
        pass

    async def authenticate(self, token: str | None) -> Principal:
        assert token, "every client says who it is"
        return Principal(name=token, space=SPACE)

    def stands(self, principal: Principal) -> bool:
        del principal
        return True

    def authorize(self, principal: Principal, verb: Verb, conversation: str) -> None:
        del principal, verb, conversation


class Host:
    """The machine that the server runs on.

    Attributes:
        directory: The running server's; None while it is down.
        committer: Its committer.
        links: All there were, and who watched them.
        trace: Takes every frame that is handed over; None for no trace.
        severed: Whose next connection is lost, and with which frame; None for nobody.
    """

    def __init__(
        self,
        chance: random.Random,
        disk: Disk,
        model: Model,
        pings: bool,
        report: Callable[[str], None],
    ) -> None:
        self.directory: Directory | None = None
        self.committer: Committer | None = None
        self.links: list[tuple[Link, Watch]] = []
        self.trace: list[bytes] | None = None
        self._chance = chance
        self._disk = disk
        self._model = model
        self._settings = msgspec.structs.replace(
            SETTINGS,
            transport_pings=pings,
            high_water_bytes=chance.choice([1, 1000, 65_536]),
        )
        self._pings = pings
        self._report = report
        self._quotas = Quotas(self._settings)
        self._clock = SeededClock(chance)
        self._alarms: Alarms | None = None
        self._tasks: TaskGroup | None = None
        self._life = anyio.CancelScope()
        self._stop = anyio.Event()
        self._connections: dict[Connection, Link] = {}
        self._count = 0
        self.severed: tuple[str, int] | None = None

    @property
    def steady(self) -> bool:
        """Whether a server runs that is not about to stop."""
        return self.directory is not None and not self._stop.is_set()

    async def run(self) -> None:
        """Runs one server after another."""
        while True:
            self._life = anyio.CancelScope()
            self._stop = anyio.Event()
            with self._life:
                async with anyio.create_task_group() as tasks:
                    await self._serve(tasks)
                    await self._stop.wait()
                    await self._drain()
                    tasks.cancel_scope.cancel()
            self.directory = self.committer = self._tasks = None
            await anyio.sleep(self._chance.choice([0.0, 0.5, 5.0]))

    def restart(self, chance: random.Random) -> None:
        """Crashes the server, or stops it in good order."""
        if self.directory is None:
            return
        if self._disk.durable and chance.random() < 0.7:
            self.directory = None
            for link in self._connections.values():
                link.abort()
            self._disk.crash()
            self._life.cancel()
        else:
            self._stop.set()

    def dial(
        self, principal: str, chance: random.Random, wake: Callable[[], None]
    ) -> Link | None:
        """Connects a client; None where nobody answers."""
        if self.directory is None or self._stop.is_set():
            return None
        assert self._tasks is not None, "a server that runs has tasks"
        self._count += 1
        name = f"conn{self._count}"
        disk = self._disk if self._disk.durable else None
        watch = Watch(
            f"{name} of {principal}",
            SPACE,
            principal,
            disk,
            self._disk.trimmed,
            self._report,
            self.trace,
        )
        ping_seconds = HEARTBEAT_SECONDS if self._pings else None
        delay = chance.choice([0.0, 0.0, 0.01, 0.2])
        link = Link(
            Traits(
                up_seconds=delay * chance.random(),
                down_seconds=delay * chance.random(),
                socket_bytes=chance.choice([0, 300, 4000, 65_536]),
                ping_seconds=ping_seconds,
            ),
            watch,
            wake,
        )
        if self.severed is not None and self.severed[0] == principal:
            link.severed_with, self.severed = self.severed[1], None
        self.links.append((link, watch))
        self._tasks.start_soon(self._connect, name, link)
        return link

    async def _connect(self, name: str, link: Link) -> None:
        assert self.directory is not None, "nobody dials while it is down"
        connection = Connection(
            connection=name,
            transport=link,
            handshake=Handshake(peer="simulated"),
            authority=Tokens(),
            directory=self.directory,
            settings=self._settings,
            metrics=NoMetrics(),
            quotas=self._quotas,
            alarms=self._alarms,
            wall=self._clock.wall,
            new_id=lambda: f"conv_{self._clock.token()}",
        )
        self._connections[connection] = link
        try:
            await connection.run()
        finally:
            del self._connections[connection]

    async def _serve(self, tasks: TaskGroup) -> None:
        self._alarms = Alarms(TaskTimers(tasks))
        committer = Committer(
            self._disk, interval_seconds=0.0, wall=self._clock.wall, metrics=NoMetrics()
        )
        services = Services(
            models=OneModel(self._model),
            limits=LIMITS,
            metrics=NoMetrics(),
            clock=self._clock,
            tasks=tasks,
            alarms=self._alarms,
            failing=lambda: committer.failing,
        )
        directory = Directory(self._disk, committer, services)
        tasks.start_soon(committer.run)
        while True:
            try:
                await directory.recover()
                break
            except StoreError:
                await anyio.sleep(1.0)
        self.directory, self.committer, self._tasks = directory, committer, tasks

    async def _drain(self) -> None:
        directory, committer = self.directory, self.committer
        if directory is None or committer is None:
            return
        await drain(
            lambda: tuple(self._connections),
            seconds=self._chance.choice([0.0, 3.0]),
            end_turns=directory.drain,
            flush=committer.flush,
        )
        if not self._disk.durable:
            with anyio.CancelScope(shield=True):
                await committer.flush()
        self.directory = None
        for link in self._connections.values():
            link.abort()
        self._disk.crash()
