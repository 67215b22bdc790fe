"""The numbers of the client's half, for the client in JavaScript to share them."""

import orjson

from protocol import backoff, codes, ids
from protocol.client.link import LATE_SECONDS, SILENT_HEARTBEATS
from protocol.client.outbox import MOST_UNDER_WAY, USUAL_WAIT_SECONDS
from protocol.client.pace import KEPT_BACK, ROUNDING
from protocol.client.subscriptions import MOST_MISSES
from protocol.commands import ACK_COST

_HEAD = """\
// What both clients keep to, so that they behave alike. Made by `python -m
// protocol.generate` from protocol/, which has each number once; do not edit.
"""

_VALUES: tuple[tuple[str, object, str], ...] = (
    ("PROTOCOL", ids.VERSION, "The version for `hello`."),
    ("SUBPROTOCOL", ids.SUBPROTOCOL, "What is offered as the WebSocket's subprotocol."),
    ("ACK_COST", ACK_COST, "What the server counts an `ack` as; everything else is one frame."),
    ("KEPT_BACK", KEPT_BACK, "Share of the burst that is kept for what does not ask for room, such as an interrupt, and for frames\n * that a network holds up and then brings together."),
    ("ROUNDING", ROUNDING, "So that there is room at `roomAt`, whatever a clock makes of it."),
    ("MOST_UNDER_WAY", MOST_UNDER_WAY, "Commands that wait for replies; enough for 100 a second over half a second of network."),
    ("USUAL_WAIT_SECONDS", USUAL_WAIT_SECONDS, "For a refusal that names no wait."),
    ("MOST_MISSES", MOST_MISSES, "How often a hole is asked for before the connection is given up."),
    ("SILENT_HEARTBEATS", SILENT_HEARTBEATS, "A server may miss one heartbeat on a busy machine, hardly two."),
    ("LATE_SECONDS", LATE_SECONDS, "A timer this late says that this side slept, not that the server is silent."),
    ("BACKOFF_SECONDS", [backoff.BASE_SECONDS, backoff.CAP_SECONDS], "The first and the largest window of the back-off."),
    ("STABLE_SECONDS", backoff.STABLE_SECONDS, "How long a connection must have held for the back-off to start over."),
    ("FATAL_CLOSES", sorted(codes.FATAL), "Close codes after which reconnecting would fail alike."),
    ("ENDING_CLOSES", [codes.ENDING[0], codes.ENDING[-1]], "The range of others like that, first and last."),
    ("PROMPT_CLOSES", [codes.PROMPT[0], codes.PROMPT[-1]], "The range of those after which the server asks to reconnect at once."),
    ("CLOSE_ERRORS", {int(code): error for code, error in codes.CLOSE_ERRORS.items()}, "The error codes that close codes stand for."),
)  # fmt: skip


def constants() -> str:
    """Returns the text of the module."""
    rows = (
        f"/** {doc} */\nexport const {name} = {_javascript(value)};\n"
        for name, value, doc in _VALUES
    )
    return "\n".join([_HEAD, *rows])


def _javascript(value: object) -> str:
    text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    return text.replace(",", ", ").replace(":", ": ")
