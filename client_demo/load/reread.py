"""Reads a whole conversation again over a fresh connection."""

from collections.abc import Callable

import anyio

from client_demo.load.connection import Connection, NotConnectedError, Site, dial
from client_demo.load.oracle import Oracle
from client_demo.load.violations import Found
from protocol.codec import UnknownFrame, decode_server_frame, encode
from protocol.commands import Open
from protocol.control import CaughtUp, Reply
from protocol.events import Event
from protocol.frame_error import FrameError

_WITHIN_S = 120.0
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
    oracle = Oracle(found)
    try:
        with anyio.fail_after(_WITHIN_S):
            await connection.send(encode(Open(id=_OPEN, conversation=name)))
            await _read(connection, name, oracle, found, note)
    except TimeoutError:
        raise NotConnectedError("wait_timeout", "while it was read again") from None
    finally:
        await connection.close()
    return oracle


async def _read(
    connection: Connection,
    name: str,
    oracle: Oracle,
    found: Found,
    note: Callable[[bytes], None],
) -> None:
    while True:
        data = await connection.receive()
        if data is None:
            raise NotConnectedError("connect_failed", "closed while read again")
        try:
            frame = decode_server_frame(data)
        except FrameError as error:
            found("bad_frame", None, f"{error}: {data[:200]!r}")
            continue
        if isinstance(frame, UnknownFrame):
            if frame.skip is not None:
                oracle.event(frame.skip)
            continue
        match frame:
            case Event() if frame.conversation == name:
                note(data)
                oracle.event(frame)
            case Reply() if frame.re == _OPEN:
                note(data)
                if frame.error is not None:
                    raise NotConnectedError(frame.error.code, frame.error.message)
                oracle.opened(frame, None)
            case CaughtUp():
                note(data)
                oracle.caught_up(frame)
                return
            case _:
                pass
