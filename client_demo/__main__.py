"""`python -m client_demo`: what Ctrl-C does while all else is imported."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    # The public one takes milliseconds, in which no handler would be there.
    import _signal as signal


def _end(number: int, frame: object) -> None:
    del frame
    os._exit(128 + number)


def main() -> None:
    """Runs the command line and exits with its code."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else it is ignored
        signal.signal(signal.SIGINT, _end)
    from client_demo.cli import main as run

    try:
        signal.signal(signal.SIGINT, before)
        run()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
