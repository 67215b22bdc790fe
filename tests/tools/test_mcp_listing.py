"""What is told of a list of tools, and why the rest is left out."""

from typing import Any

import pytest

from wsserver.tools.mcp.listing import (
    MOST_TOOL_BYTES,
    MOST_TOOLS,
    LeftOut,
    Listed,
    Listing,
    Offer,
    offer,
)
from wsserver.tools.mcp.settings import McpSettings


def listed(name: str, description: str = "", **parameters: Any) -> Listed:
    parameters = {"type": "object", **parameters}
    return Listed(name=name, description=description, parameters=parameters)


async def offered(*tools: Listed, left_out: Any = (), **settings: Any) -> Offer:
    listing = Listing(tools=tools, left_out=left_out)
    return await offer(listing, McpSettings(name="s", **settings))


REQUIRED = '$[\'properties\'][\'required\']: ["x"] is not of types "boolean", "object"'


@pytest.mark.parametrize(
    ("tool", "why"),
    [
        (listed(""), "it has no name"),
        (listed("x" * 64), "with the prefix its name is longer than 64 characters"),
        (listed("a?b"), "'a.b' has the same name for models"),
        (
            listed("huge", "x" * MOST_TOOL_BYTES),
            f"it takes 65600 bytes; {MOST_TOOL_BYTES} are allowed",
        ),
        (
            listed("bad", properties={"required": ["x"]}),
            f"inputSchema is no JSON Schema: {REQUIRED}",
        ),
    ],
)
async def test_what_no_model_can_be_told_of_is_left_out_and_says_why(
    tool: Listed, why: str
) -> None:
    made = await offered(listed("a.b"), tool, listed("c"), prefix="_")
    assert list(made.tools) == ["_a_b", "_c"]
    assert made.own_names == {"_a_b": "a.b", "_c": "c"}
    assert made.left_out == [LeftOut(tool=tool.name[:64], why=why)]


async def test_there_are_so_many_and_no_more() -> None:
    made = await offered(*(listed(f"n{number}") for number in range(MOST_TOOLS + 2)))
    assert len(made.tools) == MOST_TOOLS
    assert [one.tool for one in made.left_out] == ["n512", "n513"]
    assert made.left_out[0].why == "there are more than 512 tools"


async def test_of_what_nobody_asked_for_nothing_is_said() -> None:
    refused = [LeftOut(tool=name, why="w") for name in ("a", "b")]
    made = await offered(
        listed("a"), listed("c", type=3), left_out=refused, only=("a*",)
    )
    assert list(made.tools) == ["a"]
    assert made.left_out == refused[:1]


@pytest.mark.parametrize(
    "schema",
    [
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2020-12/schema",
        "http://127.0.0.1:1/a-schema-that-is-nowhere",
    ],
)
async def test_no_schema_of_schemas_is_fetched(schema: str) -> None:
    good = listed("good", **{"$schema": schema})
    bad = listed("bad", **{"$schema": schema, "required": True})
    made = await offered(good, bad)
    assert list(made.tools) == ["good"]
    assert made.left_out[0].why.endswith("$['required']: true is not of type \"array\"")
