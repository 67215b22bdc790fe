"""Schemas that were made ready to check values, kept for the next value.

Clients give them, so all together are bounded, in number and in bytes; the one that was
not used for longest goes first.
"""

from collections import OrderedDict
from typing import Final

import jsonschema_rs
from msgspec import Struct

from wsserver.engine.schema_cost import Survey

MOST: Final = 256
MOST_BYTES: Final = 1_048_576
"""In JSON; what is kept takes some 25 times as much, up to 55."""
NODE_BYTES: Final = 16
"""What a list or an object counts for beside its JSON: it takes 400 bytes, were it empty."""
PATTERN_BYTES: Final = 32_768
"""What a pattern counts for: it takes 150 KB, were it only of some characters."""


class Ready(Struct, frozen=True, kw_only=True):
    """A schema that is ready to check values.

    Attributes:
        survey: Tells what a check would cost.
        validator: Does it.
    """

    survey: Survey
    validator: jsonschema_rs.Validator


class SchemaCache:
    """Keeps what was made ready, by the schema in JSON.

    Attributes:
        bytes: What all that is kept counts for.
    """

    def __init__(self) -> None:
        """Begins with nothing."""
        self._kept: OrderedDict[bytes, Ready] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        """Returns how many are kept."""
        return len(self._kept)

    def get(self, key: bytes) -> Ready | None:
        """Returns what was made of a schema, None if it is not kept."""
        ready = self._kept.get(key)
        if ready is not None:
            self._kept.move_to_end(key)
        return ready

    def keep(self, key: bytes, ready: Ready) -> None:
        """Keeps what is not kept yet, unless it is too large."""
        size = _size(key, ready)
        if size > MOST_BYTES:
            return
        self._kept[key] = ready
        self.bytes += size
        while len(self._kept) > MOST or self.bytes > MOST_BYTES:
            self.bytes -= _size(*self._kept.popitem(last=False))


def _size(key: bytes, ready: Ready) -> int:
    survey = ready.survey
    nodes = survey.written_out(survey.schema)
    return len(key) + NODE_BYTES * nodes + PATTERN_BYTES * len(survey.patterns)
