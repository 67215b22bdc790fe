"""Reads the messages of an MCP server, also such as strict readers refuse.

An answer that can't be read is an error for whoever waits for it: dropped, the call
would last to its deadline. Of a batch, an array of messages that one version of the
protocol had, each is read for itself.
"""

import re
from typing import Any, cast

import jiter
import orjson
import structlog
from mcp.types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

# Half of a surrogate pair, as servers write that cut text by UTF-16 units. Whole
# pairs and escaped backslashes are matched first, so that they are passed over.
_HALF = re.compile(
    r"\\\\"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)

log = structlog.get_logger(__name__)


class MessageReader:
    """Reads what one server says."""

    def __init__(self, server: str) -> None:
        """Takes the server's name, for the log."""
        self._server = server
        self._told_of_batches = False

    def read(self, content: bytes) -> list[JSONRPCMessage]:
        """Returns the messages that one line or body holds, or what stands for them.

        For an answer that can't be read that is an error.

        Args:
            content: What came; halves of surrogate pairs and bytes that are no UTF-8
                are replaced, a byte order mark is passed over.

        Returns:
            Nothing for what nobody waits for.
        """
        try:
            return [jsonrpc_message_adapter.validate_json(content, by_name=False)]
        except ValidationError:
            text = _HALF.sub(_mended, content.decode("utf-8-sig", "replace")).strip()
        return self._batch(text) if text.startswith("[") else self._one(text)

    def _one(self, text: str) -> list[JSONRPCMessage]:
        try:
            return [jsonrpc_message_adapter.validate_json(text, by_name=False)]
        except ValidationError as error:
            why = _reason(error)
        message = _object(text)
        if message is None and text.startswith("{"):
            self._tell(why)  # Nobody can say whose answer it was.
            return []
        return self._unreadable(message, why)

    def _batch(self, text: str) -> list[JSONRPCMessage]:
        try:
            parts = jiter.from_json(text.encode())
        except ValueError as error:
            self._tell(f"Invalid JSON: {error}")
            return []
        self._tell_of_batch()
        return [message for part in parts for message in self._part(part)]

    def _part(self, part: Any) -> list[JSONRPCMessage]:
        try:
            return [jsonrpc_message_adapter.validate_python(part, by_name=False)]
        except ValidationError as error:
            return self._unreadable(part, _reason(error))

    def _unreadable(self, message: Any, why: str) -> list[JSONRPCMessage]:
        members = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
        request = members.get("id")
        if not isinstance(request, str | int) or "method" in members:
            log.debug("mcp_server_babbles", server=self._server)
            return []
        self._tell(why)
        return [unreadable(request, why)]

    def _tell(self, why: str) -> None:
        log.warning("mcp_message_unreadable", server=self._server, why=why)

    def _tell_of_batch(self) -> None:
        """Logs once that there are batches: clients that know of none lose them."""
        if not self._told_of_batches:
            self._told_of_batches = True
            log.warning(
                "mcp_batch",
                server=self._server,
                why="it sends arrays of messages, which the protocol has no more;"
                " each message in them is read",
            )


def unreadable(request: str | int, why: str) -> JSONRPCError:
    """Returns what stands for the answer to a request that can't be read."""
    fault = ErrorData(code=PARSE_ERROR, message=f"what it said is not valid: {why}")
    return JSONRPCError(jsonrpc="2.0", id=request, error=fault)


def _mended(match: re.Match[str]) -> str:
    return "\\ufffd" if match[1] else match[0]


def _reason(error: ValidationError) -> str:
    """Says what is wrong, without what it was."""
    first = error.errors(include_url=False, include_input=False)[0]
    return first["msg"] if first["type"] == "json_invalid" else "no JSON-RPC message"


def _object(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
