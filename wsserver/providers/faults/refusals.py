"""Reads what the body of an upstream's refusal says, however it comes.

Pure: bytes in; parsed JSON or text out. A body may end in the middle, where a proxy or
this program reads no more or the connection broke, and it may be no JSON at all: a
proxy's page, an event stream, text in another encoding. What it means is for `reports`
and `failures`.
"""

import re
from typing import Final

import jiter
from msgspec import Struct

from wsserver.providers.exact_json import encoding_of, read_first_json, read_json
from wsserver.providers.faults.failures import Flaw

_NO_TEXT: Final = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""What pictures and the like have, and text has not."""

_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_KNOWN_CHARSETS: Final = re.compile(
    r"iso-?8859|latin|windows-125|cp125|gb|big5|shift|euc|koi8|utf-?16|utf-?32",
    re.IGNORECASE,
)
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_LIKE_JSON: Final = re.compile(r"\{\s*(?:[\"'}]|$)|\[\s*(?:[\[{\"'\]]|$)")
_EVENT: Final = re.compile(r"^data:(?! ?\[DONE\]) ?(.*)$", re.MULTILINE)
_EVENTS: Final = re.compile(r"(?:data|event|id|retry)?:")


class Refusal(Struct, frozen=True, kw_only=True):
    """What a body says.

    Attributes:
        payload: Parsed JSON, as far as there is any; text where it is none; None
            where it says nothing.
        flaw: What is wrong with it, if it is JSON that says less than it was to.
    """

    payload: object = None
    flaw: Flaw | None = None


def read_refusal(content: bytes, content_type: str | None) -> Refusal:
    """Returns what a body says, or its beginning."""
    text = _text(content, content_type)
    if _EVENTS.match(text) and (event := _EVENT.search(text)):
        text = event[1].strip()
    if not text or _NO_TEXT.search(text):
        return Refusal()
    try:
        return Refusal(payload=read_json(text.encode()))
    except ValueError:
        return _beginning(text)


def _beginning(text: str) -> Refusal:
    """Returns what a text says that is not one JSON value."""
    try:
        return Refusal(payload=read_first_json(text))
    except ValueError:
        pass
    if text.startswith('"') and text.count('"') == 1:
        return Refusal(payload=text[1:], flaw="was cut off")
    if not text.startswith(("{", "[")):
        return Refusal(payload=text)
    whole_characters = _CONTROL.sub(" ", text).encode()
    try:
        payload = jiter.from_json(whole_characters, partial_mode="trailing-strings")
    except ValueError:
        if _LIKE_JSON.match(text):
            return Refusal(flaw="can't be read")
        return Refusal(payload=text)
    return Refusal(payload=payload, flaw="was cut off")


def _text(content: bytes, content_type: str | None) -> str:
    """Decodes a body: by what it looks like, then by what it is said to be."""
    encoding = encoding_of(content)
    if not encoding.startswith("utf-8"):
        text = content.decode(encoding, "replace").strip()
        return text if text[:1].isascii() else ""  # Pictures have zeros too.
    try:
        return content.decode(encoding).strip()
    except UnicodeDecodeError:
        said = _CHARSET.search(content_type or "")
    if said and _KNOWN_CHARSETS.match(said[1]):
        encoding = said[1]
    try:
        return content.decode(encoding, "replace").strip()
    except LookupError:
        return content.decode("utf-8", "replace").strip()
