"""Times as text."""

from datetime import UTC, datetime


def timestamp(wall: float) -> str:
    """Writes seconds since the epoch as RFC 3339 in UTC with milliseconds."""
    moment = datetime.fromtimestamp(wall, UTC)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def wall_of(text: str) -> float:
    """Returns the seconds since the epoch that `timestamp` wrote."""
    return datetime.fromisoformat(text).timestamp()
