"""The two clocks and the random source that the machines are given."""

import random
import secrets
import time
from datetime import UTC, datetime


class Clock:
    """Time and chance, in one place so that tests can put another here."""

    now = staticmethod(time.monotonic)
    """Returns seconds; not the event loop's, since uvloop's are whole milliseconds."""

    def wall(self) -> float:
        """Returns seconds since the epoch."""
        return datetime.now(UTC).timestamp()

    def jitter(self) -> float:
        """Returns a random number in [0, 1)."""
        return random.random()  # noqa: S311 - spreads retries, guards nothing

    def token(self) -> str:
        """Returns a fresh identifier that cannot be guessed."""
        return secrets.token_hex(8)
