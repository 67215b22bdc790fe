"""Fetches a small document by HTTP. Slow to import (aiohttp): imported late.

Not PyJWT's own client: that one blocks, so it would need a thread, which can't be
cancelled; and it reads whatever comes, for however long.
"""

from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from wsserver.auth.key_set import FetchError

LONGEST_DOCUMENT_BYTES: Final = 1_048_576


async def fetch(url: str) -> bytes:
    """Returns the document; redirects are not followed. The caller sets the time.

    Raises:
        FetchError: It can't be had, or is longer than a megabyte.
    """
    try:
        async with (
            aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
            ) as session,
            session.get(url, allow_redirects=False, proxy=_proxy_for(url)) as response,
        ):
            if response.status != 200:
                raise FetchError(f"the answer has status {response.status}")
            return await _read(response.content)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        # What aiohttp says may hold the address.
        raise FetchError(f"no answer: {type(error).__name__}") from None


async def _read(content: aiohttp.StreamReader) -> bytes:
    document = bytearray()
    while data := await content.readany():
        document += data
        if len(document) > LONGEST_DOCUMENT_BYTES:
            raise FetchError("the document is too long")
    return bytes(document)


def _proxy_for(url: str) -> str | None:
    # aiohttp's own `trust_env` would also take passwords from a netrc file.
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")
