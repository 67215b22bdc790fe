"""The scenarios themselves keep the protocol: a judge must not break what it judges."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest

from protocol.codec import UnknownFrame, decode_server_frame
from protocol.generate.schema import json_schema
from tests.conformance.judge import FRAMES, Json, frame_of, scenarios

ALL = list(scenarios())
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "protocol.md"
SCHEMA = json_schema()
SERVER_FRAME = jsonschema_rs.Draft202012Validator(
    {"$ref": "#/$defs/ServerFrame", "$defs": SCHEMA["$defs"]}, offline=True
)


def steps_of(steps: list[Json]) -> list[Json]:
    """All steps in order, those of openings and repeats too."""
    found: list[Json] = []
    for step in steps:
        if "opening" in step:
            found += steps_of(FRAMES["openings"][step["opening"]])
        elif "repeat" in step:
            found += steps_of(step["steps"])
        else:
            found.append(step)
    return found


def whole(scenario: Json) -> list[Json]:
    opening = scenario["opening"]
    return steps_of([{"opening": opening}] * (opening is not None) + scenario["steps"])


def without_names(frame: Any) -> Any:
    """Gives what a scenario names a value, as the judge does."""
    return orjson.loads(re.sub(rb'"\$(\w+)"', rb'"\1"', orjson.dumps(frame)))


@pytest.mark.parametrize("scenario", ALL, ids=lambda each: each["name"])
def test_the_frames_of_a_server_are_frames_of_the_protocol(scenario: Json) -> None:
    heads: dict[tuple[str, str], int] = {}
    epochs: dict[str, str] = {}
    for step in whole(scenario):
        if "frame" not in step or step.get("faulty"):
            continue
        frame = without_names(frame_of(step["frame"]))
        data = orjson.dumps(frame)
        assert not isinstance(decode_server_frame(data), UnknownFrame), frame
        SERVER_FRAME.validate(frame)
        if frame["type"] == "reply" and "epoch" in frame:
            epochs[frame["conversation"]] = frame["epoch"]
        if "seq" in frame and "conversation" in frame and frame["type"] != "caught_up":
            log = (frame["conversation"], epochs.get(frame["conversation"], ""))
            heads[log] = max(heads.get(log, 0), frame["seq"])
            assert frame.get("first", frame["seq"]) <= frame["seq"]


def test_there_are_many_and_each_has_a_name_and_a_rule() -> None:
    assert len(ALL) > 80
    names = Counter(each["name"] for each in ALL)
    assert max(names.values()) == 1, names.most_common(3)
    headings = re.findall(r"^#+ (.+)$", PAGE.read_text(), re.MULTILINE)
    sections = {heading.replace("`", "") for heading in headings}
    assert {each["rule"] for each in ALL} <= sections


def test_nothing_is_said_under_a_name_that_stands_for_nothing() -> None:
    texts = [step["text"] for each in ALL for step in whole(each) if "text" in step]
    assert texts
    assert not [text for text in texts if text.startswith("$")]


def test_every_event_and_control_frame_is_played() -> None:
    played = {
        step["frame"]["type"]
        for scenario in ALL
        for step in whole(scenario)
        if "frame" in step
    }
    assert set(FRAMES["templates"]) - {"pong"} <= played
