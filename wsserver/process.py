"""The server as a process: event loop, signals, exit code."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from types import FrameType

import anyio
import structlog

from wsserver import __version__
from wsserver.assembly.open_files import allow_most, fitted
from wsserver.lifecycle.background import kept
from wsserver.lifecycle.last_resort import LastResort
from wsserver.lifecycle.service import Service
from wsserver.server import NO_PARTS, Parts, Server, serving
from wsserver.settings import Loaded, Settings, SettingsError
from wsserver.telemetry.log_stream import LogStream
from wsserver.telemetry.logging import configure

EXIT_STOPPED_AT_ONCE = 1
EXIT_STOPPED_BY_FORCE = 3

DRAIN_MORE_SECONDS = 2.0
"""Beyond the drain time, until all connections are closed."""

CLOSE_SECONDS = 5.0
"""After that, for the store and all else; what is left then is left behind."""

AT_ONCE_SECONDS = 2.0
"""For the same when there is nothing to drain, or nobody wants to wait for it."""

COLLECT_SECONDS = 60.0
"""Between full collections of cyclic garbage, of which there is little. One takes
100 ms with a thousand answers under way; by itself it would come every few seconds."""

MOST_MIDDLE = 100
"""Middle collections after which a full one comes all the same: it is so much
garbage, about 700,000 objects, that a minute would be too long."""

_STANDARD_ERROR = 2

log = structlog.get_logger(__name__)


def run(loaded: Loaded, parts: Parts = NO_PARTS) -> int:
    """Serves until a signal says to stop; returns the exit code.

    Then the process has to end: it takes no more signals, and two seconds later it has
    ended with that code, whatever it does.

    Args:
        loaded: What was set.
        parts: What the program brings along: a store or models of its own.

    Raises:
        SettingsError: A setting turned out to be of no use.
    """
    _fill_standard_files()
    # By itself it would end the process, and so it would before and after the loop.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    settings = loaded.settings
    configure(settings.log_format, settings.log_level)
    for warning in loaded.warnings:
        log.warning("settings", about=warning)
    settings = _within_open_files(settings)
    options = {"use_uvloop": find_spec("uvloop") is not None}
    last_resort = LastResort()
    try:
        code = anyio.run(
            _serve_until_told, settings, parts, last_resort, backend_options=options
        )
    except ExceptionGroup as group:
        # Task groups wrap what stops them.
        bad = group.subgroup(SettingsError)
        if bad is None:
            raise
        raise _first(bad) from None
    finally:
        last_resort.close()
    # The interpreter waits for threads, also for one that hangs.
    LastResort().end_within(AT_ONCE_SECONDS, code)
    return code


async def _serve_until_told(
    settings: Settings, parts: Parts, last_resort: LastResort
) -> int:
    drain_seconds = settings.drain_seconds + DRAIN_MORE_SECONDS + CLOSE_SECONDS

    def limit(again: bool) -> None:
        drains = serves.is_set() and not again
        seconds = drain_seconds if drains else AT_ONCE_SECONDS
        last_resort.end_within(seconds, EXIT_STOPPED_BY_FORCE)

    def tell(number: signal.Signals) -> None:
        """Has the server drained once it serves; before that, and if told again, stopped."""
        log.info("signal", name=number.name)
        if number is signal.SIGHUP:
            hangup.set()
        elif serves.is_set() and not told.is_set():
            told.set()
        elif not everything.cancel_called:
            limit(again=True)
            everything.cancel()

    told, serves, hangup = anyio.Event(), anyio.Event(), asyncio.Event()
    service = Service(os.environ)
    with _signals(tell, limit), anyio.CancelScope() as everything:
        async with anyio.create_task_group() as watch:
            watch.start_soon(kept, "service", service.live)
            async with serving(settings, parts) as server:
                serves.set()
                _announce(server)
                service.ready()
                watch.start_soon(_settle, server)
                async with anyio.create_task_group() as reloads:
                    reloads.start_soon(_reload, server, hangup, service)
                    await told.wait()
                    reloads.cancel_scope.cancel()
                service.stopping()
            watch.cancel_scope.cancel()
    if not everything.cancelled_caught:
        return 0
    if not serves.is_set():
        log.info("stopped_while_starting")
        return 0
    log.warning("stopped_at_once")
    return EXIT_STOPPED_AT_ONCE


@contextmanager
def _signals(
    tell: Callable[[signal.Signals], None], limit: Callable[[bool], None]
) -> Generator[None]:
    """Has signals call `tell` in the event loop; once told to end, nothing after that.

    `limit` is called at once, with whether it was told to end before: the loop may be
    what hangs.

    An event loop's own handlers leave the defaults behind: the next signal would end
    the process in the midst of its end.
    """
    loop = asyncio.get_running_loop()
    ends = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal ends
        del frame
        if number != signal.SIGHUP:
            again, ends = ends, True  # first: another signal may interrupt what follows
            limit(again)
        loop.call_soon_threadsafe(tell, signal.Signals(number))

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN if ends else before[number])


async def _reload(server: Server, hangup: asyncio.Event, service: Service) -> None:
    while True:
        await hangup.wait()
        hangup.clear()  # what comes from now on may find files that are newer
        service.reloading()
        await server.reload()
        service.ready()


async def _settle(server: Server) -> None:
    """Sees to garbage: what is young goes as ever, the rest once in a while."""
    await server.warm_up()
    # What was loaded stays: spares each full collection 6 ms, 57 ms with the SDK.
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, MOST_MIDDLE)
    while True:
        await anyio.sleep(COLLECT_SECONDS)
        gc.collect()


def _fill_standard_files() -> None:
    """Opens those that the process was started without (`2>&-`), to nothing.

    Else a socket or the store gets their numbers, and what is printed goes there.
    """
    while (file := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        os.set_inheritable(file, True)
    os.close(file)
    # Python has None for what was not open when it began.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _announce(server: Server) -> None:
    log.info("listening", version=__version__, page=server.page)
    if server.inspector is not None:
        log.warning("inspecting", page=server.inspector)
    lines = LogStream(sys.stdout)
    lines.write(f"listening on {server.url}\n")
    if not lines.flush():
        log.warning(
            "not_announced",
            url=server.url,
            about="standard output takes nothing: its disk is full, or nobody reads it",
        )


def _first(group: ExceptionGroup[SettingsError]) -> SettingsError:
    inner: SettingsError | ExceptionGroup[SettingsError] = group.exceptions[0]
    return _first(inner) if isinstance(inner, ExceptionGroup) else inner


def _within_open_files(settings: Settings) -> Settings:
    limit = allow_most()
    less = fitted(settings, limit)
    if less.max_connections < settings.max_connections:
        log.warning(
            "few_open_files",
            allowed=limit,
            connections=less.max_connections,
            about="more clients are refused; allow more open files for the"
            f" {settings.max_connections} of max_connections",
        )
    return less
