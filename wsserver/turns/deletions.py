"""Which `delete` commands were applied: one that is sent again deletes nothing more.

A conversation's receipts go with it, and its name may be used anew before a client
whose reply was lost sends its `delete` again.
"""

from hashlib import blake2b

import orjson

from protocol.commands import Delete
from wsserver.turns.errors import id_in_use
from wsserver.turns.receipts import digest

MOST = 10_000
"""So many are remembered, for as long as the process lives: 1.6 MB of hashes."""


class Deletions:
    """Remembers the newest ones, by conversation, principal and id."""

    def __init__(self) -> None:
        self._applied: dict[bytes, bytes] = {}  # whose, and what content

    def add(self, key: str, by: str, command: Delete) -> None:
        """Remembers one."""
        self._applied[_name(key, by, command)] = digest(command)
        if len(self._applied) > MOST:
            del self._applied[next(iter(self._applied))]

    def knows(self, key: str, by: str, command: Delete) -> bool:
        """Whether it was applied, as far as that is remembered.

        Raises:
            CommandError: The id was used for another content.
        """
        found = self._applied.get(_name(key, by, command))
        if found is not None and found != digest(command):
            raise id_in_use(command.id)
        return found is not None


def _name(key: str, by: str, command: Delete) -> bytes:
    names = orjson.dumps((key, by, command.id))
    return blake2b(names, digest_size=16).digest()
