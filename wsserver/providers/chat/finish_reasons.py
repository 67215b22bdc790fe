"""What the words mean with which upstreams end an answer."""

from typing import Final

from wsserver.engine.model import FinishReason

_BY_WORD: Final[dict[str, FinishReason]] = {
    **dict.fromkeys(
        (
            "stop",
            "stop_sequence",
            "end_turn",
            "eos",
            "eos_token",
            "end",
            "complete",
            "completed",
            "done",
            "finished",
        ),
        "stop",
    ),
    **dict.fromkeys(
        (
            "length",
            "max_tokens",
            "max_new_tokens",
            "max_output_tokens",
            "max_length",
            "model_length",
            "model_context_window_exceeded",
        ),
        "length",
    ),
    **dict.fromkeys(("tool_calls", "tool_call", "tool_use"), "tool_calls"),
    "function_call": "tool_calls",
    **dict.fromkeys(
        (
            "content_filter",
            "content_filtered",
            "safety",
            "sensitive",
            "refusal",
            "recitation",
            "blocklist",
            "prohibited_content",
            "spii",
            "guardrail_intervened",
            "error_toxic",
        ),
        "content_filter",
    ),
    **dict.fromkeys(
        ("error", "network_error", "insufficient_system_resource"), "error"
    ),
}


def read_finish_reason(word: str) -> FinishReason:
    """Returns what `word` means; what nobody knows is no proof of a whole answer.

    What stands behind a colon is a detail: `content_filter: PROHIBITED_CONTENT`.
    """
    return _BY_WORD.get(word.partition(":")[0].strip().lower(), "incomplete")


def settle(word: str, *, is_done: bool, has_calls: bool) -> FinishReason:
    """Returns how an answer ended that reported no error.

    Args:
        word: The last finish reason, or "".
        is_done: Whether the upstream marked the end of its answer.
        has_calls: Whether there are tool calls: they, not the word, say what to do.
    """
    reason = read_finish_reason(word) if word else "stop" if is_done else "incomplete"
    match reason:
        case "stop" | "tool_calls":
            return "tool_calls" if has_calls else "stop"
        case _:
            return reason
