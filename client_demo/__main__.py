"""`python -m client_demo`: what Ctrl-C does while all else is imported."""

import os
import signal
from types import FrameType


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    os._exit(128 + number)


def main() -> None:
    """Runs the command line and exits with its code."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else it is ignored
        signal.signal(signal.SIGINT, _end)
    from client_demo.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
