"""What the scopes of a token allow."""

from collections.abc import Iterable, Mapping
from typing import Final

from wsserver.auth.principal import VERBS, Verb

PREFIX: Final = "wsserver:"

_READ: Final[frozenset[Verb]] = frozenset(("open", "ack", "close"))
_DELETE: Final[frozenset[Verb]] = frozenset(("delete",))
_MEANINGS: Final[Mapping[str, frozenset[Verb]]] = {
    "read": _READ,
    "write": VERBS - _DELETE,
    "delete": _READ | _DELETE,
    "all": VERBS,
}
"""What stands behind the prefix, and what it allows."""


def allowed(scopes: Iterable[str]) -> frozenset[Verb]:
    """Returns all that the scopes allow; none of them is an error."""
    verbs = frozenset[Verb]()
    for scope in scopes:
        if scope.startswith(PREFIX):
            verbs |= _MEANINGS.get(scope[len(PREFIX) :], frozenset())
    return verbs
