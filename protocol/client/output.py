"""What the parts of the client state machine have to say, in order.

Frames for the wire and events for the application, until the driver takes them.
"""

from protocol.client.events import ClientEvent
from protocol.client.pace import Pace
from protocol.codec import encode
from protocol.commands import ACK_COST, Ack, Frame
from protocol.content import ErrorBody


class Output:
    """Two lists and the server's limit on frames.

    Attributes:
        frame_bytes: The longest frame the server takes; None before it said so.
            A longer one is never written: it would end the connection, and
            again whenever it is sent again.
        pace: Told of every frame that is written.
    """

    def __init__(self) -> None:
        self.frame_bytes: int | None = None
        self.pace = Pace()
        self._frames: list[bytes] = []
        self._events: list[ClientEvent] = []

    def write(self, frame: Frame) -> ErrorBody | None:
        """Encodes a frame and puts it at the end of what is sent."""
        cost = ACK_COST if isinstance(frame, Ack) else 1.0
        return self.write_encoded(encode(frame), cost)

    def write_encoded(self, frame: bytes, cost: float = 1.0) -> ErrorBody | None:
        """Puts a frame at the end of what is sent, or says why it can't be."""
        if self.frame_bytes is not None and len(frame) > self.frame_bytes:
            return ErrorBody(
                code="too_large",
                message=f"The frame has {len(frame)} bytes, the limit is"
                f" {self.frame_bytes}; send less.",
                retryable=False,
            )
        self._frames.append(frame)
        self.pace.spend(cost)
        return None

    def emit(self, event: ClientEvent) -> None:
        """Tells the application."""
        self._events.append(event)

    def take_frames(self) -> list[bytes]:
        """Takes what is to be sent; also what a lost connection voids."""
        frames, self._frames = self._frames, []
        return frames

    def take_events(self) -> list[ClientEvent]:
        """Takes what the application is to be told."""
        events, self._events = self._events, []
        return events
