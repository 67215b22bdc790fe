"""Open files: how many a process may have, and how many its settings may need.

Each client and each model call is one. With none left the system drops clients
without a word to anybody, so a server takes no more of them than there is room for.
"""

import resource
import socket

from msgspec.structs import replace

from wsserver.settings import Settings

OWN_FILES = 100
"""Files that a server has open besides connections: the store, logs, libraries."""

MOST_SPARE = 4096
FEWEST_SPARE = 8


def allow_most() -> int | None:
    """Takes as many as the system allows; returns how many, None for no limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return None if soft == resource.RLIM_INFINITY else soft
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def other_than_clients(settings: Settings) -> int:
    """Returns how many may be needed besides those of clients."""
    upstreams = len(settings.models) + 1
    return upstreams * settings.upstream_pool_size + OWN_FILES


def left() -> int | None:
    """Returns about how many more may be opened; None where that is no question."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        with socket.socket() as probe:  # it gets the lowest number that is free
            return limit - probe.fileno()
    except OSError:
        return 0


def spare(connections: int) -> int:
    """Returns how many connections there is room for besides so many of clients.

    A third of what is left: once for those that are being answered, once for those
    that come at the same moment, and the rest is for all else.
    """
    free = left()
    if free is None:
        return MOST_SPARE
    return min(max(FEWEST_SPARE, (free - connections) // 3), MOST_SPARE)


def fitted(settings: Settings, limit: int | None) -> Settings:
    """Returns the settings with no more connections than a limit has room for.

    At least half of the limit (None: there is none) is for clients.
    """
    if limit is None:
        return settings
    room = max(1, limit - min(other_than_clients(settings), limit // 2))
    return replace(settings, max_connections=min(settings.max_connections, room))
