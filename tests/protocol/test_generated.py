"""What is generated is fresh, fits the codec, and is complete."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import jsonschema_rs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.codec import decode_command
from protocol.codes import CLOSES, ERRORS, CloseCode
from protocol.commands import ClientFrame, Command
from protocol.control import ControlFrame
from protocol.events import LogEvent
from protocol.frame_error import FrameError
from protocol.generate import __main__ as program
from protocol.generate.asyncapi import asyncapi
from protocol.generate.schema import definitions, json_schema, struct_named
from protocol.generate.typescript import typescript
from tests.protocol.texts import whole_text

FRAMES = (*get_args(ClientFrame), *get_args(LogEvent), *get_args(ControlFrame))


def validator(name: str | None = None) -> jsonschema_rs.Draft202012Validator:
    schema = json_schema()
    if name is not None:
        schema = {"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]}
    return jsonschema_rs.Draft202012Validator(schema, offline=True)


def test_what_is_committed_is_fresh() -> None:
    assert program.main(["--check"]) == 0


def test_stale_or_missing_files_are_named_and_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "ROOT", tmp_path)
    assert program.main(["--check"]) == 1
    assert capsys.readouterr().err.count("stale: ") == len(program.ARTEFACTS)
    assert program.main(["--write"]) == 0
    assert program.main(["--check"]) == 0
    (tmp_path / "protocol/schemas/schema.json").write_text("{}")
    assert program.main(["--check"]) == 1
    assert "stale: protocol/schemas/schema.json;" in capsys.readouterr().err
    assert program.main([]) == 2


@pytest.mark.parametrize("name", ["schema.json", "asyncapi.json", "wsserver.d.ts"])
def test_the_package_carries_it(name: str) -> None:
    file = files("protocol").joinpath("schemas", name)
    made = program.ARTEFACTS[f"protocol/schemas/{name}"]()
    assert file.read_text("utf-8") == made


def test_the_schema_is_valid_and_takes_every_frame(
    client_frames: list[str], server_frames: list[str]
) -> None:
    jsonschema_rs.meta.validate(json_schema())
    whole = validator()
    for union, lines in (
        ("ClientFrame", client_frames),
        ("ServerFrame", server_frames),
    ):
        one = validator(union)
        for line in lines:
            frame = orjson.loads(line)
            assert one.is_valid(frame), line
            assert whole.is_valid(frame), line


@pytest.mark.parametrize(
    "bad",
    [
        {"type": "tool_result", "id": "t", "conversation": "c", "call": "x"},
        {"type": "tool_result", "id": "t", "conversation": "c", "call": "x", "output": 1, "error": {"message": ""}},
        {"type": "send", "id": "a\n", "conversation": "c", "content": "x"},
        {"type": "send", "id": "a", "conversation": "c", "content": []},
        {"type": "open", "id": "a", "after": -1},
        {"type": "open", "id": "a", "after": 2**53},
        {"type": "hello"},
        {"type": "later"},
        {},
        [],
    ],
)  # fmt: skip
def test_the_schema_refuses_what_the_server_refuses(bad: Any) -> None:
    assert not validator("ClientFrame").is_valid(bad)


def test_an_error_is_either_an_event_or_about_the_connection() -> None:
    error = {"type": "error", "code": "internal", "message": "x", "retryable": True}
    event = {**error, "conversation": "c", "seq": 2, "turn": 1}
    names = ("ErrorFrame", "TurnErrorEvent")
    assert [validator(name).is_valid(error) for name in names] == [True, False]
    assert [validator(name).is_valid(event) for name in names] == [False, True]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | whole_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(whole_text, inner),
    max_leaves=4,
)
CLIENT = validator("ClientFrame")


@given(data=st.data())
def test_what_the_schema_takes_the_codec_takes(
    data: st.DataObject, client_frames: list[str]
) -> None:
    """Frames that are changed in one place: neither may say yes alone.

    The codec is kinder in two things: null where a member may be absent, which
    the schema of `tool_result` counts as there, and any cursor. It is stricter
    about the rules between members, which the samples do not break.
    """
    frame = orjson.loads(data.draw(st.sampled_from(client_frames)))
    name = data.draw(st.sampled_from(sorted(frame)))
    frame[name] = data.draw(json_values)
    try:
        decode_command(orjson.dumps(frame), max_bytes=10_000)
    except FrameError:
        read = False
    else:
        read = True
    if CLIENT.is_valid(frame):
        assert read or name in ("keep", "seen_seq", "send", "turn")
    elif read:
        assert name == "after" or frame["type"] == "tool_result"


def test_every_struct_and_its_own_members_are_described() -> None:
    for name, schema in definitions().items():
        assert schema["description"], name
        assert "Attributes" not in schema["description"], name
    send = definitions()["Send"]["properties"]
    assert send["policy"]["description"] == "What to do while a turn runs."
    assert send["id"]["description"].startswith("Its own, for its principal")
    assert "1 to 128 of" in send["id"]["description"]


def test_asyncapi_names_every_frame_and_code_and_all_references_lead_somewhere() -> (
    None
):
    document = asyncapi()
    text = orjson.dumps(document).decode()
    for ref in set(re.findall(r'"\$ref":"#/([^"]+)"', text)):
        place = document
        for step in ref.split("/"):
            place = place[step]
        assert place
    messages = {one.__name__ for one in FRAMES}
    assert set(document["components"]["messages"]) == messages
    assert set(document["channels"]["chat"]["messages"]) == messages
    operations = document["operations"]
    used = [
        ref["$ref"].rpartition("/")[2]
        for operation in operations.values()
        for ref in operation["messages"]
    ]
    assert sorted(used) == sorted(messages)
    commands = {ref["$ref"] for ref in operations["receiveCommand"]["messages"]}
    assert commands == {
        f"#/channels/chat/messages/{one.__name__}"
        for one in get_args(ClientFrame)
        if issubclass(one, Command)
    }
    assert {one["code"] for one in document["x-error-codes"]} == set(ERRORS)
    assert {one["code"] for one in document["x-close-codes"]} == set(CloseCode)


def test_every_close_code_has_a_meaning() -> None:
    assert set(CLOSES) == set(CloseCode)


def test_typescript_has_a_type_for_every_definition_and_each_is_used() -> None:
    text = typescript()
    declared = re.findall(r"^export (?:type|interface) (\w+)", text, re.MULTILINE)
    assert len(declared) == len(set(declared))
    assert set(definitions()) < set(declared)
    code = re.sub(r"/\*\*[\s\S]*?\*/|//.*|\"[^\"\n]*\"", "", text)
    for opening, closing in ("{}", "()", "[]"):
        assert code.count(opening) == code.count(closing)
    names = set(re.findall(r"\b[A-Z]\w+", code))
    assert names - {"Record"} == set(declared)
    assert "None" not in re.sub(r'"[^"]*"', "", text)


def test_typescript_says_what_may_be_absent_and_what_may_be_null() -> None:
    text = typescript()
    members = dict(re.findall(r"^  (\w+\??): (.*);$", text, re.MULTILINE))
    assert members["seen_seq?"] == "number"
    assert members["grace_s"] == "number | null"
    assert members["instructions?"] == "string | null"
    assert members["content"] == "string | (TextPart | ImagePart)[]"
    assert members["heads"] == "Record<string, number>"
    assert members["output?"] == "unknown"
    assert members["output"] == "unknown"


def test_a_definition_is_made_of_a_struct() -> None:
    with pytest.raises(LookupError):
        struct_named("Nothing")
