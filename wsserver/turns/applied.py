"""What comes of a command."""

from msgspec import Struct

from protocol.control import Reply


class Applied(Struct, frozen=True, kw_only=True):
    """A command was applied.

    Attributes:
        reply: Leaves when the store has all that the log has now.
        flush_through: Before the reply, this connection's text up to this
            number has to be sent; 0 for none.
    """

    reply: Reply
    flush_through: int = 0
