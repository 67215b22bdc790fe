"""What a turn may take."""

from msgspec import Struct

from wsserver.engine.deadlines import Patience
from wsserver.engine.tools import ToolTimes


class TurnLimits(Struct, frozen=True, kw_only=True):
    """What a turn may take.

    Attributes:
        patience: How long it waits.
        tool_times: How long tool calls may take.
        turn_bytes: Text of all kinds together, in UTF-8.
        rounds: Model calls that may ask for tools.
        calls: Tool calls in all.
        call_bytes: Arguments of one call.
    """

    patience: Patience = Patience()
    tool_times: ToolTimes = ToolTimes()
    turn_bytes: int = 4 * 2**20
    rounds: int = 16
    calls: int = 32
    call_bytes: int = 131_072
