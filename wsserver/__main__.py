"""`wsserver`, and `python -m wsserver`: what a signal does while all else is imported.

Then there is nothing to end yet. A server takes signals over once it has a loop. What
comes before the first line here is Python's: the default ends the process, or a Ctrl-C
is a `KeyboardInterrupt` in whatever Python loads then. And Python calls a handler between
two steps of its own: not while a call into the system lasts that nothing interrupts, as
that of a disk that hangs, nor where the signal came an instant before one that waits.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    # The public one takes milliseconds, in which no handler would be there.
    import _signal as signal

_STANDARD_ERROR = 2
_LAST_LINE = b"wsserver: stopped while starting\n"


def _end(number: int, frame: object) -> None:
    del frame
    os._exit(128 + number)


def _end_well(number: int, frame: object) -> None:
    del number, frame
    try:
        import select

        # Nobody may read it; the pipe is full then.
        if select.select([], [_STANDARD_ERROR], [], 0)[1]:
            os.write(_STANDARD_ERROR, _LAST_LINE)
    finally:
        os._exit(0)


def main() -> None:
    """Runs the command line and exits with its code."""
    serves = sys.argv[1:2] == ["serve"]
    numbers = (signal.SIGINT, signal.SIGTERM) if serves else (signal.SIGINT,)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] != signal.SIG_IGN:
            signal.signal(number, _end_well if serves else _end)
    if serves:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nothing is loaded to be reloaded
    from wsserver.cli import main as run

    try:
        if not serves:
            signal.signal(signal.SIGINT, before[signal.SIGINT])
        run()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
