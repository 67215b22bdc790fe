"""When a connection has waited too long: heartbeats, dead and slow peers, expiry.

`Deadlines` decides and does nothing; `wsserver.connections.connection` acts.
"""

from math import inf

from msgspec import Struct

from protocol.codes import CloseCode
from wsserver.connections.settings import ConnectionSettings

LEAST_WAIT_SECONDS = 0.001
"""What is left of credentials is told by another clock: it may round to nothing."""


class Pulse(Struct, frozen=True, kw_only=True, gc=False):
    """How a connection is at one moment.

    Attributes:
        received_bytes: What came in so far.
        drained_bytes: What the peer's socket took so far.
        buffered: Whether the transport holds bytes that it did not take.
        due: Whether something waits to be handed to the transport.
        expires_in: Seconds until the credentials end; None for never.
    """

    received_bytes: int
    drained_bytes: int
    buffered: bool
    due: bool
    expires_in: float | None = None


class Due(Struct, frozen=True, kw_only=True, gc=False):
    """What has to be done.

    Attributes:
        close: End the connection with this code.
        heartbeat: Send a heartbeat.
        expiring: Tell the client that its credentials end.
        check_at: When to look again, at the latest.
    """

    close: CloseCode | None = None
    heartbeat: bool = False
    expiring: bool = False
    check_at: float = inf


class Deadlines:
    """The deadlines of one connection. Times are seconds on a monotonic clock.

    Progress is seen only when it is looked for, so a connection is closed up to a
    fraction of the limit late, never early.
    """

    def __init__(self, settings: ConnectionSettings, now: float) -> None:
        """Starts with the wait for `hello`."""
        self._settings = settings
        self._hello_at = now + settings.hello_seconds
        self._heartbeat_at = inf
        self._received = self._drained = 0
        self._alive_at = now
        self._moved_at = now
        self._was_buffered = False
        self._warned = False

    def heard(self) -> None:
        """Takes note of a `hello`: to believe it may take a moment longer."""
        self._hello_at = inf

    def greeted(self, now: float) -> None:
        """Takes note that it was believed; heartbeats begin."""
        self._heartbeat_at = now + self._settings.heartbeat_seconds

    def refreshed(self) -> None:
        """Takes note of new credentials: their end will be announced anew."""
        self._warned = False

    def check(self, now: float, pulse: Pulse) -> Due:
        """Says what has to be done now."""
        settings = self._settings
        self._observe(now, pulse)
        if now >= self._hello_at:
            return Due(close=CloseCode.NO_HELLO)
        if now >= self._moved_at + settings.slow_after_seconds:
            return Due(close=CloseCode.SLOW)
        if now >= self._alive_at + settings.dead_after_seconds:
            return Due(close=CloseCode.DEAD)
        expires_in = inf if pulse.expires_in is None else pulse.expires_in
        if expires_in <= 0:
            return Due(close=CloseCode.UNAUTHORIZED)
        expiring = expires_in <= settings.expiry_notice_seconds and not self._warned
        self._warned = self._warned or expiring
        heartbeat = now >= self._heartbeat_at
        if heartbeat:
            self._heartbeat_at = now + settings.heartbeat_seconds
        notice_in = expires_in - settings.expiry_notice_seconds
        changes_in = expires_in if self._warned else notice_in
        return Due(
            heartbeat=heartbeat,
            expiring=expiring,
            check_at=min(
                self._hello_at,
                self._heartbeat_at,
                self._look_again_at(now, pulse),
                now + max(changes_in, LEAST_WAIT_SECONDS),
            ),
        )

    def _observe(self, now: float, pulse: Pulse) -> None:
        drained = pulse.drained_bytes > self._drained
        if pulse.received_bytes > self._received or (
            drained and (self._was_buffered or not self._settings.transport_pings)
        ):
            self._alive_at = now
        if drained or not (pulse.buffered or pulse.due):
            self._moved_at = now
        self._received = pulse.received_bytes
        self._drained = max(self._drained, pulse.drained_bytes)
        self._was_buffered = pulse.buffered

    def _look_again_at(self, now: float, pulse: Pulse) -> float:
        slow, dead = (
            self._settings.slow_after_seconds,
            self._settings.dead_after_seconds,
        )
        if pulse.buffered or pulse.due:
            return min(now + min(slow / 16, dead / 4), self._moved_at + slow)
        return now + min(slow / 4, dead / 4)
