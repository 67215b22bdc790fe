"""Events that repeat one before them are read as if each were read alone."""

import json  # noqa: TID251 - writes with and without spaces
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsserver.engine.model import Finished, ModelEvent, Text
from wsserver.providers.chat.chunks import CHUNK
from wsserver.providers.chat.decoder import ChatDecoder
from wsserver.providers.chat.sse import MAX_EVENT_BYTES
from wsserver.providers.chat.template import Template

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 17}


def event(delta: dict[str, Any], *, compact: bool = True, **members: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None} | members
    separators = (",", ":") if compact else (", ", ": ")
    payload = HEAD | {"choices": [choice]}
    return f"data: {json.dumps(payload, separators=separators)}\n\n".encode()


def taught(delta: dict[str, Any], **members: Any) -> Template:
    made = Template()
    learned = event(delta, **members)
    made.learn(learned[6:-2], CHUNK.decode(learned[6:-2]))
    return made


def decoded(reads: list[bytes]) -> list[ModelEvent]:
    decoder = ChatDecoder(content_type="text/event-stream")
    events = [found for read in reads for found in decoder.feed(read)]
    return [*events, *decoder.close()]


def test_an_event_like_one_before_it_is_known() -> None:
    template = taught({"content": "Hello"})
    for text in ("Hello", " world", ".", "'{}[],:~ !#", "probe"):
        assert template.text(event({"content": text})) == text


def test_the_decoder_reads_json_once() -> None:
    reads = [event({"content": f" word{number}"}) for number in range(50)]
    with patch("wsserver.providers.chat.decoder.CHUNK", wraps=CHUNK) as chunks:
        events = decoded(reads)
    assert chunks.decode.call_count == 1
    assert events[:-1] == [Text(f" word{number}") for number in range(50)]


@pytest.mark.parametrize(
    "read",
    [
        event({"content": 'a"b'}),
        event({"content": "a\\b"}),
        event({"content": "a\nb"}),
        event({"content": "é"}),
        event({"content": ""}),
        event({"content": "x", "refusal": "y"}),
        event({"content": "x"}, finish_reason="stop"),
        event({"content": "x"}, compact=False),
        event({"content": "x"})[:-1],
        event({"content": "x"}) * 2,
        event({"content": "x"}).replace(b"x", b'x","content":"y'),
        event({"content": "x"}).replace(b"x", b"\x7f"),
        event({"content": "x"}).replace(b"x", "é".encode()),
        event({"content": "x"})[:40],
        b"",
    ],
)
def test_any_other_read_is_not(read: bytes) -> None:
    assert taught({"content": "Hello"}).text(read) is None


@pytest.mark.parametrize(
    "learned",
    [
        event({"content": "x"}, finish_reason="stop"),
        event({"content": "x", "reasoning_content": "y"}),
        event({"content": "x"}, index=1),
        event({"content": "x"}, compact=False),
        event({"content": "é"}),
        event({"refusal": "x"}),
        event({"role": "assistant", "content": ""}),
        # The text stands where nobody reads it, too, and first.
        event({"content": "x"}).replace(b'{"id"', b'{"a":{"content":"x"},"id"'),
        event({"content": "x"}).replace(b'"content"', b'"content":"x","content"'),
        event({"content": "x"}).replace(b"}]}", b'}],"usage":{"prompt_tokens":1}}'),
    ],
)
def test_what_says_more_than_a_text_is_not_learned(learned: bytes) -> None:
    template = Template()
    template.learn(learned[6:-2], CHUNK.decode(learned[6:-2]))
    assert template.text(learned) is None
    assert template.text(learned.replace(b'"x"', b'"z"')) is None


def test_events_that_all_differ_are_not_learned_from_for_ever() -> None:
    reads = [event({"content": "x"}, obfuscation="y" * number) for number in range(40)]
    with patch("wsserver.providers.chat.template.CHUNK", wraps=CHUNK) as chunks:
        assert decoded(reads)[:-1] == [Text("x")] * 40
    assert 0 < chunks.decode.call_count < 10


@pytest.mark.parametrize("text", ["x", "xmore", "more", "probe", "é"])
def test_the_text_that_is_read_is_no_other_with_the_same_words(text: str) -> None:
    def said(apart: str, read: str) -> bytes:
        aside = json.dumps({"content": apart}, separators=(",", ":"))
        return event({"content": read}).replace(
            b'{"id"', f'{{"a":{aside},"id"'.encode()
        )

    reads = [said(text, text), said("other", text), said(text, "third")]
    assert decoded(reads)[:-1] == [Text(text), Text(text), Text("third")]


@pytest.mark.parametrize(
    ("text", "apart"), [("\\", {"content": '"said'}), ('a",', {"content": "a", "b": 1})]
)
def test_text_whose_bytes_begin_other_members_does_no_harm(
    text: str, apart: dict[str, Any]
) -> None:
    read = event({"a": apart, "content": text})
    assert decoded([read, read])[:-1] == [Text(text)] * 2


def test_an_event_as_deep_as_can_be_read_is_read() -> None:
    deepest = 0
    for depth in range(100, 1100):
        nest = b'"a":' + b"[" * depth + b"]" * depth
        found = decoded([event({"content": "x"}).replace(b'"id"', nest + b',"id"')])
        deepest += found[0] == Text("x")
    assert 0 < deepest < 1000


def test_an_event_like_one_before_it_may_be_too_large() -> None:
    small, large = event({"content": "x"}), event({"content": "x" * MAX_EVENT_BYTES})
    *_, failed = decoded([small, large])
    assert isinstance(failed, Finished)
    assert failed.reason == "error"


TEXTS = st.one_of(
    st.sampled_from(
        ["a", " b", "probe", '"', "\\", "\n", '","content":"', "é", "🙂", ""]
    ),
    st.text(max_size=5).filter(
        lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text)
    ),
)
DELTAS = st.fixed_dictionaries(
    {"content": TEXTS},
    optional={
        "role": st.just("assistant"),
        "refusal": TEXTS,
        "logprobs": st.fixed_dictionaries({"content": TEXTS}),
    },
)
EVENTS = st.builds(
    event,
    DELTAS,
    compact=st.sampled_from([True, True, True, False]),
    finish_reason=st.sampled_from([None, None, None, "stop"]),
)


@given(st.lists(EVENTS, max_size=12), st.booleans())
def test_nothing_else_comes_of_it(reads: list[bytes], ends: bool) -> None:
    if ends:
        reads = [*reads, b"data: [DONE]\n\n"]
    with patch.object(Template, "text", lambda self, data: None):
        expected = decoded(reads)
    assert decoded(reads) == expected
