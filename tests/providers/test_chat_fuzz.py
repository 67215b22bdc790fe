"""The decoder's invariants, for any bytes in any reads.

It never raises; what comes out does not depend on where reads end; the last event,
and no other, is `Finished`; no string holds half a character.
"""

from typing import Any

import msgspec
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.providers.decoding import Decoded, call, calls, decode, delta, finish
from wsserver.engine.model import Text

SNIPPETS = [
    b"data: ",
    b"data:",
    b"data",
    b"event: error\n",
    b"event: x\n",
    b": c",
    b"id: 1",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\xef\xbb\xbf",
    b"[DONE]",
    b"data: [DONE]\n\n",
    b"{",
    b"}",
    b"<html>",
    b'"',
    b"\\",
    b"\xe4\xb8\x96",
    b"\xe4\xb8",
    b"\xff",
    b"null",
    b'{"choices":[{"delta":{"content":"x\\ud83d"}}]}',
    b'{"choices":[{"delta":{"content":"\\ude80y"}}]}',
    b'{"choices":[{"delta":{"reasoning":"\\ud83d"}}]}',
    b'{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"\\ud83d"}}]}}]}',
    b'{"choices":[{"message":{"content":"xy"}}]}',
    b'{"choices":[{"delta":{"content":"\xe4"}}]}',
    b'{"error":{"message":"\\udc00"}}',
    b'{"usage":{"prompt_tokens":1,"completion_tokens":2}}',
    delta(content="text"),
    delta(content="text").replace(b"\n", b"\r\n"),
    delta(content=[{"type": "thinking", "thinking": "hm"}]),
    calls(call("{", name="f", index=0, id="a")),
    calls(call("}", index=0)),
    finish("stop"),
    finish("error"),
]
NAMES = [
    *("choices", "index", "delta", "message", "content", "text", "type", "value"),
    *("reasoning", "reasoning_content", "thinking", "refusal", "finish_reason"),
    *("tool_calls", "function_call", "function", "id", "name", "arguments"),
    *("usage", "prompt_tokens", "completion_tokens", "total_tokens"),
    *("error", "error_message", "object", "code", "status"),
]
WORDS = ["", "stop", "length", "error", "text", "thinking", "{}", '{"a":1}', "a", "世"]

garbage = st.lists(st.sampled_from(SNIPPETS) | st.binary(max_size=6), max_size=14)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 3)
    | st.floats(allow_nan=False)
    | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5)
    ),
    max_leaves=12,
)
said = st.dictionaries(st.sampled_from(NAMES), values, max_size=4)
chunks = st.builds(
    lambda choice, delta, more: {**more, "choices": [{**choice, "delta": delta}]},
    said,
    said,
    st.dictionaries(st.sampled_from(NAMES), values, max_size=2),
)
cuts = st.lists(st.integers(0, 400), max_size=8).map(sorted)
content_types = st.sampled_from(["text/event-stream", "application/json", None])


def strings_of(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [
                s for pair in value.items() for part in pair for s in strings_of(part)
            ]
        case list() | tuple():
            return [s for part in value for s in strings_of(part)]
        case _:
            return []


def check_invariants(decoded: Decoded) -> None:
    assert decoded.end is decoded.events[-1]
    for event in decoded.events:
        if isinstance(event, Text):
            assert event.text
        for text in strings_of(msgspec.to_builtins(event)):
            text.encode()
    for fragment in decoded.fragments:
        assert 0 <= fragment.position < len(decoded.end.calls)
    ids = [one.upstream_id for one in decoded.end.calls]
    assert len({*ids, ""}) == len(ids) + 1


@settings(max_examples=150)
@given(garbage, cuts, content_types, st.booleans())
def test_any_bytes(
    pieces: list[bytes], cuts: list[int], content_type: str | None, aborted: bool
) -> None:
    body = b"".join(pieces)
    whole = decode(body, content_type=content_type, aborted=aborted)
    check_invariants(whole)
    inside = [cut for cut in cuts if cut < len(body)]
    for some in (inside, range(1, len(body))):
        again = decode(body, cuts=some, content_type=content_type, aborted=aborted)
        assert again.events == whole.events


@settings(max_examples=150)
@given(st.lists(chunks | values, max_size=5), cuts, st.booleans())
def test_any_json(payloads: list[Any], cuts: list[int], aborted: bool) -> None:
    body = b"".join(b"data: " + orjson.dumps(one) + b"\n\n" for one in payloads)
    whole = decode(body, aborted=aborted)
    check_invariants(whole)
    inside = [cut for cut in cuts if cut < len(body)]
    assert decode(body, cuts=inside, aborted=aborted).events == whole.events


@settings(max_examples=100)
@given(chunks | values, content_types, st.booleans())
def test_any_body(payload: Any, content_type: str | None, aborted: bool) -> None:
    body = orjson.dumps(payload)
    check_invariants(decode(body, content_type=content_type, aborted=aborted))


@settings(max_examples=100)
@given(st.lists(chunks, min_size=1, max_size=4))
def test_the_plain_way_and_the_lenient_way_are_one(payloads: list[Any]) -> None:
    """A member that strict readers refuse sends the same chunk the other way."""
    plain = [orjson.dumps(one) for one in payloads]
    other = [one[:-1] + (b"," if len(one) > 2 else b"") + b'"x":NaN}' for one in plain]
    bodies = [
        b"".join(b"data: " + one + b"\n\n" for one in way) for way in (plain, other)
    ]
    first, second = map(decode, bodies)
    assert first.events == second.events
