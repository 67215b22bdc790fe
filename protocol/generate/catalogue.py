"""The page of the reference that lists error and close codes."""

from protocol.codes import CLOSES, ERRORS, advice

_HEAD = """\
# Errors and close codes

<!-- Made by `python -m protocol.generate` from protocol/codes.py; do not edit. -->

The [protocol](protocol.md) says where errors appear. A client should decide by
`code` and `retryable`, show `message` to a person, and treat a code that it
does not know like `internal`.
"""

_WHERE = {
    "command": "Errors of commands and connections",
    "turn": "Errors of turns",
}

_LEADS = {
    "command": (
        "In a `reply` whose `ok` is false, or in an `error` frame without"
        ' `conversation` where the fault belongs to no command. "Retry" says'
        " whether sending the same again, under the same id, may succeed; a single"
        " error's `retryable` wins over the table."
    ),
    "turn": (
        "In an `error` event, which precedes the turn's `done` with status"
        ' `failed`. "Retry" says whether the same message may succeed when it is'
        " sent again, under a new id."
    ),
}

_ADVICE = {
    "stop": "stop: reconnecting would fail alike",
    "back_off": "reconnect, with full jitter",
    "reconnect_now": "reconnect at once",
}


_CLOSES = """
## Close codes

44xx end it, 45xx ask for a retry with back-off, 46xx for one at once. A code that
is not listed, or no close frame at all (1006), means: reconnect with full jitter.
The reason of a close holds no secret.

| code | name | what happened | then | what to do |
|---|---|---|---|---|
"""


def errors_page() -> str:
    """Returns the page as Markdown."""
    parts = [_HEAD]
    for scope, title in _WHERE.items():
        parts += [f"\n## {title}\n\n{_LEADS[scope]}\n"]
        parts += [
            "\n| code | retry | what happened | what to do |\n|---|---|---|---|\n"
        ]
        parts += [
            f"| `{one.code}` | {'yes' if one.retryable else 'no'}"
            f" | {one.meaning} | {one.remedy} |\n"
            for one in ERRORS.values()
            if one.scope in (scope, "both")
        ]
    parts += [_CLOSES]
    parts += [
        f"| {code.value} | {code.name.lower()} | {one.meaning}"
        f" | {_ADVICE[advice(code)]} | {one.remedy} |\n"
        for code, one in CLOSES.items()
    ]
    return "".join(parts)
