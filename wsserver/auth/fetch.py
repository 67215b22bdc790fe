"""Fetches a small document by HTTP. Slow to import (httpx2): imported late.

Not PyJWT's own client: that one blocks, so it would need a thread, which can't be
cancelled; and it reads whatever comes, for however long.
"""

from typing import Final

import anyio.to_thread
import httpx2

from wsserver.auth.key_set import FetchError

LONGEST_DOCUMENT_BYTES: Final = 1_048_576


async def fetch(url: str) -> bytes:
    """Returns the document; redirects are not followed. The caller sets the time.

    Raises:
        FetchError: It can't be had, or is longer than a megabyte.
    """
    try:
        async with (
            await anyio.to_thread.run_sync(_client) as client,
            client.stream("GET", url, follow_redirects=False) as response,
        ):
            if response.status_code != 200:
                raise FetchError(f"the answer has status {response.status_code}")
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise FetchError("the document is compressed, which was not asked for")
            return await _read(response)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        # What the library says may hold the address.
        raise FetchError(f"no answer: {type(error).__name__}") from None


def _client() -> httpx2.AsyncClient:
    """Makes a client; reads certificates, which blocks."""
    # Without `netrc` files, whose passwords were not meant for this.
    # Not compressed: a few bytes could then unpack to more than there is memory.
    headers = {"Accept-Encoding": "identity"}
    return httpx2.AsyncClient(timeout=None, auth=_no_auth, headers=headers)


def _no_auth(request: httpx2.Request) -> httpx2.Request:
    return request


async def _read(response: httpx2.Response) -> bytes:
    document = bytearray()
    async for data in response.aiter_bytes():
        document += data
        if len(document) > LONGEST_DOCUMENT_BYTES:
            raise FetchError("the document is too long")
    return bytes(document)
