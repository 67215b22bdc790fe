"""Finds what an error payload says, wherever a vendor puts it.

Pure: parsed JSON or text in, a `Report` out. What kind of fault it is, and whether
trying again helps, is for `failures`.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from wsserver.providers.exact_json import is_array, is_object, write_json
from wsserver.providers.surrogates import clean

_MAX_CODE_CHARS: Final = 128

_ERRORS: Final = ("error", "errors", "error_message", "error_type")
# Where MiniMax and iFlytek put what stands in `error` elsewhere; it is there too
# where all went well, with the code 0.
_STATUSES: Final = ("base_resp", "header")
_STATUS_CODES: Final = ("status_code", "code")
_MESSAGE_MEMBERS: Final = (
    "message", "error_message", "error_msg", "status_msg", "detail", "msg", "Message",
    "error",
)  # fmt: skip
_CODE_MEMBERS: Final = ("code", "error_code", "status", "status_code", "Code")
_FINE: Final = frozenset({"", "0", "200", "ok", "success"})

_FILTERED: Final = "content_filter"
# What MiniMax's codes would be as an HTTP status.
_MINIMAX: Final = {
    "1001": 504, "1002": 429, "1004": 401, "1008": 402, "1039": 429, "1041": 429,
    "2013": 400, "2045": 429, "2049": 401, "2056": 429,
}  # fmt: skip
_MINIMAX_FILTERED: Final = frozenset({"1026", "1027"})


class Report(Struct, frozen=True, kw_only=True):
    """What an error payload says; "" and None where it does not.

    Attributes:
        message: For a person, as it came.
        code: The vendor's own code.
        kind: The vendor's own name for errors of this kind.
        status: What it would be, or was, as an HTTP status.
    """

    message: str = ""
    code: str = ""
    kind: str = ""
    status: int | None = None


def reports_error(members: Mapping[str, Any]) -> bool:
    """Whether an event says that the answer failed, whatever else it says."""
    if any(members.get(name) for name in _ERRORS):
        return True
    if "error" in (members.get("object"), members.get("type")):
        return True
    codes = [members.get("error_code"), *_status_codes(members)]
    return not all(map(_is_fine, codes)) or bool(_foreign_error(members))


def says_fine(members: Mapping[str, Any]) -> bool:
    """Whether an event has a code, which says that nothing is wrong."""
    codes = [*map(members.get, _CODE_MEMBERS), *_status_codes(members)]
    said = [code for code in codes if code is not None]
    return bool(said) and all(map(_is_fine, said))


def read_report(payload: object, *, plain: bool = False) -> Report:
    """Returns what a payload says: in `error`, beside it, or in vendors' own.

    Args:
        payload: Parsed JSON, or text.
        plain: Whether the message may be words only, and no JSON.
    """
    if is_array(payload) and payload:
        payload = payload[0]
    if not is_object(payload):
        return Report(message=payload.strip() if isinstance(payload, str) else "")
    outer: Mapping[str, Any] = payload
    inner = _inner(outer)
    beside = {} if inner is outer else {**outer, "error": None}
    texts = (
        (_words if plain else _text)(source.get(name))
        for name in _MESSAGE_MEMBERS
        for source in (inner, beside)
    )
    codes = [
        value
        for source in (inner, beside)
        for name in _CODE_MEMBERS
        if isinstance(value := source.get(name), str | int) and value != ""
    ]
    kinds = [inner.get("type"), inner.get("error_type"), outer.get("error_type")]
    kinds.append(outer.get("__type"))
    kind = next((value for value in kinds if isinstance(value, str) and value), "")
    named = [value for value in codes if isinstance(value, str) and not _digits(value)]
    code = named[0] if named else ""
    if codes and not code and not kind:
        code = str(codes[0])
    report = Report(
        message=next(filter(None, texts), ""),
        code=clean(code)[:_MAX_CODE_CHARS],
        kind=clean(kind)[:_MAX_CODE_CHARS],
        status=next(filter(None, map(_http_status, codes)), None),
    )
    return _as_minimax(report) if inner is outer.get("base_resp") else report


def _inner(outer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the members that tell of the error."""
    error = outer.get("error") or outer.get("errors")
    if is_array(error) and error:
        error = error[0]
    if isinstance(error, str) and error:
        return {"message": error, **outer}
    if not is_object(error):
        places = map(outer.get, (*_STATUSES, "output"))
        error = next(filter(is_object, places), None)
    return error or _foreign_error(outer) or outer


def _foreign_error(outer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the error of an API that is none of chat: Tencent's, or Bedrock's."""
    response = outer.get("Response")
    if is_object(response) and is_object(error := response.get("Error")):
        return error
    for name, value in outer.items():
        if name.endswith("Exception") and is_object(value):
            return {"type": name, **value}
    return None


def _as_minimax(report: Report) -> Report:
    if report.code in _MINIMAX_FILTERED:
        return replace(report, kind=_FILTERED)
    return replace(report, status=_MINIMAX.get(report.code))


def _status_codes(members: Mapping[str, Any]) -> list[object]:
    places = filter(is_object, map(members.get, _STATUSES))
    return [place.get(name) for place in places for name in _STATUS_CODES]


def _is_fine(code: object) -> bool:
    return code is None or str(code).strip().lower() in _FINE


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if not value or not (is_object(value) or is_array(value)):
        return ""
    if is_object(value) and "role" in value:
        return ""  # What a model said in another API's format is no reason.
    # FastAPI puts a list of what is wrong here, some vendors an object.
    try:
        return write_json(value)
    except ValueError:
        return ""


def _words(value: object) -> str:
    """Returns the first words in a value."""
    if is_array(value) and value:
        value = value[0]
    if is_object(value):
        value = next(filter(None, map(value.get, _MESSAGE_MEMBERS)), None)
    return value if isinstance(value, str) else ""


def _http_status(value: object) -> int | None:
    if isinstance(value, str) and _digits(value):
        value = int(value)
    return value if type(value) is int and 400 <= value <= 599 else None


def _digits(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= 4
