"""Bytes, characters and lines: what is text, and which."""

import pytest

from tests.providers.decoding import (
    DONE,
    call,
    calls,
    choice,
    decode,
    delta,
    escaped,
    event,
    finish,
    raw,
)

STOP = finish("stop") + DONE


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["\\ud83d", "\\ude80"], "\U0001f680"),
        (["a\\ud83d", "", "\\ude80b"], "a\U0001f680b"),
        (["\\ud83d", "x"], "\ufffdx"),
        (["\\ud83d", "\\ud83d\\ude80"], "\ufffd\U0001f680"),
        (["\\ude80"], "\ufffd"),
        (["x\\ud83d"], "x\ufffd"),
        (["\\ud83d\\ude80\\ud83c", "\\uddeb"], "\U0001f680\U0001f1eb"),
        (["\\ud83d", "\\ud83c", "\\uddeb"], "\ufffd\U0001f1eb"),
        (["é\\ud83d", "\\ude80é"], "é\U0001f680é"),
    ],
)
def test_halves_of_a_character(pieces: list[str], text: str) -> None:
    body = b"".join(map(escaped, pieces)) + STOP
    assert decode(body).said == (text, "stop")


@pytest.mark.parametrize("member", ["reasoning_content", "reasoning", "refusal"])
def test_halves_in_other_channels(member: str) -> None:
    body = b"".join(
        raw(f'{{"choices":[{{"delta":{{"{member}":"{piece}"}}}}]}}')
        for piece in ("a\\ud83d", "\\ude80b", "\\ud83d")
    )
    decoded = decode(body + STOP)
    assert decoded.reasoning + decoded.refusal == "a\U0001f680b\ufffd"
    assert decoded.text == ""


def test_a_half_waits_while_another_channel_speaks() -> None:
    body = escaped("\\ud83d") + delta(reasoning="hm") + escaped("\\ude80") + STOP
    assert decode(body).texts == ["\U0001f680"]


def test_halves_in_a_calls_name_and_arguments() -> None:
    def piece(name: str, arguments: str) -> bytes:
        return raw(
            '{"choices":[{"delta":{"tool_calls":[{"index":0,"function":'
            f'{{"name":"{name}","arguments":"{arguments}"}}}}]}}}}]}}'
        )

    body = piece("f\\ud83d", "") + piece("\\ude80", '{\\"a\\":\\"\\ud83d')
    decoded = decode(body + piece("", '\\ude80\\"}') + finish("tool_calls"))
    assert decoded.calls == [("f\U0001f680", '{"a":"\U0001f680"}')]
    assert decoded.end.calls[0].valid


def test_a_half_that_stays_alone_in_arguments() -> None:
    entry = '{"index":0,"function":{"name":"f","arguments":"\\"a\\ud83d"}}'
    decoded = decode(raw(f'{{"choices":[{{"delta":{{"tool_calls":[{entry}]}}}}]}}'))
    assert decoded.calls == [("f", '"a\ufffd')]
    assert "".join(one.text for one in decoded.fragments) == '"a\ufffd'


def test_a_half_in_arguments_that_are_an_object() -> None:
    entry = '{"index":0,"function":{"name":"f","arguments":{"a":"\\ud83d"}}}'
    body = raw(f'{{"choices":[{{"delta":{{"tool_calls":[{entry}]}}}}]}}')
    assert decode(body + STOP).calls == [("f", '{"a":"\ufffd"}')]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\xffb", "a\ufffdb"),
        (b"\xe4\xb8", "\ufffd"),
        (b"\xf0\x9f\x9a", "\ufffd"),
        (b"\xed\xa0\xbd", "\ufffd\ufffd\ufffd"),
        (b"\xc0\xaf", "\ufffd\ufffd"),
        (b"\xe4\xb8\x96\xe4", "世\ufffd"),
        ("\u2028\u2029\u0085\x7f".encode(), "\u2028\u2029\u0085\x7f"),
        (b"\\u0000\\u001f", "\0\x1f"),
        (b"tab\there", "tab\there"),
    ],
)
def test_bytes_of_text(data: bytes, text: str) -> None:
    body = raw(b'{"choices":[{"delta":{"content":"' + data + b'"}}]}') + STOP
    for cut in range(len(body)):
        assert decode(body, cuts=[cut]).said == (text, "stop")


def test_bad_bytes_outside_of_text_do_no_harm() -> None:
    body = raw(b'{"x":"\xff","choices":[{"delta":{"content":"a"},"y":"\xed\xa0"}]}')
    assert decode(body + STOP).said == ("a", "stop")


def test_each_delta_is_one_event_as_it_came() -> None:
    pieces = [" ", "\n", "a", "a", "a ", "\u200d", "\u0301"]
    body = b"".join(delta(content=piece) for piece in pieces)
    assert decode(body + STOP).texts == pieces


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("space", ["", " "])
def test_line_ends_fields_and_comments(end: str, space: str) -> None:
    lines = [
        ":",
        ": comment",
        f"id:{space}7",
        "retry: 10",
        "retry",
        "unknown: data: x",
        " data: not this field",
        f"event:{space}message",
        f'data:{space}{{"choices":[{{"delta":',
        f"data:{space}" + '{"content":"over lines"}}]}',
        "",
        ": ping",
        "",
        "event: nothing",
        "",
        "id: 8",
        "",
        "data",
        "",
        "data:",
        "",
        "",
        f"data:{space}[DONE]",
        "",
        "",
    ]
    body = end.join(lines).encode()
    for cut in range(len(body)):
        assert decode(body, cuts=[cut]).said == ("over lines", "stop")


def test_one_space_after_the_colon_is_dropped_no_more() -> None:
    body = b'data:  \tnull\n\ndata:   {"choices":[{"delta":{"content":"a"}}]}\n\n'
    assert decode(body + STOP).said == ("a", "stop")


@pytest.mark.parametrize("head", [b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n\n", b"\n\n"])
def test_what_may_stand_before_the_stream(head: bytes) -> None:
    body = head + delta(content="a") + STOP
    for cut in range(8):
        assert decode(body, cuts=[cut]).said == ("a", "stop")


def test_only_one_byte_order_mark_is_dropped() -> None:
    body = b"\xef\xbb\xbf" * 2 + delta(content="a") + delta(content="b") + STOP
    assert decode(body).said == ("b", "stop")


@pytest.mark.parametrize(
    "mark",
    [
        b"data: [DONE]\n\n",
        b"data:[DONE]\n\n",
        b"data: [DONE] \n\n",
        b"data:  [DONE]\t\r\n\r\n",
        b"event: done\ndata: [DONE]\n\n",
        b"data: [DONE]\n",
        b"data: [DONE]",
    ],
)
def test_end_marks(mark: bytes) -> None:
    body = delta(content="a") + mark
    assert decode(body).said == ("a", "stop")


def test_nothing_after_the_end_mark_counts() -> None:
    late = delta(content="late") + event({"error": "late"}) + finish("length")
    decoded = decode(delta(content="a") + finish("stop") + DONE + late)
    assert decoded.said == ("a", "stop")


@pytest.mark.parametrize(
    ("tail", "said"),
    [
        (b'data: {"choices":[{"delta":{"content":"b"}}]}', ("ab", "incomplete")),
        (b'data: {"choices":[{"delta":{"content":"b"}}]}\n', ("ab", "incomplete")),
        (b'data: {"choices":[{"delta":{"content":"b', ("a", "incomplete")),
        (b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}', ("a", "stop")),
        (b"data: [DON", ("a", "incomplete")),
        (b'event: error\ndata: {"mess', ("a", "incomplete")),
        (b": comment", ("a", "incomplete")),
        (
            b'data: {"choices":\ndata: [{"delta":{"content":"b"}}]}',
            ("ab", "incomplete"),
        ),
    ],
)
@pytest.mark.parametrize("aborted", [False, True])
def test_what_the_end_left_unfinished(
    tail: bytes, said: tuple[str, str], aborted: bool
) -> None:
    assert decode(delta(content="a") + tail, aborted=aborted).said == said


def test_events_without_blank_lines_between_them() -> None:
    lines = (delta(content="a") + delta(content="b") + STOP).replace(b"\n\n", b"\n")
    assert decode(lines).said == ("ab", "stop")


def test_an_event_that_is_not_json_must_not_pass_for_nothing() -> None:
    decoded = decode(delta(content="a") + raw('{"choices":[{"del') + STOP)
    assert decoded.said == ("a", "error")
    assert decoded.end.failure is not None


@pytest.mark.parametrize("data", ["ping", "null", "[]", "{}", "1", '"text"', "  "])
def test_events_that_say_nothing(data: str) -> None:
    assert decode(raw(data) + delta(content="a") + STOP).said == ("a", "stop")


@pytest.mark.parametrize(
    "member",
    [
        '"x":NaN',
        '"x":[-Infinity,1e999]',
        '"x":' + "9" * 5000,
        '"x":"\\ud83d"',
        '"choices":[]',
        '"x":' + "[" * 400 + "]" * 400,
    ],
)
def test_json_that_strict_readers_refuse(member: str) -> None:
    body = raw("{" + member + ',"choices":[{"delta":{"content":"a"}}]}')
    assert decode(body + STOP).said == ("a", "stop")


def test_nesting_without_end() -> None:
    for data in ("[" * 200_000, '{"choices":' * 100_000):
        decoded = decode(delta(content="a") + raw(data) + STOP)
        assert decoded.said == ("a", "error")


def test_a_megabyte_in_one_line_in_small_reads() -> None:
    text = "0123456789" * 100_000
    body = delta(content=text) + STOP
    assert decode(body, cuts=range(0, len(body), 100)).said == (text, "stop")


def test_a_line_without_end_is_not_collected_for_ever() -> None:
    body = delta(content="a") + b"data: " + b"x" * (17 << 20)
    cuts = range(0, len(body), 1 << 16)
    for decoded in (decode(body), decode(body, cuts=cuts)):
        assert decoded.said == ("a", "error")


def test_just_below_the_limit_is_fine() -> None:
    text = "x" * ((16 << 20) - 100)
    assert decode(delta(content=text) + STOP).end.reason == "stop"


def test_an_event_of_many_lines_is_not_collected_for_ever() -> None:
    body = (b"data: " + b"x" * 1000 + b"\n") * 17_500
    cuts = range(0, len(body), 1 << 16)
    for decoded in (decode(body), decode(body, cuts=cuts)):
        assert decoded.end.reason == "error"


def test_only_choice_0_is_an_answer() -> None:
    other = {"index": 1, "delta": {"content": "B"}, "finish_reason": "length"}
    own = {"index": 0, "delta": {"content": "a"}}
    body = event({"choices": [other, own]}) + event({"choices": [other]})
    calls_of_other = {"index": 1, "delta": {"tool_calls": [call("{}", name="f")]}}
    body += event({"choices": [calls_of_other, {"index": 0, "delta": None}, None]})
    assert decode(body + STOP).said == ("a", "stop")


def test_a_choice_without_index_has_its_position() -> None:
    pair = [{"delta": {"content": "a"}}, {"delta": {"content": "B"}}]
    body = event({"choices": pair}) + event({"choices": [{"index": None, **pair[0]}]})
    assert decode(body + STOP).said == ("aa", "stop")


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        ([{"type": "text", "text": "a"}], "a", ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": " b"}], "a b", ""),
        (["a", {"type": "output_text", "text": "b"}], "ab", ""),
        ({"type": "text", "text": "a"}, "a", ""),
        ([{"type": "text", "text": {"value": "a"}}], "a", ""),
        ([{"text": "a"}, {"type": None, "text": "b"}], "ab", ""),
        ([{"type": "thinking", "thinking": "hm"}, "a"], "a", "hm"),
        (
            [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}],
            "",
            "hm",
        ),
        ([{"type": "reasoning", "text": "hm"}], "", "hm"),
        ([{"type": "image_url", "image_url": {"url": "x"}, "text": "no"}], "", ""),
        ([None, 1, {}, [], {"type": ["text"]}, {"type": "text"}], "", ""),
        (5, "", ""),
        ({}, "", ""),
    ],
)
def test_content_in_parts(content: object, text: str, reasoning: str) -> None:
    decoded = decode(delta(content=content) + STOP)
    assert (decoded.text, decoded.reasoning) == (text, reasoning)
    assert decoded.end.reason == "stop"


def test_refusals_have_their_own_channel() -> None:
    parts = [{"type": "refusal", "refusal": "no"}]
    decoded = decode(delta(refusal="I ") + delta(content=parts) + STOP)
    assert (decoded.text, decoded.refusal) == ("", "I no")


@pytest.mark.parametrize(
    ("members", "reasoning"),
    [
        ({"reasoning_content": "a", "reasoning": "a"}, "a"),
        ({"reasoning_content": "a", "reasoning": "a", "thinking": "a"}, "a"),
        ({"reasoning_content": "", "reasoning": "a"}, "a"),
        ({"reasoning_content": None, "reasoning": "a"}, "a"),
        ({"reasoning_content": "a", "reasoning": None}, "a"),
        ({"reasoning_content": [{"type": "text", "text": "a"}]}, "a"),
        ({"reasoning": {"content": "a"}}, "a"),
    ],
)
def test_thinking_under_several_names(
    members: dict[str, object], reasoning: str
) -> None:
    assert decode(delta(**members) + STOP).reasoning == reasoning


def test_equal_thinking_in_two_deltas_is_not_once() -> None:
    body = delta(reasoning="ha") + delta(reasoning_content="ha")
    assert decode(body + STOP).reasoning == "haha"


def snapshot(**message: object) -> bytes:
    return choice(message={"role": "assistant", **message})


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([snapshot(content="all")], "all"),
        ([delta(content="al"), delta(content="l"), snapshot(content="all")], "all"),
        ([delta(content="al"), snapshot(content="all")], "all"),
        ([delta(content="all"), snapshot(content="al")], "all"),
        ([delta(content="all"), snapshot(content="other")], "all"),
        (
            [snapshot(content="a"), snapshot(content="ab"), snapshot(content="abc")],
            "abc",
        ),
        ([snapshot(content=""), snapshot(content=None), snapshot()], ""),
        ([delta(content="a"), choice(message=None), choice(message={})], "a"),
        ([choice(delta={"content": "a"}, message={"content": "a"})], "a"),
    ],
)
def test_a_message_in_a_chunk_is_a_snapshot(events: list[bytes], text: str) -> None:
    assert decode(b"".join(events) + STOP).said == (text, "stop")


def test_a_snapshot_completes_half_a_character() -> None:
    body = escaped("a\\ud83d") + snapshot(content="a\U0001f680b") + STOP
    assert decode(body).text == "a\U0001f680b"


def test_a_snapshot_of_calls_adds_only_what_is_new() -> None:
    streamed = calls(call('{"a"', name="f", index=0, id="1"))
    whole = [
        call('{"a":1}', name="f", id="1"),
        call("{}", name="g", id="2"),
    ]
    body = streamed + snapshot(tool_calls=whole) + snapshot(tool_calls=whole)
    decoded = decode(body + finish("tool_calls"))
    assert decoded.calls == [("f", '{"a":1}'), ("g", "{}")]


def test_a_snapshot_of_a_call_that_differs_changes_nothing() -> None:
    streamed = calls(call('{"a":1}', name="f", index=0, id="1"))
    other = snapshot(tool_calls=[call('{"a":2}', name="f", id="1")])
    assert decode(streamed + other + STOP).calls == [("f", '{"a":1}')]
