"""The frames that a server sends ready-made (RFC 6455, section 5.2). Pure."""

import struct
from collections.abc import Sequence

_SHORT_HEADERS = [bytes((0x81, size)) for size in range(126)]
_HEADER = struct.Struct(">BBH").pack


def text_header(size: int) -> bytes:
    """Returns the header of a whole text frame.

    Args:
        size: The payload's length in bytes.
    """
    if size < 126:
        return _SHORT_HEADERS[size]
    if size < 65_536:
        return _HEADER(0x81, 126, size)
    return b"\x81\x7f" + size.to_bytes(8, "big")


def text_frames(payloads: Sequence[bytes]) -> bytes:
    """Returns payloads as text frames, one behind the other."""
    return b"".join(
        [part for payload in payloads for part in (text_header(len(payload)), payload)]
    )
