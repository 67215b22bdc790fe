"""Which `delete` commands were applied: one that is sent again deletes nothing more.

A conversation's receipts go with it, and its name may be used anew before a client
whose reply was lost sends its `delete` again.
"""

from collections import OrderedDict

MOST = 10_000
"""So many are remembered, for as long as the process lives."""


class Deletions:
    """Remembers the newest ones, by conversation, principal and id."""

    def __init__(self) -> None:
        self._applied: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    def add(self, key: str, by: str, command: str) -> None:
        """Remembers one."""
        self._applied[key, by, command] = None
        if len(self._applied) > MOST:
            self._applied.popitem(last=False)

    def knows(self, key: str, by: str, command: str) -> bool:
        """Whether it was applied, as far as that is remembered."""
        return (key, by, command) in self._applied
