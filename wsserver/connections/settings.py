"""What a connection may take, and how long it waits."""

from msgspec import Struct

from protocol.content import Limits, ServerInfo


class ConnectionSettings(Struct, frozen=True, kw_only=True):
    """The same for all connections of a server.

    Attributes:
        server: Who welcomes.
        models: Names that `welcome` offers.
        features: The optional parts that `welcome` names.
        limits: What `welcome` announces; those of frames, connections and open
            conversations are enforced in this room.
        hello_seconds: From the start to `hello`.
        heartbeat_seconds: Between two `ping` frames.
        dead_after_seconds: Nothing came in and nothing drained for so long.
        slow_after_seconds: Something was due and nothing drained for so long.
        transport_pings: Whether the transport itself pings the peer at least
            each `heartbeat_seconds` and counts the answers as received bytes.
            Then bytes that the kernel took at once are no sign of the peer's
            life; without it they are, and a peer that vanished is found by TCP.
        expiry_notice_seconds: How long before their end clients are told to
            refresh their credentials.
        high_water_bytes: No more is handed to the transport while it buffers
            more than this: little enough that a control frame is not held up.
        principal_frames_burst: Frames that all connections of one space may send at
            once, where `limits.principal_frames_per_second` is set.
        refusals_per_second: Frames beyond that which are refused before the
            connection is closed, on average.
        refusals_burst: And at once.
        bad_frames: More of them within `bad_frames_seconds` end the connection.
        bad_frames_seconds: See there.
        waiting_commands: Commands that may wait for the store.
        unread_frames: Control frames that may wait for the client to read: with so
            many answers no more is read from it, with so many others it is closed.
        unread_bytes: Bytes of answers that wait while no more is read.
    """

    server: ServerInfo
    models: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    limits: Limits
    hello_seconds: float = 5.0
    heartbeat_seconds: float = 20.0
    dead_after_seconds: float = 60.0
    slow_after_seconds: float = 30.0
    transport_pings: bool = False
    expiry_notice_seconds: float = 60.0
    high_water_bytes: int = 65_536
    principal_frames_burst: int = 5_000
    refusals_per_second: float = 20.0
    refusals_burst: int = 500
    bad_frames: int = 100
    bad_frames_seconds: float = 10.0
    waiting_commands: int = 512
    unread_frames: int = 1_000
    unread_bytes: int = 2**20
