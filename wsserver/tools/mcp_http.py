"""The way to an MCP server at a URL: the SDK's streamable HTTP, within bounds.

No answer is longer than `mcp_stdio.MOST_MESSAGE_BYTES`: it would be parsed in one
go in the event loop. There is no time limit here for an answer; a call has its own.
"""

from collections.abc import AsyncIterator

import httpx2
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client

from wsserver.tools.mcp_stdio import MOST_MESSAGE_BYTES

_CONNECT_SECONDS = 10.0


def http_client(token: str | None) -> httpx2.AsyncClient:
    """Makes what `http_transport` takes; loads certificates, so call it in a thread.

    Args:
        token: Bearer credentials; None for none.
    """
    headers = {"Accept-Encoding": "identity"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return httpx2.AsyncClient(
        headers=headers,
        timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None),
        event_hooks={"response": [_bound]},
    )


def http_transport(url: str, client: httpx2.AsyncClient) -> Transport:
    """Returns what connects to a URL with an open client."""
    return streamable_http_client(
        url, http_client=client, max_sse_event_size=MOST_MESSAGE_BYTES
    )


async def _bound(response: httpx2.Response) -> None:
    """Limits a body; of an event stream the SDK limits each event."""
    kind = response.headers.get("content-type", "")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.StreamError("the answer is compressed, which was not asked for")
    if not kind.lower().startswith("text/event-stream"):
        assert isinstance(response.stream, httpx2.AsyncByteStream), "it is async"
        response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with an error where it is too long."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for data in self._stream:
            size += len(data)
            if size > MOST_MESSAGE_BYTES:
                raise httpx2.StreamError(
                    f"the answer is longer than {MOST_MESSAGE_BYTES} bytes"
                )
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()
