"""What values of settings may be."""

from typing import Annotated, Literal

from msgspec import Meta

Host = Annotated[str, Meta(min_length=1)]
Port = Annotated[int, Meta(ge=0, le=65535)]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
SecondsOrZero = Annotated[float, Meta(ge=0, le=31_536_000)]
Count = Annotated[int, Meta(ge=1)]
Bytes = Annotated[int, Meta(ge=1024)]
Bound = Annotated[int, Meta(ge=0, le=2**53)] | Annotated[float, Meta(ge=0, le=2**53)]
FrameBytes = Annotated[int, Meta(ge=163_840)]
"""At least the longest text that is joined, or arguments of a call (131,072 bytes each),
with what a frame has around them, and all that is not bounded by other settings."""
Text = Annotated[str, Meta(min_length=1)]
KeysUrl = Annotated[
    str, Meta(pattern=r"^https?://[^/?#@\s]+(/\S*)?$", title="an HTTP URL without @")
]
Origin = Annotated[
    str,
    Meta(
        pattern=r"^(null|https?://[^/?#\s]+)$",
        title="an origin such as https://chat.example.org",
    ),
]
JwtAlgorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512",
    "EdDSA", "HS256", "HS384", "HS512",
]  # fmt: skip
