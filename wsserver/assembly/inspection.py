"""What a server has of the inspector: nothing at all where nobody asked for it.

The composition root's seam to `wsserver.inspector`, which is imported only here and
only where it is wanted.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

from protocol.content import ServerInfo
from wsserver import __version__
from wsserver.connections.transport import Transport
from wsserver.engine.moments import timestamp
from wsserver.settings import Settings, SettingsError
from wsserver.transports.files import File, load_page
from wsserver.transports.handshake import Admission
from wsserver.transports.listener import Handler
from wsserver.turns.clock import Clock

if TYPE_CHECKING:
    from wsserver.inspector.inspector import Inspector


_THIS_MACHINE = Admission(allowed_origins=frozenset(), loopback_only=True)


class Inspection:
    """The inspector as the server sees it.

    Attributes:
        handlers: Its WebSocket, by path.
        files: Its page, by path.
        stricter: Who may come there: this server's own pages, on this machine.
        page: The path of its page; None for none.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        """Makes as much of it as is wanted."""
        self.handlers: Mapping[str, Handler] = {}
        self.files: Mapping[str, File] = {}
        self.stricter: Mapping[str, Admission] = {}
        self.page: str | None = None
        self._path = settings.record
        self._inspector: Inspector | None = None
        if not settings.inspected:
            return
        self._inspector = _inspector(settings, clock)
        if settings.inspect:
            from wsserver.inspector.feed import FEED_PATH, Feed

            feed = Feed(self._inspector, settings.inspect_ring_bytes)
            self.handlers = {FEED_PATH: feed.serve}
            self.files = load_page("wsserver.inspector", "page", "/inspect/")
            self.stricter = dict.fromkeys((*self.files, FEED_PATH), _THIS_MACHINE)
            self.page = "inspect"

    def tapped(
        self, connection: str, transport: Transport
    ) -> AbstractAsyncContextManager[Transport]:
        """Gives what to use in a transport's place, while the context is open."""
        if self._inspector is None:
            return nullcontext(transport)
        return self._inspector.tapped(connection, transport)

    @asynccontextmanager
    async def recording(self) -> AsyncGenerator[None]:
        """Records to the file of the settings, if there is one.

        Raises:
            SettingsError: The file can't be made.
        """
        if self._path is None or self._inspector is None:
            yield
            return
        from wsserver.inspector.file import RecordingFileError, recording_to

        try:
            async with recording_to(self._path, self._inspector.recorder):
                yield
        except RecordingFileError as error:
            raise _no_recording(self._path, error) from None


def check_recording(path: str) -> None:
    """Returns if a server could record there; leaves nothing.

    Raises:
        SettingsError: The file can't be made.
    """
    from wsserver.inspector.file import RecordingFileError, check_new

    try:
        check_new(path)
    except RecordingFileError as error:
        raise _no_recording(path, error) from None


def _no_recording(path: str, error: Exception) -> SettingsError:
    return SettingsError(f"record: can't make {path}: {error}; name a new file")


def _inspector(settings: Settings, clock: Clock) -> "Inspector":
    from wsserver.inspector.inspector import Inspector
    from wsserver.inspector.recorder import Recorder
    from wsserver.inspector.records import VERSION, Header
    from wsserver.inspector.ring import Ring

    header = Header(
        recording=VERSION,
        server=ServerInfo(name="wsserver", version=__version__),
        started_at=timestamp(clock.wall()),
        content="whole" if settings.inspect_content else "redacted",
    )
    ring = Ring(settings.inspect_ring_bytes)
    return Inspector(Recorder(header, ring, clock.now))
