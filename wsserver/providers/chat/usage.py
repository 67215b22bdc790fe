"""Reads token counts in the words of several vendors."""

from collections.abc import Mapping
from typing import Any

from wsserver.engine.model import MOST_TOKENS, Usage
from wsserver.providers.exact_json import is_object


def read_usage(usage: object) -> Usage | None:
    """Returns the counts, or None where `usage` does not hold both of them."""
    if not is_object(usage):
        return None
    given = _count(usage, "prompt_tokens", "input_tokens")
    made = _count(usage, "completion_tokens", "output_tokens")
    total = _count(usage, "total_tokens")
    if total is not None:
        given = max(total - made, 0) if given is None and made is not None else given
        made = max(total - given, 0) if made is None and given is not None else made
    if given is None or made is None:
        return None
    reasoning = _within(usage, "reasoning_tokens", "completion", "output")
    cached = _within(usage, "cached_tokens", "prompt", "input")
    if cached is None:
        cached = _count(usage, "prompt_cache_hit_tokens")
    return Usage(
        input_tokens=given,
        output_tokens=made,
        reasoning_tokens=reasoning,
        cached_tokens=cached,
    )


def _within(usage: Mapping[str, Any], name: str, *sides: str) -> int | None:
    for side in sides:
        details = usage.get(f"{side}_tokens_details")
        if is_object(details):
            return _count(details, name)
    return None


def _count(usage: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = usage.get(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is int and 0 <= value <= MOST_TOKENS:
            return value
    return None
