"""Identifiers and numbers that every frame is built from."""

from typing import Annotated

from msgspec import Meta

VERSION = 1
SUBPROTOCOL = "wsserver.v1"
MAX_SEQ = 2**53 - 1

Id = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_.:-]{1,128}$(?!\n)",
        description="1 to 128 of A-Z a-z 0-9 . _ : -",
    ),
]
Seq = Annotated[int, Meta(ge=1, le=MAX_SEQ, description="A number in a log.")]
Ms = Annotated[int, Meta(ge=0, description="Milliseconds.")]
Timestamp = Annotated[
    str, Meta(description="RFC 3339 in UTC with milliseconds, ending in Z.")
]
