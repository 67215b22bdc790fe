"""Reads a whole conversation again over a fresh connection."""

from collections.abc import Callable

import anyio

from client_demo.load.connection import NotConnectedError, Site, dial
from client_demo.load.oracle import Oracle
from client_demo.load.violations import Found
from protocol.codec import UnknownFrame, decode_server_frame, encode
from protocol.commands import Open
from protocol.control import CaughtUp, Reply
from protocol.events import Event
from protocol.frame_error import FrameError

_WITHIN_SECONDS = 120.0
_OPEN = "reread"


async def reread(
    site: Site, name: str, found: Found, note: Callable[[bytes], None]
) -> Oracle:
    """Reads it from the start, and holds what comes to the protocol too.

    Args:
        site: Where.
        name: The conversation.
        found: Told of violations.
        note: Told of each frame.

    Raises:
        NotConnectedError: It can't be read.
    """
    connection = await dial(site)
    reader = _Reader(name, found)
    try:
        with anyio.fail_after(_WITHIN_SECONDS):
            await connection.send(encode(Open(id=_OPEN, conversation=name)))
            while not reader.is_done:
                data = await connection.receive()
                if data is None:
                    raise NotConnectedError("connect_failed", "closed while read again")
                note(data)
                reader.take(data)
    except TimeoutError:
        raise NotConnectedError("wait_timeout", "while it was read again") from None
    finally:
        await connection.close()
    return reader.oracle


class _Reader:
    """Gives the frames of one connection to an oracle."""

    def __init__(self, name: str, found: Found) -> None:
        self.oracle = Oracle(found)
        self.is_done = False
        self._name = name
        self._found = found

    def take(self, data: bytes) -> None:
        """Takes a frame as it came.

        Raises:
            NotConnectedError: The conversation is refused.
        """
        try:
            frame = decode_server_frame(data)
        except FrameError as error:
            self._found("bad_frame", None, f"{error}: {data[:200]!r}")
            return
        if isinstance(frame, UnknownFrame) and frame.skip is not None:
            frame = frame.skip
        match frame:
            case Event() if frame.conversation == self._name:
                self.oracle.event(frame)
            case Reply() if frame.re == _OPEN:
                self._opened(frame)
            case CaughtUp():
                self.oracle.caught_up(frame)
                self.is_done = True
            case _:
                pass

    def _opened(self, reply: Reply) -> None:
        if reply.error is not None:
            raise NotConnectedError(reply.error.code, reply.error.message)
        if reply.outcome == "created":
            self._found("log_reset", None, "it is not there any more")
        self.oracle.opened(reply, None)
