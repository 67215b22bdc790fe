"""Reads one message of an MCP server, also such as strict readers refuse.

An answer that can't be read is an error for whoever waits for it: dropped, the call
would last to its deadline.
"""

import re
from typing import Any, cast

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


def read_message(line: bytes, server: str) -> JSONRPCMessage | None:
    """Returns the message that a line is, or the error that stands for it.

    Args:
        line: What came; halves of surrogate pairs and bytes that are no UTF-8 are
            replaced, a byte order mark is passed over.
        server: Its name, for the log.

    Returns:
        None where it is nothing that anybody waits for.
    """
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        text = _HALF.sub(_mended, line.decode("utf-8-sig", "replace"))
    try:
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as error:
        why = _reason(error)
    message = _object(text)
    request = message.get("id")
    if not isinstance(request, str | int) or "method" in message:
        log.debug("mcp_server_babbles", server=server)
        return None
    log.warning("mcp_message_unreadable", server=server, why=why)
    fault = ErrorData(code=PARSE_ERROR, message=f"what it said is not valid: {why}")
    return JSONRPCError(jsonrpc="2.0", id=request, error=fault)


def _mended(match: re.Match[str]) -> str:
    return "\\ufffd" if match[1] else match[0]


def _reason(error: ValidationError) -> str:
    """Says what is wrong, without what it was."""
    first = error.errors(include_url=False, include_input=False)[0]
    return first["msg"] if first["type"] == "json_invalid" else "no JSON-RPC message"


def _object(text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
