"""A frame that a server sent, for commands that compare rather than fold."""

from typing import Any

import orjson

from protocol.codec import decode_server_frame

Frame = dict[str, Any]


def read_frame(said: str | bytes) -> Frame:
    """Returns a frame as it was written; it has the members that its type needs.

    Raises:
        FrameError: It is none of the protocol's.
    """
    decode_server_frame(said)
    return orjson.loads(said)
