"""What a model gets of an MCP tool's result."""

from typing import Any

import pytest
from mcp import types

from wsserver.tools.mcp.content import output_of, text_of

TEXT = types.TextContent(type="text", text="It rains.")


def result(*content: Any, structured: Any = None) -> types.CallToolResult:
    return types.CallToolResult(content=list(content), structured_content=structured)


@pytest.mark.parametrize(
    ("made", "output"),
    [
        (result(TEXT), "It rains."),
        (result(TEXT, TEXT), "It rains.\nIt rains."),
        (result(), ""),
        (result(structured={"a": 1}), {"a": 1}),
        (result(TEXT, structured={"a": 1}), "It rains."),
        (
            result(
                types.TextContent(type="text", text='{ "a": 1 }'), structured={"a": 1}
            ),
            {"a": 1},
        ),
        (
            result(types.TextContent(type="text", text="3"), structured={"result": 3}),
            "3",
        ),
    ],
)
def test_text_or_what_says_the_same(made: types.CallToolResult, output: Any) -> None:
    assert output_of(made) == output


def test_what_is_no_text_is_named() -> None:
    data = "AAAA" * 100
    uri = "file:///a.txt"
    blocks = [
        types.ImageContent(type="image", data=data, mime_type="image/png"),
        types.AudioContent(type="audio", data="AAA=", mime_type="audio/wav"),
        types.ResourceLink(type="resource_link", name="a", uri=uri),
        types.EmbeddedResource(
            type="resource", resource=types.TextResourceContents(uri=uri, text="Hi.")
        ),
        types.EmbeddedResource(
            type="resource", resource=types.BlobResourceContents(uri=uri, blob="AA==")
        ),
    ]
    assert text_of(blocks).splitlines() == [
        "[image: image/png, 300 bytes]",
        "[audio: audio/wav, 2 bytes]",
        "[resource a: file:///a.txt]",
        "Hi.",
        "[resource file:///a.txt: of no known type, 1 bytes]",
    ]
