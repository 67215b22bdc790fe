"""What a recording is made of: a header, then a line of JSON for each thing seen.

The same lines stand in the ring, go to the inspector's page and into files. The
format is documented in docs/how-to/inspect.md; whoever changes it in a way that old
readers do not understand raises `VERSION`.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from protocol.content import ServerInfo

VERSION = 1

Fault = Literal["duplicated", "repeated", "lost"]
"""What the inspector did to a frame on request: a command given to the server a
second time, an event sent to the client a second time, an event not sent at all."""


EndedBy = Literal["client", "server", "inspector"]


class Header(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first line.

    Attributes:
        recording: The version of the format.
        server: Which server was recorded.
        started_at: When `at_ms` was 0, as an RFC 3339 time.
        content: Whether texts are there, or their lengths in their place.
    """

    recording: int
    server: ServerInfo
    started_at: str
    content: Literal["redacted", "whole"]


class Line(Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """The base of all lines after the header.

    Attributes:
        n: The line's number, from 1.
        at_ms: Milliseconds since the recording began.
    """

    n: int
    at_ms: float


class Opened(Line, frozen=True, kw_only=True, omit_defaults=True, tag="opened"):
    """A connection is there."""

    connection: str


class Inbound(Line, frozen=True, kw_only=True, omit_defaults=True, tag="in"):
    """A frame came from the client.

    Attributes:
        bytes: Its length in UTF-8, as it was on the wire.
        frame: What it said; absent for what is no JSON object.
        fault: What the inspector did.
    """

    connection: str
    bytes: int
    frame: dict[str, Any] | UnsetType = UNSET
    fault: Fault | None = None


class Outbound(Line, frozen=True, kw_only=True, omit_defaults=True, tag="out"):
    """A frame was handed to the client's socket; members as for `Inbound`."""

    connection: str
    bytes: int
    frame: dict[str, Any] | UnsetType = UNSET
    fault: Fault | None = None


class Closed(Line, frozen=True, kw_only=True, omit_defaults=True, tag="closed"):
    """A connection has ended.

    Attributes:
        by: Who ended it.
        code: The close code; None where no close frame was seen.
    """

    connection: str
    by: EndedBy
    code: int | None = None


class Act(Line, frozen=True, kw_only=True, omit_defaults=True, tag="act"):
    """Somebody at the inspector did something to a connection.

    Attributes:
        act: What: `drop`, `delay`, `duplicate`, `repeat`, `lose`.
        in_ms: For `delay`: how long frames of the client take from here on.
        out_ms: For `delay`: how long frames to the client take.
    """

    connection: str
    act: str
    in_ms: int | None = None
    out_ms: int | None = None


class Lost(Line, frozen=True, kw_only=True, omit_defaults=True, tag="lost"):
    """Lines before this one are missing: the reader was slow, or the ring full."""

    lines: int


_UNNUMBERED = frozenset({"reply", "caught_up"})


def is_event(frame: Mapping[str, Any]) -> bool:
    """Whether a frame to the client is an event: it has a number of its own.

    Replies and `caught_up` tell numbers of events.
    """
    return "seq" in frame and frame.get("type") not in _UNNUMBERED


Record = Opened | Inbound | Outbound | Closed | Act | Lost

decode_header = msgspec.json.Decoder(Header).decode
decode_record = msgspec.json.Decoder(Record).decode
