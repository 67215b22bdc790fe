"""What a server needs of its machine: open files, a clock that is right."""

import ctypes
import resource

from wsserver.assembly.open_files import other_than_clients
from wsserver.operations.checks.findings import Finding, ok, warn
from wsserver.settings import Settings

MAX_SKEW_SECONDS = 5.0

_TIMEX_BYTES = 512  # more than any system's `struct timex`
_TIME_ERROR = 5


def open_files(settings: Settings) -> Finding:
    """Compares the limit of open files with what the settings allow to be needed."""
    # A server takes all that it may have, so the hard limit counts.
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    return judge_open_files(
        None if limit == resource.RLIM_INFINITY else limit, settings
    )


def judge_open_files(limit: int | None, settings: Settings) -> Finding:
    """Says what a limit of open files (None: none) means for the settings."""
    needed = settings.max_connections + other_than_clients(settings)
    if limit is None or limit >= needed:
        says = "no limit" if limit is None else f"{limit} allowed"
        return ok("open files", f"{says}, at most {needed} needed")
    return warn(
        "open files",
        f"{limit} allowed, but up to {needed} needed: each client and each model call"
        " is one",
        "allow more (LimitNOFILE= in systemd, --ulimit nofile= for containers), or set"
        f" max_connections to {max(1, limit - needed + settings.max_connections)} or less",
    )


def clock() -> Finding:
    """Asks the kernel whether something keeps the clock right."""
    kept = _is_kept()
    if kept is None:
        return ok("clock", "this system does not tell whether it is kept right")
    if kept:
        return ok("clock", "kept right")
    return warn(
        "clock",
        "nothing keeps it right; the end of credentials, retention and all times in"
        " events rely on it",
        "run chrony or systemd-timesyncd on the host",
    )


def judge_skew(seconds: float) -> Finding:
    """Says what it means that the server's clock is so far ahead of this one."""
    if abs(seconds) <= MAX_SKEW_SECONDS:
        return ok("clock there", f"agrees with this one within {MAX_SKEW_SECONDS:g} s")
    direction = "ahead of" if seconds > 0 else "behind"
    return warn(
        "clock there",
        f"{abs(seconds):.0f} s {direction} this one",
        "run chrony or systemd-timesyncd on both machines",
    )


def _is_kept() -> bool | None:
    try:
        adjtimex = ctypes.CDLL(None).adjtimex
    except (AttributeError, OSError, TypeError):
        return None
    state = adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))  # all zero: only ask
    return None if state < 0 else state != _TIME_ERROR
