"""Control frames that wait to be written. They go before all events."""

from collections.abc import Callable


class ControlLane:
    """An ordered lane, emptied as a whole, bounded.

    A client that goes on asking and does not read can fill it; what comes then
    is dropped, because the connection ends. Frames that nobody asked for are
    bounded in size by their causes (the turns' limits on tools, one heartbeat).
    """

    def __init__(
        self,
        *,
        max_frames: int,
        max_answer_bytes: int,
        overfull: Callable[[], None],
    ) -> None:
        """Makes an empty lane.

        Args:
            max_frames: How many frames it holds.
            max_answer_bytes: How many bytes of answers it holds.
            overfull: Called when that was not enough.
        """
        self._overfull = overfull
        self._frames: list[bytes] = []
        self._answer_bytes = 0
        self._max_frames = max_frames
        self._max_answer_bytes = max_answer_bytes

    def __len__(self) -> int:
        return len(self._frames)

    def push(self, frame: bytes) -> None:
        """Adds a frame."""
        if len(self._frames) >= self._max_frames:
            self._overfull()
            return
        self._frames.append(frame)

    def answer(self, frame: bytes) -> None:
        """Adds a frame that the client asked for."""
        self._answer_bytes += len(frame)
        if self._answer_bytes > self._max_answer_bytes:
            self._overfull()
            return
        self.push(frame)

    def take(self) -> list[bytes]:
        """Removes all frames and returns them in order."""
        frames, self._frames = self._frames, []
        self._answer_bytes = 0
        return frames
