"""Bodies that a chat upstream streams, for `FakeUpstream` scripts."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from tests.fakes.upstream import Reply

DONE = b"data: [DONE]\n\n"


def event(payload: object) -> bytes:
    """Returns one event of a stream."""
    return b"data: " + orjson.dumps(payload) + b"\n\n"


def delta(finish_reason: str | None = None, **members: Any) -> bytes:
    """Returns the event of a chunk whose delta has these members."""
    choice = {"index": 0, "delta": members, "finish_reason": finish_reason}
    return event({"id": "c-1", "object": "chat.completion.chunk", "choices": [choice]})


def usage(given: int, made: int) -> bytes:
    """Returns the event of the last chunk that counts tokens."""
    counts = {
        "prompt_tokens": given,
        "completion_tokens": made,
        "total_tokens": given + made,
    }
    return event({"id": "c-1", "choices": [], "usage": counts})


def text_events(*pieces: str, finish_reason: str = "stop") -> list[bytes]:
    """Returns the events of a plain answer, one for each piece, and its end."""
    return [
        delta(role="assistant", content=""),
        *(delta(content=piece) for piece in pieces),
        delta(finish_reason),
        usage(7, len(pieces)),
        DONE,
    ]


def call_events(*calls: Mapping[str, Any], text: str = "") -> list[bytes]:
    """Returns the events of an answer that ends in calls.

    Args:
        calls: Each with `id`, `name` and `arguments` (a JSON text).
        text: What is said before them.
    """
    opened = [
        {
            "index": index,
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": call["arguments"]},
        }
        for index, call in enumerate(calls)
    ]
    return [
        delta(role="assistant", content=text or None),
        *(delta(tool_calls=[call]) for call in opened),
        delta("tool_calls"),
        usage(7, 5),
        DONE,
    ]


def streamed(events: Sequence[bytes], **how: Any) -> Reply:
    """Returns a reply that writes each event by itself; `how` as `Reply` takes it."""
    splits: list[int] = []
    for one in events:
        splits.append(len(one) + (splits[-1] if splits else 0))
    return Reply(body=b"".join(events), splits=splits, **how)


def json_reply(payload: object, status: int = 200, **how: Any) -> Reply:
    """Returns a reply that is no stream but one JSON value."""
    return Reply(
        status=status,
        content_type="application/json",
        body=orjson.dumps(payload),
        framing="length",
        **how,
    )
