"""What a conversation needs of each connection that has it open."""

from typing import Protocol

from protocol.control import ToolRequest, Waiting


class Viewer(Protocol):
    """One connection's view of one conversation.

    Attributes:
        connection: The connection's id.
        handles: Names of the tools the connection runs.
    """

    connection: str
    handles: frozenset[str]

    def sent_through(self) -> int:
        """Returns the last number that was sent on this connection."""
        ...

    def mute(self, turn: int) -> None:
        """From now on sends no text of that turn on this connection.

        Numbers that hold such text go out as `skip`, once the log's cut is stored.
        """
        ...

    def request_tool(self, request: ToolRequest) -> None:
        """Asks this connection to run a tool."""
        ...

    def show_waiting(self, frame: Waiting) -> None:
        """Tells this connection that the turn has no token yet."""
        ...
