"""Control frames that wait to be written. They go before all events."""

from collections.abc import Callable

import anyio


class ControlLane:
    """An ordered lane, emptied as a whole, bounded.

    What a client asks for is bounded by not reading on while the lane is `full`.
    Frames that nobody asked for are bounded in size by their causes (the turns'
    limits on tools, one heartbeat); beyond so many of them the connection ends.

    Attributes:
        frames: What is in it.
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
            max_answer_bytes: From how many bytes of answers on it is full.
            overfull: Called when there are too many frames that nobody asked for;
                what comes then is dropped.
        """
        self._overfull = overfull
        self.frames: list[bytes] = []
        self._answers = 0
        self._answer_bytes = 0
        self._max_frames = max_frames
        self._max_answer_bytes = max_answer_bytes
        self._emptied: anyio.Event | None = None  # there while somebody waits

    @property
    def full(self) -> bool:
        """Whether no more should be asked for until the client has read."""
        return (
            self._answer_bytes >= self._max_answer_bytes
            or self._answers >= self._max_frames
        )

    async def emptied(self) -> None:
        """Waits until the frames that are in it now were taken."""
        if self._emptied is None:
            self._emptied = anyio.Event()
        await self._emptied.wait()

    def push(self, frame: bytes) -> None:
        """Adds a frame."""
        if len(self.frames) - self._answers >= self._max_frames:
            self._overfull()
            return
        self.frames.append(frame)

    def answer(self, frame: bytes) -> None:
        """Adds a frame that the client asked for."""
        self._answers += 1
        self._answer_bytes += len(frame)
        self.frames.append(frame)

    def take(self) -> list[bytes]:
        """Removes all frames and returns them in order."""
        frames, self.frames = self.frames, []
        self._answers = self._answer_bytes = 0
        if self._emptied is not None:
            self._emptied.set()
            self._emptied = None
        return frames
