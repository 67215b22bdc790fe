"""The way to an MCP server at a URL: the SDK's streamable HTTP, within bounds.

The SDK gets to see answers as `answers` reads them. There is no time limit here
for an answer; a call has its own.
"""

import httpx2
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client

from wsserver.tools.mcp.answers import Answers
from wsserver.tools.mcp.stdio import MOST_MESSAGE_BYTES

_CONNECT_SECONDS = 10.0


def http_client(server: str, token: str | None) -> httpx2.AsyncClient:
    """Makes what `http_transport` takes; loads certificates, so call it in a thread.

    Args:
        server: The server's name, for the log.
        token: Bearer credentials; None for none.
    """
    headers = {"Accept-Encoding": "identity"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return httpx2.AsyncClient(
        headers=headers,
        timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None),
        event_hooks={"response": [Answers(server).read]},
    )


def http_transport(url: str, client: httpx2.AsyncClient) -> Transport:
    """Returns what connects to a URL with an open client."""
    return streamable_http_client(
        url, http_client=client, max_sse_event_size=MOST_MESSAGE_BYTES
    )
