"""Where logs are kept: drivers behind the `Store` protocol of `wsserver.log`."""

from typing import Literal

Durability = Literal["process", "power"]
"""What a commit outlives: the end of the process, or a power failure as well
(which costs a write to the medium for each commit)."""
