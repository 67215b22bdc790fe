"""The reference says everything that is on the wire, and its examples are true."""

import re
from pathlib import Path
from typing import get_args

import jsonschema_rs
import orjson
import pytest
from msgspec import Struct

from protocol import commands, content, control, events
from protocol.codec import UnknownFrame, decode_command, decode_server_frame
from protocol.fold import ConversationView
from protocol.frame_error import FrameError
from protocol.generate.schema import json_schema

PAGE = Path(__file__).parents[2] / "docs/reference/protocol.md"
TEXT = PAGE.read_text("utf-8")
BLOCKS = re.findall(r"```frames\n(.*?)```", TEXT, re.DOTALL)
SCHEMA = jsonschema_rs.Draft202012Validator(json_schema(), offline=True)


def structs() -> list[type[Struct]]:
    return [
        one
        for module in (content, events, commands, control)
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Struct)
    ]


@pytest.mark.parametrize("block", BLOCKS)
def test_examples_are_frames(block: str) -> None:
    for line in block.splitlines():
        side, _, text = line.partition(" ")
        if side == "S":
            assert not isinstance(decode_server_frame(text), UnknownFrame)
            assert SCHEMA.is_valid(orjson.loads(text)), text
            continue
        assert side == "C"
        if '"launch"' in text or '"content":5' in text:
            with pytest.raises(FrameError) as caught:
                decode_command(text, max_bytes=10_000)
            said = caught.value.message.split(";")[0]
            assert said in block
        else:
            assert decode_command(text, max_bytes=10_000)
            assert SCHEMA.is_valid(orjson.loads(text)), text


def test_the_example_of_a_turn_folds_to_what_its_proof_says() -> None:
    view = ConversationView()
    for line in "".join(BLOCKS).splitlines():
        frame = decode_server_frame(line[2:]) if line[0] == "S" else None
        if isinstance(frame, get_args(events.LogEvent)) and frame.seq <= 9:
            view.apply(frame)
    turn = view.turns[3]
    assert (turn.text, turn.status, turn.proven) == ("Hello there", "completed", True)


def test_every_frame_and_member_is_named() -> None:
    missing = [
        f"{struct.__name__}.{name}"
        for struct in structs()
        for name in struct.__struct_fields__
        if not re.search(rf"`{name}`|\b{name}\b\.|\.{name}\b|\"{name}\"", TEXT)
    ]
    assert missing == []
    unions = (commands.ClientFrame, events.LogEvent, control.ControlFrame)
    frames = [frame for union in unions for frame in get_args(union)]
    tags = {str(frame.__struct_config__.tag) for frame in frames}
    assert [tag for tag in tags if f"`{tag}`" not in TEXT] == []


@pytest.mark.parametrize(
    "values",
    [
        events.Status, events.Reason, events.ToolStatus, commands.Policy,
        commands.Keep, control.WaitingPhase,
    ],
)  # fmt: skip
def test_every_closed_value_is_named(values: object) -> None:
    assert [one for one in get_args(values) if f"`{one}`" not in TEXT] == []
