"""The composition root: builds the rooms, runs them, ends them in order."""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import anyio
import anyio.to_thread
import structlog
from anyio.abc import TaskGroup
from msgspec import Struct

from wsserver.assembly import credentials, open_files, rooms
from wsserver.assembly.inspection import Inspection
from wsserver.assembly.server_tools import load_tools
from wsserver.assembly.store_file import store_file
from wsserver.assembly.upstreams import open_upstreams
from wsserver.auth.principal import Authority
from wsserver.connections.connection import Connection
from wsserver.connections.quotas import Quotas
from wsserver.connections.settings import ConnectionSettings
from wsserver.connections.transport import Handshake, Transport
from wsserver.lifecycle.background import kept
from wsserver.lifecycle.drain import drain
from wsserver.lifecycle.reload import Reload
from wsserver.log.committer import Committer
from wsserver.log.store import Store, StoreError
from wsserver.settings import Settings, SettingsError
from wsserver.stores.open import open_store
from wsserver.telemetry.metrics import Metrics
from wsserver.transports.files import load_files
from wsserver.transports.handshake import Admission
from wsserver.transports.http import CHAT_PATH, Site
from wsserver.transports.listener import Listener
from wsserver.turns.alarms import Alarms
from wsserver.turns.clock import Clock
from wsserver.turns.directory import Directory
from wsserver.turns.services import Services, Target
from wsserver.turns.sweep import Sweep

_LAG_SECONDS = 0.5
_FEW_FILES = 8
_TELL_OF_FILES_SECONDS = 60.0
_STOP_SECONDS = 0.5

# (which setting can't be used, what to do)
_OTHER_PORT = ("port", "choose another with `--port`, or stop what uses this one")
_REMEDIES = {
    errno.EACCES: ("port", "choose one above 1023, or let this user bind lower ones"),
    errno.EADDRNOTAVAIL: ("host", "bind an address that this machine has"),
}

log = structlog.get_logger(__name__)


class Server:
    """A server that accepts connections.

    Attributes:
        port: The port it is bound to.
        url: Where clients connect.
        page: Where people chat.
        connections: Who is connected.
        draining: Whether it takes no new clients any more.
        warm_up: Loads what the first turn would have to wait for.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        directory: Directory,
        committer: Committer,
        authority: Authority,
        connection_settings: ConnectionSettings,
        metrics: Metrics,
        clock: Clock,
        inspection: Inspection,
        alarms: Alarms,
        reload: Reload,
        tasks: TaskGroup,
        warm_up: Callable[[], Awaitable[None]],
    ) -> None:
        """Takes the rooms it is made of.

        Args:
            settings: What was set.
            directory: Where conversations are.
            committer: Writes their logs.
            authority: Says who may do what.
            connection_settings: What connections may take.
            metrics: Counts.
            clock: Time and chance.
            inspection: Who looks at what connections carry, if anyone.
            alarms: Tells when something is due.
            reload: Has the files with keys.
            tasks: Runs what ends with the server.
            warm_up: Loads what the first turn would have to wait for.
        """
        self.warm_up = warm_up
        self.port = settings.port
        self.connections: set[Connection] = set()
        self.draining = False
        self._settings = settings
        self._directory = directory
        self._committer = committer
        self._authority = authority
        self._connection_settings = connection_settings
        self._quotas = Quotas(connection_settings)
        self._metrics = metrics
        metrics.watch_views(self._lags)
        self._clock = clock
        self._inspection = inspection
        self._alarms = alarms
        self._reload = reload
        self._listener = Listener(
            rooms.endpoint(settings, reload),
            admission=Admission(
                allowed_origins=frozenset(settings.allowed_origins),
                loopback_only=not settings.has_credentials,
            ),
            metrics_access=rooms.metrics_access(settings, reload),
            site=Site(
                files={**load_files(), **inspection.files},
                not_ready=self._not_ready,
                metrics=metrics.render,
            ),
            handlers={CHAT_PATH: self._serve, **inspection.handlers},
            stricter=inspection.stricter,
            refusing=lambda: "draining" if self.draining else None,
            tasks=tasks,
            turned_away=metrics.turned_away,
        )

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"ws{self._secure}://{self._authority_part}{CHAT_PATH}"

    @property
    def page(self) -> str:
        """Where people chat."""
        return f"http{self._secure}://{self._authority_part}/"

    @property
    def inspector(self) -> str | None:
        """Where people look at what connections carry; None for nowhere."""
        page = self._inspection.page
        return None if page is None else self.page + page

    async def start(self) -> None:
        """Begins to accept connections.

        Raises:
            SettingsError: The address can't be bound.
        """
        try:
            self.port = await self._listener.start()
        except OSError as error:
            where = f"{self._settings.host}:{self._settings.port}"
            number = error.errno or 0  # negative: the name has no address
            reason = os.strerror(number) if number > 0 else error.strerror
            setting, remedy = _REMEDIES.get(number, _OTHER_PORT)
            raise SettingsError(
                f"{setting}: can't listen on {where}: {reason}; {remedy}"
            ) from None

    async def reload(self) -> None:
        """Takes up what files with certificates and keys hold now.

        Whoever is connected by a key that is gone is dropped.
        """
        await self._reload.run(self._check_credentials)

    async def drain(self) -> None:
        """Lets everything come to its end, within the drain time and 2 s."""
        self.draining = True
        await drain(
            lambda: tuple(self.connections),
            seconds=self._settings.drain_seconds,
            end_turns=self._directory.drain,
            flush=self._committer.flush,
        )

    async def stop(self) -> None:
        """Drops whoever is still connected."""
        with anyio.move_on_after(_STOP_SECONDS, shield=True):
            await self._listener.stop()

    async def _serve(self, transport: Transport, handshake: Handshake) -> None:
        name = f"conn_{self._clock.token()}"
        async with self._inspection.tapped(name, transport) as tapped:
            await self._run(name, tapped, handshake)

    async def _run(self, name: str, transport: Transport, handshake: Handshake) -> None:
        connection = Connection(
            connection=name,
            transport=transport,
            handshake=handshake,
            directory=self._directory,
            authority=self._authority,
            quotas=self._quotas,
            settings=self._connection_settings,
            metrics=self._metrics,
            alarms=self._alarms,
            wall=self._clock.wall,
            new_id=lambda: f"conv_{self._clock.token()}",
        )
        self.connections.add(connection)
        try:
            await connection.run()
        finally:
            self.connections.discard(connection)

    def _check_credentials(self) -> None:
        for connection in tuple(self.connections):
            connection.check_credentials()

    def _lags(self) -> list[int]:
        return [lag for connection in self.connections for lag in connection.lags()]

    def _not_ready(self) -> str | None:
        if self.draining:
            return "draining"
        return "the store can't be written" if self._committer.failing else None

    @property
    def _secure(self) -> str:
        return "s" if self._settings.tls_cert_file else ""

    @property
    def _authority_part(self) -> str:
        host = self._settings.host
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


class Parts(Struct, frozen=True, kw_only=True):
    """What a program brings along that settings can't name.

    Attributes:
        store: Used in place of the one that the settings name, and closed in the
            end; None for that one.
        models: Further models by the names that clients use; they go before those
            of the settings. What clients may set of them the settings say, unless
            they do.
    """

    store: Store | None = None
    models: Mapping[str, Target] = {}


NO_PARTS = Parts()


@asynccontextmanager
async def serving(
    settings: Settings, parts: Parts = NO_PARTS
) -> AsyncGenerator[Server]:
    """Runs a server while the context is open; leaving it drains.

    Args:
        settings: What was set.
        parts: What the program brings along.

    Raises:
        SettingsError: What a setting names can't be used: a file, the address.
    """
    metrics, clock = Metrics(), Clock()
    alarms = Alarms(asyncio.get_running_loop())
    reload = Reload()
    authority = credentials.authority(settings, clock.wall, reload)
    inspection = Inspection(settings, clock)
    async with AsyncExitStack() as stack:
        stack.callback(alarms.stop)
        await stack.enter_async_context(inspection.recording())
        store = parts.store or await _open_store(settings)
        stack.push_async_callback(store.close)
        upstreams = await stack.enter_async_context(open_upstreams(settings))
        models = upstreams.chained(
            await upstreams.table(parts.models), metrics=metrics, jitter=clock.jitter
        )
        metrics.watch_breakers(upstreams.breakers)
        metrics.name_models(models.names(), models.provider_name)
        tools = await load_tools(settings, os.environ)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        committer = Committer(
            store,
            interval_seconds=settings.commit_interval_ms / 1000,
            wall=clock.wall,
            metrics=metrics,
        )
        services = Services(
            models=models,
            limits=rooms.conversation_limits(settings),
            metrics=metrics,
            clock=clock,
            tasks=tasks,
            alarms=alarms,
            failing=lambda: committer.failing,
            server_tools=tools.registry,
        )
        retention = rooms.retention(settings)
        directory = Directory(store, committer, services, retention)
        sweep = Sweep(directory, store, committer, retention=retention, wall=clock.wall)
        server = Server(
            settings,
            directory=directory,
            committer=committer,
            authority=authority,
            connection_settings=rooms.connection_settings(
                settings, models, rooms.features(settings, store, tools.registry)
            ),
            metrics=metrics,
            clock=clock,
            inspection=inspection,
            alarms=alarms,
            reload=reload,
            tasks=tasks,
            warm_up=upstreams.warm_up,
        )
        background: dict[str, Callable[[], Awaitable[None]]] = {
            "committer": committer.run,
            "authority": authority.run,
            "observe": partial(_observe, metrics, directory),
            "sweep": sweep.run,
        }
        for mcp_server in tools.servers:
            background[f"mcp {mcp_server.settings.name}"] = mcp_server.supervise
        for name, run in background.items():
            tasks.start_soon(kept, name, run, name=name)
        try:
            await _recover(directory)
            await server.start()
            yield server
            await server.drain()
        finally:
            await server.stop()
            tasks.cancel_scope.cancel()


async def _open_store(settings: Settings) -> Store:
    path = await anyio.to_thread.run_sync(store_file, settings)
    try:
        return await open_store(path, durability=settings.durability)
    except StoreError as error:
        raise SettingsError(f"store: {error}") from None


async def _recover(directory: Directory) -> None:
    try:
        turns = await directory.recover()
    except StoreError as error:
        raise SettingsError(f"store: {error}") from None
    if turns:
        log.warning("recovered", turns=turns)


async def _observe(metrics: Metrics, directory: Directory) -> None:
    """Watches what no event tells: how late the loop is, and what is in memory."""
    tell_at = 0.0
    while True:
        due = anyio.current_time() + _LAG_SECONDS
        await anyio.sleep_until(due)
        metrics.loop_lag(max(0.0, anyio.current_time() - due))
        metrics.conversations(*directory.statistics())
        files = open_files.left()
        if files is not None and files < _FEW_FILES and due >= tell_at:
            tell_at = due + _TELL_OF_FILES_SECONDS
            log.warning(
                "open_files_run_out",
                left=files,
                about="new clients and model calls fail without them; allow more",
            )
