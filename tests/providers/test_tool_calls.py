"""Calls out of pieces, by index, by id, or by neither."""

from typing import Any

import pytest

from tests.providers.decoding import (
    DONE,
    EVENT_STREAM,
    Decoded,
    call,
    calls,
    decode,
    delta,
    finish,
)
from wsserver.engine.model import Finished
from wsserver.providers.chat.decoder import ChatDecoder
from wsserver.providers.chat.tool_calls import MOST_CALLS

Entry = dict[str, Any]


def decode_calls(*chunks: list[Entry]) -> Decoded:
    return decode(b"".join(calls(*entries) for entries in chunks) + DONE)


A, B = '{"a":1}', '{"b":2}'


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        # By index: a label.
        ([[call("{", name="f", index=7, id="x")], [call("}", index=7)]], [("f", "{}")]),
        ([[call(A, name="f", index="0")], [call(B, name="g", index=1.0)]], [("f", A), ("g", B)]),
        (
            [
                [call("", name="f", index=1), call("", name="g", index=0)],
                [call(B, index=0)],
                [call(A, index=1)],
            ],
            [("f", A), ("g", B)],
        ),
        # Equal calls are separate calls.
        (
            [[call(A, name="f", index=0, id="x")], [call(A, name="f", index=1, id="y")]],
            [("f", A), ("f", A)],
        ),
        ([[call(A, name="f", id="x")], [call(A, name="f", id="y")]], [("f", A), ("f", A)]),
        ([[call(A, name="f"), call(A, name="f")]], [("f", A), ("f", A)]),
        ([[call(A, name="f")], [call(A, name="f")]], [("f", A), ("f", A)]),
        ([[call(A, name="f", index=0)], [call(A, name="f", index=0)]], [("f", A), ("f", A)]),
        # One id under several indexes.
        (
            [[call(A, name="f", index=0, id="x")], [call(B, name="g", index=1, id="x")]],
            [("f", A), ("g", B)],
        ),
        # Several ids under one index, in turns.
        (
            [
                [call("{", name="f", index=0, id="x")],
                [call("{", name="g", index=0, id="y")],
                [call('"a":1}', index=0, id="x")],
                [call('"b":2}', index=0, id="y")],
            ],
            [("f", A), ("g", B)],
        ),
        # An id that comes late belongs to the call that has none.
        ([[call("{", name="f", index=0)], [call('"a":1}', index=0, id="x")]], [("f", A)]),
        # An index that comes late too.
        ([[call("{", name="f", id="x")], [call('"a":1}', index=0)]], [("f", A)]),
        ([[call("{", name="f", id="x")], [call('"a":1}', index=0, id="x")]], [("f", A)]),
        # Neither id nor index.
        (
            [[call("{", name="f")], [call('"a":1}')], [call("{", name="g"), call('"b":2}')]],
            [("f", A), ("g", B)],
        ),
        ([[call("{", name="f")], [call('"a":1}', name="f")], [call("", name="f")]], [("f", A)]),
        # Another name after whole arguments, although the id is the same.
        (
            [[call(A, name="f", index=0, id="x")], [call(B, name="g", index=0, id="x")]],
            [("f", A), ("g", B)],
        ),
        # Names: the same again, in parts, or growing.
        ([[call(None, name="get_", index=0)], [call(A, name="time", index=0)]], [("get_time", A)]),
        ([[call(None, name="ge", index=0)], [call(A, name="get", index=0)]], [("get", A)]),
        ([[call("{", name="f", index=0)], [call('"a":1}', name="g", index=0)]], [("f", A)]),
        ([[call("{", index=0, id="x")], [call('"a":1}', name="f", index=0)]], [("f", A)]),
        # Arguments.
        ([[call(None, name="f", index=0)]], [("f", "{}")]),
        ([[call(" \n", name="f", index=0)]], [("f", "{}")]),
        ([[call({}, name="f", index=0)], [call({"a": 1}, index=0)]], [("f", A)]),
        ([[call("{}", name="f", index=0)], [call(A, index=0)]], [("f", A)]),
        ([[call("{}", name="f", index=0)], [call("{", index=0)], [call('"a":1}', index=0)]], [("f", A)]),
        ([[call("{}", name="f", index=0)], [call("", index=0)]], [("f", "{}")]),
        ([[call("{}", name="f", index=0)], [call("{}", index=0)]], [("f", "{}")]),
        ([[call("{}", name="f", index=0)], [call("x", index=0)]], [("f", "{}x")]),
        ([[call("{", name="f", index=0)], [call("}", index=0)]], [("f", "{}")]),
        ([[call([1, "é"], name="f", index=0)]], [("f", '[1,"é"]')]),
        ([[call(False, name="f", index=0)]], [("f", "false")]),
        # Phantoms.
        ([[{"index": 0}], [{"index": 1, "function": None}], [{}]], []),
        ([[call(index=3, id="x")]], []),
        ([[call(index=3, id="x")], [call(A, name="f", index=4, id="y")]], [("f", A)]),
        ([[{"index": 0, "id": "x", "name": "f", "arguments": A}]], [("f", A)]),
    ],
)  # fmt: skip
def test_calls(chunks: list[list[Entry]], expected: list[tuple[str, str]]) -> None:
    decoded = decode_calls(*chunks)
    assert decoded.calls == expected
    assert decoded.end.reason == ("tool_calls" if expected else "stop")
    ids = [one.upstream_id for one in decoded.end.calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)


def test_ids_are_kept_where_they_can_be() -> None:
    decoded = decode_calls(
        [call(A, name="f", index=0, id="call_1")],
        [call(A, name="g", index=1)],
        [call(A, name="h", index=2, id="call_1")],
        [call(A, name="i", index=3, id=7)],
    )
    ids = [one.upstream_id for one in decoded.end.calls]
    assert ids[0] == "call_1"
    assert ids[3] == "7"
    assert len(set(ids)) == 4


def test_a_number_too_long_for_a_machine_stays_exact() -> None:
    digits = "123456789012345678901234567890"
    decoded = decode_calls([call('{"n":' + digits + "}", name="f", index=0)])
    assert decoded.calls == [("f", '{"n":' + digits + "}")]


@pytest.mark.parametrize(
    ("arguments", "valid"),
    [
        (A, True),
        ("[]", True),
        ("1", True),
        ('{"a": 1,, }', False),
        ('{"a": "cut', False),
        ('{"a":1}{"b":2}', False),
        ('{"a":NaN}', False),
        ("[" * 2000 + "]" * 2000, False),
        ("text", False),
    ],
)
def test_which_arguments_are_json(arguments: str, valid: bool) -> None:
    decoded = decode_calls([call(arguments, name="f", index=0)])
    (one,) = decoded.end.calls
    assert (one.arguments, one.valid) == (arguments, valid)


def test_a_call_without_name_can_not_be_run() -> None:
    (one,) = decode_calls([call(A, index=0, id="x")]).end.calls
    assert (one.name, one.arguments, one.valid) == ("", A, False)


def test_fragments_show_the_arguments_as_they_stream() -> None:
    decoded = decode_calls(
        [call("", name="f", index=0), call("{}", name="g", index=1)],
        [call('{"a"', index=0)],
        [call(":1}", index=0), call("", index=1)],
        [call(None, name="f", index=0)],
    )
    shown = [(one.position, one.name, one.text) for one in decoded.fragments]
    assert shown == [
        (0, "f", ""),
        (1, "g", ""),
        (0, "f", '{"a"'),
        (0, "f", ":1}"),
        (1, "g", "{}"),
    ]


def test_positions_are_those_of_the_calls() -> None:
    decoded = decode_calls(
        [call(index=5, id="phantom")],
        [call(A, name="f", index=6, id="x")],
        [call(B, name="g", index=7, id="y")],
    )
    for fragment in decoded.fragments:
        assert decoded.calls[fragment.position][0] == fragment.name


def test_calls_that_are_no_list() -> None:
    entry = call(A, name="f", index=0)
    body = delta(tool_calls=entry) + delta(tool_calls="x") + delta(tool_calls=[None, 1])
    assert decode(body + DONE).calls == [("f", A)]


def test_function_call_deltas_make_one_call() -> None:
    body = (
        delta(function_call={"name": "f", "arguments": ""})
        + delta(function_call={"arguments": '{"a"'})
        + delta(function_call={"name": "f", "arguments": ":1}"})
        + delta(function_call=None)
    )
    decoded = decode(body + finish("function_call"))
    assert decoded.calls == [("f", A)]
    assert decoded.end.reason == "tool_calls"


def test_many_calls_are_put_together_in_good_time() -> None:
    entries = [call(A, name="f", id=f"id-{n}") for n in range(MOST_CALLS)]
    for decoded in (decode_calls(entries), decode_calls(*[[one] for one in entries])):
        assert (len(decoded.calls), decoded.end.reason) == (MOST_CALLS, "tool_calls")


@pytest.mark.parametrize("members", [{"name": "f"}, {}])
def test_calls_without_end_are_no_answer(members: Entry) -> None:
    decoder = ChatDecoder(content_type=EVENT_STREAM)
    number = 0
    while not decoder.failed:
        decoder.feed(calls(call(index=number, id=f"id-{number}", **members)))
        number += 1
        assert number < 2 * MOST_CALLS
    *_, end = decoder.close()
    assert isinstance(end, Finished)
    assert end.failure is not None
    assert not end.failure.retryable


def test_a_name_without_end_is_cut() -> None:
    pieces = [[call("", name=f"n{n}", index=0)] for n in range(1000)]
    decoded = decode_calls([call(A, name="x" * 1000, id="a")], *pieces)
    assert [len(name) for name, _ in decoded.calls] == [256, 256]
    assert max(len(one.name) for one in decoded.fragments) == 256


def test_space_behind_a_placeholder_is_shown_once_it_is_too_much_to_wait() -> None:
    decoded = decode_calls(
        [call("{}", name="f", index=0)], *[[call("  ", index=0)]] * 99
    )
    assert len(decoded.fragments) > 60
    assert decoded.calls == [("f", "{}" + "  " * 99)]


def test_ids_differ_in_what_is_kept_of_them() -> None:
    long = "i" * 300
    decoded = decode_calls(
        [
            call(A, name="f", index=0, id=f"{long}1"),
            call(A, name="f", index=1, id=f"{long}2"),
        ]
    )
    first, second = (one.upstream_id for one in decoded.end.calls)
    assert first != second
    assert max(len(first), len(second)) <= 256
