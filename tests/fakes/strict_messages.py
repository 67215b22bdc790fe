"""What a strict provider refuses in the messages of a chat request."""

from collections.abc import Sequence
from typing import Any

_ROLES = frozenset({"system", "developer", "user"})


def find_fault(messages: object) -> str | None:
    """Returns what is wrong with `messages` in a provider's words, or None.

    Calls and results must stand in pairs and in order, no two calls may have one id, no
    assistant message may be empty, and the roles must follow each other as they do in a
    conversation.
    """
    if not isinstance(messages, list) or not messages:
        return "'messages' must be a list that is not empty"
    pending: list[str] = []
    ids: set[str] = set()
    before = ""
    for number, message in enumerate(messages):
        fault = _fault_of(message, before, pending)
        if pending and isinstance(message, dict) and message.get("role") in _ROLES:
            fault = f"tool calls without results: {', '.join(pending)}"
        if fault is not None:
            return f"messages[{number}]: {fault}"
        calls = [call["id"] for call in message.get("tool_calls") or ()]
        if not ids.isdisjoint(calls):
            return (
                f"messages[{number}]: an id of a tool call that stood before: {calls}"
            )
        ids.update(calls)
        before = message["role"]
    if pending:
        return f"tool calls without results: {', '.join(pending)}"
    return None if before in {"user", "tool"} else f"the last message is of '{before}'"


def _fault_of(message: Any, before: str, pending: list[str]) -> str | None:
    role = message.get("role") if isinstance(message, dict) else None
    if role == "tool":
        return _take_result(message, pending)
    if role == "assistant":
        if before not in {"user", "tool"} or pending:
            return "an assistant message must follow a user or tool message"
        return _take_calls(message, pending)
    if role in {"system", "developer"} and before not in {"", "system", "developer"}:
        return f"a {role} message must stand at the start"
    if role == "user" and not message.get("content"):
        return "a user message must have content"
    return None if role in _ROLES else f"unknown role {role!r}"


def _take_result(message: dict[str, Any], pending: list[str]) -> str | None:
    call = message.get("tool_call_id")
    if not pending or call != pending[0]:
        return f"a result for {call!r}, which is not the next open call"
    if not isinstance(message.get("content"), str):
        return "the content of a result must be a string"
    pending.pop(0)
    return None


def _take_calls(message: dict[str, Any], pending: list[str]) -> str | None:
    calls: Sequence[Any] = message.get("tool_calls") or ()
    if not calls and not message.get("content"):
        return "an assistant message must have content or tool calls"
    for call in calls:
        function = call.get("function", {})
        if not call.get("id") or not function.get("name"):
            return "a tool call must have an id and a name"
        if not isinstance(function.get("arguments"), str):
            return "the arguments of a tool call must be a string"
        if call["id"] in pending:
            return f"two tool calls with the id {call['id']!r}"
        pending.append(call["id"])
    return None
