"""How long receipts are kept: the protocol promises whichever is more."""

KEPT_SECONDS = 86_400.0
"""A receipt is kept at least this long ..."""

KEPT = 1_000
"""... and while it is among this many newest of its principal and conversation."""
