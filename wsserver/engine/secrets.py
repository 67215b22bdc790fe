"""Where what is configured holds credentials, and how a text is rid of them.

Pure. For names of headers and variables, and for URLs; a key that is configured as one
needs no telling. What else may look like a credential in a log line is for
`wsserver.telemetry.logging`.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

HIDDEN: Final = "***"

_TELLING: Final = re.compile(
    r"(?:^|[-_.])(?:auth|authorization|keys?|tokens?|secrets?|passwd|pwd|credentials?"
    r"|cookie|signature)(?:$|[-_.])|(?:key|token|secret|password)$",
    re.IGNORECASE,
)
_USERINFO: Final = re.compile(r"^((?:[^/]*//?)?)[^/]*@")

_LEAST_CHARS: Final = 4  # less of it is in many words


def is_telling(name: str) -> bool:
    """Whether a header or variable of that name holds a credential."""
    return _TELLING.search(name) is not None


def telling_values(values: Mapping[str, str]) -> Iterator[str]:
    """Yields the credentials among headers or variables; of `Bearer X` just `X`."""
    for name, value in values.items():
        if is_telling(name):
            scheme, _, credential = value.partition(" ")
            yield credential if scheme.lower() in {"basic", "bearer"} else value


def url_secrets(url: str) -> Iterator[str]:
    """Yields the password of a URL, and what it looks like in a header."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return  # it is none, so nobody is asked with it
    if parts.password:
        pair = f"{unquote(parts.username or '')}:{unquote(parts.password)}"
        yield from (parts.password, unquote(parts.password))
        yield b64encode(pair.encode()).decode()


def without_userinfo(url: str) -> str:
    """Returns a URL, or what was to be one, without what stands before the host."""
    return _USERINFO.sub(rf"\g<1>{HIDDEN}@", url)


def hide(text: str, secrets: Iterable[str]) -> str:
    """Takes secrets out of a text.

    Also the beginning of one at the end of the text, which may have been cut.
    """
    known = [secret for secret in secrets if len(secret) >= _LEAST_CHARS]
    known.sort(key=len, reverse=True)  # one may be part of another
    for secret in known:
        text = text.replace(secret, HIDDEN)
    for secret in known:
        for length in range(len(secret) - 1, _LEAST_CHARS - 1, -1):
            if text.endswith(secret[:length]):
                return text[:-length] + HIDDEN
    return text
