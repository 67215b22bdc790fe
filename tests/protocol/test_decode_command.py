"""Every kind of bad frame gets an error that says what to do; none crashes."""

import time
from typing import Any, cast, get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.codec import MAX_DEPTH, decode_command, encode
from protocol.commands import ClientFrame, Open, Ping, Send, ToolResult
from protocol.frame_error import FrameError
from protocol.rules import MAX_PING_BYTES

LIMIT = 262_144


def fault(data: str | bytes, max_bytes: int = LIMIT) -> FrameError:
    with pytest.raises(FrameError) as caught:
        decode_command(data, max_bytes=max_bytes)
    return caught.value


def frame(kind: str, **members: Any) -> str:
    return orjson.dumps({"type": kind, **members}).decode()


def send(**members: Any) -> str:
    return frame("send", **{"id": "m1", "conversation": "c", "content": "x", **members})


def configure(**config: Any) -> str:
    return frame("configure", id="k1", conversation="c", config=config)


def test_each_type_of_frame_is_read_and_written_back(client_frames: list[str]) -> None:
    read = [decode_command(line, max_bytes=LIMIT) for line in client_frames]
    assert {type(one) for one in read} == set(get_args(ClientFrame))
    for line, one in zip(client_frames, read, strict=True):
        assert orjson.loads(encode(one)) == orjson.loads(line)
        assert decode_command(line.encode(), max_bytes=LIMIT) == one


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("nope", "not JSON"),
        ("[]", "got a list"),
        ("3", "got a number"),
        ("null", "got null"),
        ('"x"', "got a string"),
        ("true", "got true"),
        ("{", "at character 1"),
        ("{'type':'ping'}", "at character 1"),
        ('{"type":"ping",}', "trailing comma"),
        ('{"type":"ping"} {"type":"ping"}', "after document"),
        ('{"type":"ping","t":NaN}', "not JSON"),
        ('{"type":"ping","t":-Infinity}', "not JSON"),
        ('{"type":"ping","t":01}', "not JSON"),
        ('{"type":"ping","t":"a\x00"}', "control character"),
        ('{"type":"ping","t":"a\tb"}', "control character"),
        ('{"type":"ping","t":"\\x"}', "not JSON"),
        ('\ufeff{"type":"ping"}', "byte order mark"),
        (b'{"type":"ping","ignored":"\xff"}', "not UTF-8 from byte 26"),
        (b'{"type":"ping","\xed\xa0\x80":1}', "not UTF-8"),
    ],
)
def test_what_is_not_one_json_object_is_bad_json(data: str | bytes, words: str) -> None:
    error = fault(data)
    assert (error.code, error.re, error.param) == ("bad_json", None, None)
    assert words in error.message


@pytest.mark.parametrize("half", ["\\ud800", "\\uDC00x", "\\ud83d\\ud83d", "\ud800"])
@pytest.mark.parametrize("member", ["content", "ignored"])
def test_half_a_surrogate_pair_is_refused_by_name(member: str, half: str) -> None:
    text = send().removesuffix("}") + f',"{member}":"{half}"}}'
    error = fault(text)
    assert (error.code, error.re) == ("bad_json", "m1")
    assert "surrogate" in error.message


def test_a_whole_surrogate_pair_and_nul_are_text() -> None:
    text = send().replace('"x"', '"\\ud83d\\ude80\\u0000"')
    read = decode_command(text, max_bytes=LIMIT)
    assert isinstance(read, Send)
    assert read.content == "\U0001f680\0"


@pytest.mark.parametrize(
    ("data", "param", "re", "message"),
    [
        ("{}", "$.type", None, "`type` is missing"),
        ('{"id":"a"}', "$.type", "a", "`type` is missing"),
        (frame("x", id="a").replace('"x"', "1"), "$.type", "a", "`type` must be a string; got a number"),
        (frame("x").replace('"x"', "null"), "$.type", None, "`type` must be a string; got null"),
        ('{"type":"send","type":"ping"}', "$.type", None, "`type` stands twice; give it once"),
        (frame("close", conversation="c"), "$.id", None, "`id` is missing; it must be a string (1 to 128 of A-Z a-z 0-9 . _ : -)"),
        (send(id=7), "$.id", None, "`id` must be a string (1 to 128 of A-Z a-z 0-9 . _ : -); got a number"),
        (send(id="a b"), "$.id", None, "`id` must be a string (1 to 128 of A-Z a-z 0-9 . _ : -); got `a b`"),
        (send(id=""), "$.id", None, "`id` must be a string (1 to 128 of A-Z a-z 0-9 . _ : -); got ``"),
        (send(id="a\n"), "$.id", None, "`id` must be a string (1 to 128 of A-Z a-z 0-9 . _ : -); got `a\n`"),
        (send(id="a" * 129), "$.id", None, "`id` must be a string (1 to 128 of A-Z a-z 0-9 . _ : -); got one of 129 characters"),
        (send(content=5), "$.content", "m1", "`content` must be a string or a list of parts; got a number"),
        (send(content=None), "$.content", "m1", "`content` must be a string or a list of parts; got null"),
        (send(content=[]), "$.content", "m1", "`content` must be a string or a list of parts; got an empty list"),
        (send(content=[3]), "$.content[0]", "m1", "`content[0]` must be an object; got a number"),
        (send(content=[{"type": "text"}]), "$.content[0].text", "m1", "`content[0].text` is missing; it must be a string"),
        (send(content=[{"type": "video"}]), "$.content[0].type", "m1", "`content[0].type` must be one of `text`, `image_url`; got `video`"),
        (send(content=[{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]), "$.content[0].image_url.url", "m1", "`content[0].image_url.url` must be a string (an `https:` or `data:` URL); got `file:///etc/passwd`"),
        (send(policy="now"), "$.policy", "m1", "`policy` must be one of `interrupt`, `queue`, `reject`, `steer` or null; got `now`"),
        (send(seen_seq=-1), "$.seen_seq", "m1", "`seen_seq` must be a whole number from 0 to 9007199254740991 or null; got -1"),
        (send(metadata=[1]), "$.metadata", "m1", "`metadata` must be an object or null; got a list"),
        (frame("fork", id="f", conversation="c", through=True), "$.through", "f", "`through` must be a whole number from 0 to 9007199254740991; got true"),
        (frame("ack", id="a", conversation="c", seq="1"), "$.seq", None, "`seq` must be a whole number from 0 to 9007199254740991; got a string"),
        (frame("open", id="o", conversation=["c"]), "$.conversation", "o", "`conversation` must be a string (1 to 128 of A-Z a-z 0-9 . _ : -) or null; got a list"),
        (frame("hello", protocol="1"), "$.protocol", None, "`protocol` must be a whole number; got a string"),
        (frame("hello", protocol=1, client={"name": "n" * 200}), "$.client.name", None, "`client.name` must be a string of at most 128 characters; got one of 200 characters"),
        ('{"type":"hello","protocol":1e999}', "$.protocol", None, "`protocol` must be a whole number; got something else"),
        (frame("configure", id="k", conversation="c", config=None), "$.config", "k", "`config` must be an object; got null"),
        (configure(tools=[{"name": "a b"}]), "$.config.tools[0].name", "k1", "`config.tools[0].name` must be a string (1 to 64 of A-Z a-z 0-9 _ . -); got `a b`"),
        (configure(tools=[{"name": "a", "timeout_s": 0}]), "$.config.tools[0].timeout_s", "k1", "`config.tools[0].timeout_s` must be a number above 0 and up to 86400 or null; got 0"),
        (configure(tool_choice="maybe"), "$.config.tool_choice", "k1", "`config.tool_choice` must be one of `auto`, `none`, `required` or an object or null; got `maybe`"),
        (configure(tools=[{"name": "a"}, {"name": "a"}]), "$.config.tools[1].name", "k1", "Two tools have the name `a`; give each its own"),
        (configure(tools=[], tool_choice={"name": "a"}), "$.config.tool_choice.name", "k1", "`tool_choice` names `a`, which is not among `tools`"),
        (frame("open", id="o", config={"tools": [{"name": "a"}, {"name": "a"}]}), "$.config.tools[1].name", "o", "Two tools have the name `a`; give each its own"),
        (frame("open", id="o", include=["delta"]), "$.include[0]", "o", "`include[0]` must be `tool_delta`; got `delta`"),
        (frame("tool_result", id="t", conversation="c", call="x"), "$.output", "t", "`output` is missing; give what the tool gave, or an `error`"),
        (frame("tool_result", id="t", conversation="c", call="x", output=None, error={"message": ""}), "$.error", "t", "`error` stands beside `output`; give one of the two"),
        (frame("interrupt", id="i", conversation="c", turn=1, send="m1"), "$.send", "i", "`send` stands beside `turn`; give one of the two, or neither for the turn that runs"),
        (frame("interrupt", id="i", conversation="c", keep="seen"), "$.seen_seq", "i", "`seen_seq` is missing; `keep` `seen` needs the last number that the user saw"),
    ],
)  # fmt: skip
def test_a_member_at_fault_is_named_with_what_it_must_be(
    data: str, param: str, re: str | None, message: str
) -> None:
    error = fault(data)
    assert (error.code, error.param, error.re) == ("bad_frame", param, re)
    assert error.message == f"{message}."


def test_an_unknown_type_is_answered_to_its_id() -> None:
    error = fault(frame("stop", id="a"))
    assert (error.code, error.re) == ("unknown_type", "a")
    assert "`stop`" in error.message
    assert "`interrupt`" in error.message
    assert fault(frame("x" * 5000)).message.startswith("There is no one of 5000")


@pytest.mark.parametrize(
    ("number", "fits"),
    [
        ("18446744073709551615", True),
        ("-9223372036854775808", True),
        ("18446744073709551616", False),
        ("-9223372036854775809", False),
        ("9" * 5000, False),
        ("1e308", True),
        ("1e999", False),
        ("-1e999", False),
        ("5e-324", True),
    ],
)
@pytest.mark.parametrize(
    ("text", "param", "vague"),
    [
        ('{"type":"ping","t":%s}', "$.t", "$.t"),
        ('{"type":"send","id":"a","conversation":"c","content":"x","metadata":{"b c":[0,%s]}}', '$.metadata["b c"][1]', "$.metadata[*][1]"),
        ('{"type":"tool_result","id":"a","conversation":"c","call":"x","output":{"n":%s}}', "$.output.n", "$.output[*]"),
        ('{"type":"configure","id":"a","conversation":"c","config":{"params":{"seed":%s}}}', "$.config.params.seed", "$.config.params[*]"),
        ('{"type":"open","id":"a","config":{"response_schema":{"maximum":%s}}}', "$.config.response_schema.maximum", "$.config.response_schema[*]"),
        ('{"type":"open","id":"a","config":{"tools":[{"name":"t","parameters":{"maximum":%s}}]}}', "$.config.tools[0].parameters.maximum", "$.config.tools[0].parameters[*]"),
    ],
)  # fmt: skip
def test_a_number_either_survives_or_is_refused(
    text: str, param: str, vague: str, number: str, fits: bool
) -> None:
    if fits:
        read = decode_command(text % number, max_bytes=LIMIT)
        assert orjson.loads(encode(read)) == orjson.loads(text % number)
        return
    error = fault(text % number)
    assert error.code == "bad_frame"
    assert "as a string" in error.message
    in_range_of_a_parser = number.lstrip("-").startswith(("184", "922"))
    assert error.param == (param if in_range_of_a_parser else vague)


def test_a_ping_is_as_long_as_its_pong() -> None:
    for t in ("x" * MAX_PING_BYTES, [1e15] * 10_000):
        error = fault(f'{{"type":"ping","t":{orjson.dumps(t).decode()}}}')
        assert (error.code, error.param) == ("bad_frame", "$.t")
        assert error.message.endswith(" bytes; 131072 are allowed.")


def nested(levels: int) -> str:
    """A `close` whose deepest list is so many levels down, itself the first."""
    lists = "[" * (levels - 1) + "]" * (levels - 1)
    return f'{{"type":"close","id":"a","conversation":"c","x":{lists}}}'


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 400, 5_000, 100_000])
def test_too_deep_a_frame_is_refused(levels: int) -> None:
    error = fault(nested(levels))
    assert (error.code, error.param, error.re) == ("bad_frame", "$.x", "a")
    assert error.message.startswith(
        "`x` holds lists and objects that stand more than 64"
    )
    for no_command in ("ping", "ack"):
        assert fault(nested(levels).replace("close", no_command)).re is None


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"close","x":[{"id":"no"},"\\"id\\":\\"no\\"",%s],"id" : "a"}',
        '{"x\\"id":"no","id":"a","x\\\\":{"id":"no"},"type":"close","x":%s}',
    ],
)
def test_the_id_beside_depths_is_the_commands_own(text: str) -> None:
    assert fault(text % ("[" * 5_000 + "]" * 5_000)).re == "a"


def test_type_may_stand_only_once() -> None:
    for text in (
        '{"type":"ping","type":"ping"}',
        '{"type" : "ping","t":{"type":1},"type" : "ping"}',
    ):
        error = fault(text)
        assert (error.code, error.param) == ("bad_frame", "$.type")
        assert error.message == "`type` stands twice; give it once."
    twice = fault('{"type":"close","id":"a","conversation":"c","type":"close"}')
    assert twice.re == "a"
    for inner in (
        '{"type":1}', '[{"type":1},{"type":2}]', r'"\"type\":"', '"type"',
        r'{"\\type":1}',
    ):  # fmt: skip
        text = f'{{"type":"ping","t":{inner},"{{type":"","type2":"","\\\\type":""}}'
        assert decode_command(text, max_bytes=LIMIT)


def test_what_a_client_made_up_is_repeated_in_part() -> None:
    name = "n" * 100_000
    for text in (
        send(metadata={name: 2**63}).replace(str(2**63), str(2**64)),
        send(metadata={name: 0}).replace(":0}", ":" + "9" * 400 + "}"),
    ):
        error = fault(text)
        assert error.re == "m1"
        assert error.param is not None
        assert len(error.param) <= 200
        assert len(error.message) < 1_000


def test_the_depth_of_a_frame_is_that_of_its_lists_and_objects() -> None:
    assert decode_command(nested(MAX_DEPTH), max_bytes=LIMIT)
    assert fault(nested(MAX_DEPTH + 1)).re == "a"
    wide: list[Any] = [[{}] for _ in range(1000)]
    text = frame("ping", t=['"' + "[" * 500 + "\\", "[{" * 500, wide])
    assert decode_command(text, max_bytes=LIMIT)
    with pytest.raises(FrameError):
        decode_command(text, max_bytes=LIMIT, max_depth=4)
    assert decode_command(text, max_bytes=LIMIT, max_depth=5)


@given(st.recursive(st.just("[]") | st.text(alphabet='[]{}\\"é').map(lambda text: orjson.dumps(text).decode()),
                    lambda inner: st.lists(inner).map(lambda all_: f"[{','.join(all_)}]")
                    | inner.map(lambda one: f'{{"}}[":{one}}}')),
       st.integers(0, 12))  # fmt: skip
def test_depth_is_counted_like_by_hand(text: str, around: int) -> None:
    text = '{"type":"ping","t":' + "[" * around + text + "]" * around + "}"
    depth = height(orjson.loads(text))
    assert decode_command(text, max_bytes=LIMIT, max_depth=depth)
    for too_little in range(max(0, depth - 10), depth):
        with pytest.raises(FrameError):
            decode_command(text, max_bytes=LIMIT, max_depth=too_little)


def height(value: Any) -> int:
    match value:
        case dict():
            inner = list(cast("dict[str, Any]", value).values())
        case list():
            inner = cast("list[Any]", value)
        case _:
            return 0
    return 1 + max(map(height, inner), default=0)


def test_the_depth_of_a_long_frame_is_found_in_little_time() -> None:
    chain = "[" * 900 + "]" * 900
    text = '{"type":"close","id":"a","conversation":"c","x":[%s]}'
    text %= ",".join([chain] * 136)
    began = time.process_time()
    assert fault(text).re == "a"
    assert time.process_time() - began < 0.05


@pytest.mark.parametrize("letter", ["x", "é", "字", "\U0001f680"])
def test_the_limit_counts_bytes_of_utf8(letter: str) -> None:
    text = send(content=letter * 100)
    size = len(text.encode())
    for data in (text, text.encode()):
        assert decode_command(data, max_bytes=size)
        error = fault(data, max_bytes=size - 1)
        assert (error.code, error.re) == ("too_large", "m1")
        assert str(size) in error.message
    assert fault(text[:-1], max_bytes=size - 2).re is None


def test_unknown_members_are_ignored_and_the_last_of_two_counts() -> None:
    text = '{"type":"ping","t":1,"later":{"x":[1e999]},"t":2}'
    assert decode_command(text, max_bytes=LIMIT) == Ping(t=2)


@pytest.mark.parametrize("after", [-1, 1.5, "3", True, [], {}, 2**53, 10**30, 1e300])
def test_any_cursor_decodes_so_that_the_server_can_answer_bad_cursor(
    after: Any,
) -> None:
    text = '{"type":"open","id":"o","after":%s}'
    read = decode_command(
        text % (after if isinstance(after, int) and after is not True else orjson.dumps(after).decode()),
        max_bytes=LIMIT,
    )  # fmt: skip
    assert isinstance(read, Open)
    assert read.after == after


@pytest.mark.parametrize("member", Open.__struct_fields__[1:])
def test_null_in_open_is_the_same_as_absent(member: str) -> None:
    absent, null = frame("open", id="o"), frame("open", id="o", **{member: None})
    read = decode_command(null, max_bytes=LIMIT)
    assert read == decode_command(absent, max_bytes=LIMIT)
    assert encode(read) == absent.encode()


@pytest.mark.parametrize("member", ["policy", "seen_seq", "on_disconnect", "metadata"])
def test_null_in_send_is_the_same_as_absent(member: str) -> None:
    read = decode_command(send(**{member: None}), max_bytes=LIMIT)
    assert read == decode_command(send(), max_bytes=LIMIT)


def test_null_in_a_tool_is_the_same_as_absent() -> None:
    null = configure(tools=[{"name": "a", "description": None, "parameters": None}])
    assert decode_command(null, max_bytes=LIMIT) == decode_command(
        configure(tools=[{"name": "a"}]), max_bytes=LIMIT
    )


def test_a_null_error_beside_an_output_is_no_error() -> None:
    text = frame(
        "tool_result", id="t", conversation="c", call="x", output=0, error=None
    )
    read = decode_command(text, max_bytes=LIMIT)
    assert isinstance(read, ToolResult)
    assert read.output == 0


def test_the_error_is_ready_for_the_wire() -> None:
    body = fault(send(content=5)).body()
    assert (body.code, body.param, body.retryable) == ("bad_frame", "$.content", False)


def test_a_ping_brings_back_no_more_than_a_little() -> None:
    frame = b'{"type":"ping","t":"' + b"x" * 140_000 + b'"}'
    with pytest.raises(FrameError) as caught:
        decode_command(frame, max_bytes=262_144)
    assert (caught.value.code, caught.value.param) == ("bad_frame", "$.t")


def test_a_models_name_has_a_limit() -> None:
    config = b'{"model":"' + b"m" * 257 + b'"}'
    frame = b'{"type":"open","id":"a","config":' + config + b"}"
    with pytest.raises(FrameError) as caught:
        decode_command(frame, max_bytes=10_000)
    assert (caught.value.code, caught.value.param) == ("bad_frame", "$.config.model")
