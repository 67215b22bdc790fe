"""Which tool calls this client was asked to run, and what it answered.

It makes a redelivered request harmless: a tool that runs is not started again,
and a result that is known is sent again instead.
"""

from msgspec import Struct

_Key = tuple[str, str]


class _Asked(Struct):
    """A call: running while `result` is None, else its encoded `tool_result`.

    Attributes:
        settled: The server has taken the result.
    """

    turn: int
    result: bytes | None = None
    settled: bool = False


class ToolLedger:
    """Calls from their request until their turn is done.

    Of a conversation that is let go, until the server has their result: it may be
    opened again, and then they are asked for again.
    """

    def __init__(self) -> None:
        self._calls: dict[_Key, _Asked] = {}

    def ask(self, conversation: str, call: str, turn: int) -> bool:
        """Notes a request.

        Returns:
            Whether it is the first of this call, so that the tool must run.
        """
        key = (conversation, call)
        if key in self._calls:
            return False
        self._calls[key] = _Asked(turn=turn)
        return True

    def result(self, conversation: str, call: str) -> bytes | None:
        """The frame that answers a call; None while the tool runs."""
        asked = self._calls.get((conversation, call))
        return asked.result if asked else None

    def answer(self, conversation: str, call: str, frame: bytes | None) -> None:
        """Notes the result of a call, or with None that it was refused."""
        asked = self._calls.get((conversation, call))
        if asked is not None:
            asked.result = frame

    def settle(self, conversation: str, call: str, *, is_open: bool) -> None:
        """Notes that the server has taken the result of a call."""
        asked = self._calls.get((conversation, call))
        if asked is not None:
            asked.settled = True
            if not is_open:
                del self._calls[conversation, call]

    def let_go(self, conversation: str) -> None:
        """Drops what will not be asked for when the conversation is opened again."""
        gone = [
            key
            for key, asked in self._calls.items()
            if key[0] == conversation and asked.settled
        ]
        for key in gone:
            del self._calls[key]

    def forget(self, conversation: str, turn: int | None = None) -> None:
        """Drops the calls of a turn that is done, or of a whole conversation."""
        gone = [
            key
            for key, asked in self._calls.items()
            if key[0] == conversation and turn in {None, asked.turn}
        ]
        for key in gone:
            del self._calls[key]
