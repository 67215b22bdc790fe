"""Tells systemd how the server is: the protocol of `sd_notify(3)`.

It says nothing where nobody listens, that is without `NOTIFY_SOCKET`.
"""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic_ns

import anyio


class Service:
    """The service that the process is, if it is one."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Takes the variables that systemd has set.

        Args:
            environ: `NOTIFY_SOCKET` says where to tell; `WATCHDOG_USEC` how often it
                wants a sign of life, of the process `WATCHDOG_PID`.
        """
        path = environ.get("NOTIFY_SOCKET", "")
        # One that begins with @ is no file: its first byte is zero (unix(7)).
        self._address = "\0" + path[1:] if path.startswith("@") else path
        mine = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        microseconds = environ.get("WATCHDOG_USEC", "") if mine else ""
        self._watched_seconds = (
            float(microseconds) / 1_000_000 if microseconds.isdecimal() else 0.0
        )

    def ready(self) -> None:
        """Says that it serves, or that what it has read again is in force."""
        self._tell("READY=1")

    def reloading(self) -> None:
        """Says that it reads again; `ready` has to follow."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Says that it is about to end."""
        self._tell("STOPPING=1")

    async def live(self) -> None:
        """Gives signs of life, where they are wanted, until it is cancelled."""
        while self._watched_seconds:
            self._tell("WATCHDOG=1")
            await anyio.sleep(self._watched_seconds / 2)

    def _tell(self, state: str) -> None:
        if not self._address:
            return
        # A service manager that does not hear is no reason to stop serving.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
            to.setblocking(False)
            to.sendto(state.encode(), self._address)
