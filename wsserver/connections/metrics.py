"""What connections count."""

from typing import Protocol


class ConnectionMetrics(Protocol):
    """Where connections are counted."""

    def connection_opened(self) -> None:
        """Counts a connection."""
        ...

    def connection_closed(self, code: int) -> None:
        """Counts its end; 1006 where there was no close frame."""
        ...

    def frame_error(self, code: str) -> None:
        """Counts a frame that was answered with an error."""
        ...

    def resume(self, outcome: str, reason: str | None) -> None:
        """Counts an `open` by what it got."""
        ...

    def delivered(self, frames: int, numbers: int) -> None:
        """Counts frames of conversations, and the numbers that events stood for."""
        ...
