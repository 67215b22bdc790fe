"""What an MCP tool's result is for the model: text where there is some, else JSON.

Bytes (images, sound, files) are named, not shown: as base64 they would fill the
prompt and tell the model nothing.
"""

from collections.abc import Sequence
from typing import Any, assert_never

import msgspec
from mcp import types


def output_of(result: types.CallToolResult) -> Any:
    """Returns the text of a result; its structured content where that says the same.

    Also where there is no text.
    """
    text, structured = text_of(result.content), result.structured_content
    if structured is None:
        return text
    try:
        same = not text or msgspec.json.decode(text) == structured
    except msgspec.DecodeError:
        same = False
    return structured if same else text


def text_of(content: Sequence[types.ContentBlock]) -> str:
    """Returns what the blocks say, one after the other."""
    return "\n".join(map(_text, content))


def _text(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent() | types.AudioContent():
            return _bytes(block.type, block.mime_type, block.data)
        case types.ResourceLink():
            return f"[resource {block.name}: {block.uri}]"
        case types.EmbeddedResource():
            return _resource(block.resource)
        case _:
            assert_never(block)


def _resource(
    resource: types.TextResourceContents | types.BlobResourceContents,
) -> str:
    if isinstance(resource, types.TextResourceContents):
        return resource.text
    kind = resource.mime_type or "of no known type"
    return _bytes(f"resource {resource.uri}", kind, resource.blob)


def _bytes(what: str, mime_type: str, base64: str) -> str:
    return f"[{what}: {mime_type}, {len(base64.rstrip('=')) * 3 // 4} bytes]"
