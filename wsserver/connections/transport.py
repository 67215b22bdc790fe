"""What a connection needs of the thing that carries its frames."""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct


class TransportClosed(Exception):  # noqa: N818 - an end, not always a fault
    """The connection is gone.

    Attributes:
        code: Of the close frame; None when there was none.
        reason: Of the close frame.
        by_peer: Whether the other end closed it, or was lost; else this one did.
    """

    def __init__(
        self, code: int | None, reason: str = "", *, by_peer: bool = True
    ) -> None:
        super().__init__(f"closed with {code}")
        self.code = code
        self.reason = reason
        self.by_peer = by_peer


class Handshake(Struct, frozen=True, kw_only=True):
    """What is known of a peer before its first frame.

    Attributes:
        peer: Its address, for the log.
        token: The credential of the `Authorization` header or the subprotocol
            list; None when neither was there.
        common_version: False when subprotocols were offered and none was ours.
    """

    peer: str
    token: str | None = None
    common_version: bool = True


class Transport(Protocol):
    """Carries text frames. One task receives; writing never blocks."""

    @property
    def received_bytes(self) -> int:
        """All bytes that came in so far, pings too."""
        ...

    @property
    def written_bytes(self) -> int:
        """All bytes of frames that were handed to `write`."""
        ...

    def write(self, frames: Sequence[bytes]) -> None:
        """Takes text frames, in order, to be sent in as few writes as can be.

        Never blocks; does nothing once the connection is closed.
        """
        ...

    @property
    def call_soon(self) -> Callable[[Callable[[], None]], object]:
        """Lets the event loop call back once, after what it is doing now.

        What it calls raises nothing.
        """
        ...

    def buffered_bytes(self) -> int:
        """Returns how much was written that the peer's socket has not taken."""
        ...

    async def writable(self) -> None:
        """Waits until the buffer is below its low-water mark; at once if it is.

        Raises:
            TransportClosed: The connection is gone.
        """
        ...

    async def receive(
        self, at_once: Callable[[str], bool] | None = None
    ) -> str | bytes:
        """Returns the next frame: `str` or UTF-8 `bytes` of a text frame.

        Args:
            at_once: May be given frames where they arrive, a turn of the event loop
                earlier, as long as this waits. Those for which it returns True are
                handled; others are returned as ever.

        Raises:
            TransportClosed: The connection is gone.
        """
        ...

    async def close(self, code: int, reason: str) -> None:
        """Closes with a close frame; aborts after 2 s if the peer does not help."""
        ...

    def abort(self) -> None:
        """Drops the connection now."""
        ...
