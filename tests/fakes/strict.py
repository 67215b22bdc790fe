"""What a strict provider takes for a prompt, as an assertion."""

import re
from collections.abc import Sequence
from typing import Any

import orjson

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_prompt(messages: Sequence[dict[str, Any]], *, asks: bool = True) -> None:
    """Fails unless roles, pairs and contents are in order.

    Args:
        messages: In the shape of the Chat Completions API.
        asks: Whether the model is to answer it: then it ends with what it answers.
    """
    rest = list(messages)
    if rest and rest[0]["role"] == "system":
        assert rest.pop(0)["content"]
    assert not rest or rest[0]["role"] == "user", "an answer without a question"
    before = ""
    while rest:
        message = rest.pop(0)
        match message["role"]:
            case "user":
                assert isinstance(message["content"], str | list)
            case "assistant":
                assert before != "assistant", "two answers in a row"
                _check_answer(message, rest)
            case role:
                raise AssertionError(f"{role} stands alone")
        before = "tool" if message.get("tool_calls") else message["role"]
    if asks:
        assert before in ("user", "tool"), "there is nothing to answer"


def _check_answer(message: dict[str, Any], rest: list[dict[str, Any]]) -> None:
    calls = message.get("tool_calls")
    assert calls != [], "an empty list of calls"
    assert message["content"] or (calls and message["content"] is None)
    ids = [call["id"] for call in calls or ()]
    assert len(set(ids)) == len(ids)
    for call in calls or ():
        assert call["type"] == "function"
        assert _NAME.fullmatch(call["function"]["name"])
        orjson.loads(call["function"]["arguments"])
        assert rest, "a call without its result"
        result = rest.pop(0)
        assert result["role"] == "tool", "a call without its result"
        assert result["tool_call_id"] == call["id"], "results are not in call order"
        assert isinstance(result["content"], str)
        assert result["content"]
