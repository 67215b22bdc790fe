"""`wsserver`, and `python -m wsserver`: what a signal does while all else is imported.

Then there is nothing to end yet. A server takes signals over once it has a loop.
"""

import os
import signal
import sys
from types import FrameType


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    os._exit(128 + number)


def _end_well(number: int, frame: FrameType | None) -> None:
    del number, frame
    os._exit(0)


def main() -> None:
    """Runs the command line and exits with its code."""
    serves = sys.argv[1:2] == ["serve"]
    numbers = (signal.SIGINT, signal.SIGTERM) if serves else (signal.SIGINT,)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, _end_well if serves else _end)
    if serves:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nothing is loaded to be reloaded
    from wsserver.cli import main as run

    if not serves:
        signal.signal(signal.SIGINT, before[signal.SIGINT])
    run()


if __name__ == "__main__":
    main()
