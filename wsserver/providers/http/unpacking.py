"""Unpacks the body of an answer that came compressed though that was not asked for.

Sans-I/O: bytes in, bytes out. `deflate` is zlib's format by RFC 9110, section
8.4.1.2, and what some servers send under that name is the bare stream inside of it;
which of the two it is shows in its first two bytes.
"""

import zlib
from typing import Any, Final

from wsserver.engine.model import Failure

ENCODINGS: Final = frozenset({b"gzip", b"x-gzip", b"deflate"})
"""Values of `Content-Encoding` that can be unpacked."""

# What one read may unpack to: far more than any text that was packed.
_MAX_UNPACKED_BYTES: Final = 16 * 1024 * 1024

_GZIP_MAGIC: Final = b"\x1f\x8b"
_EITHER_HEADER: Final = zlib.MAX_WBITS | 32
_NO_HEADER: Final = -zlib.MAX_WBITS


class UnreadableError(OSError):
    """A body that can't be unpacked.

    Attributes:
        failure: What a model call fails with because of it.
    """

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.failure = Failure(
            code="upstream_error", message=message, retryable=retryable
        )


class Unpacker:
    """A push decompressor for one body.

    Args:
        encoding: One of `ENCODINGS`.
    """

    __slots__ = (
        "_bad", "_head", "_inflate", "_may_be_bare",
    )  # fmt: skip

    def __init__(self, encoding: bytes) -> None:
        self._may_be_bare = encoding == b"deflate"
        # What can't be unpacked, where it came together with what could.
        self._bad = b""
        # The first byte of a member, as long as it is alone.
        self._head = b""
        # None between two members.
        self._inflate: Any = None  # The type has no public name.

    def feed(self, data: bytes) -> bytes:
        """Takes the next bytes and returns what they unpack to.

        Raises:
            UnreadableError: They unpack to nothing, or to far too much.
        """
        unpacked = bytearray()
        data = self._bad or data
        try:
            while data:
                data = self._unpack(data, unpacked)
        except zlib.error as error:
            if unpacked:  # of a member before; if nothing follows it was all
                self._bad = data
                return bytes(unpacked)
            raise UnreadableError(
                "The upstream's answer is compressed badly.", retryable=True
            ) from error
        return bytes(unpacked)

    def _unpack(self, data: bytes, unpacked: bytearray) -> bytes:
        """Takes what belongs to one member, and returns the rest."""
        if self._inflate is None:
            data = self._head + data
            if len(data) < len(_GZIP_MAGIC) and self._may_be_bare:
                self._head = data
                return b""
            self._head = b""
            self._inflate = zlib.decompressobj(self._window_bits(data))
        room = _MAX_UNPACKED_BYTES - len(unpacked)
        unpacked += self._inflate.decompress(data, max(room, 1))
        if self._inflate.unconsumed_tail:
            raise UnreadableError(
                "The upstream's answer unpacks to far too much.", retryable=False
            )
        rest = self._inflate.unused_data
        if rest:
            self._inflate = None
        return rest

    def _window_bits(self, head: bytes) -> int:
        """Tells by two bytes whether a member has a header (RFC 1950, 2.2)."""
        if not self._may_be_bare or head.startswith(_GZIP_MAGIC):
            return _EITHER_HEADER
        is_zlib = (
            head[0] & 0x0F == zlib.DEFLATED
            and int.from_bytes(head[:2], "big") % 31 == 0
        )
        return _EITHER_HEADER if is_zlib else _NO_HEADER
