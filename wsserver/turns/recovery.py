"""What a crash left open is ended: every `start` gets its one `done`."""

import msgspec

from protocol.events import (
    CutEvent,
    DoneEvent,
    StartEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
)
from wsserver.engine.conversation import ConversationState
from wsserver.engine.timing import Stopwatch
from wsserver.engine.usage import BYTES_PER_TOKEN
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.entry import TEXT_KINDS
from wsserver.turns.clock import Clock
from wsserver.turns.kept_text import proof

_result = msgspec.json.Decoder(ToolResultEvent).decode
_call = msgspec.json.Decoder(ToolCallEvent).decode
_cut = msgspec.json.Decoder(CutEvent).decode
_start = msgspec.json.Decoder(StartEvent).decode


def recover(log: ConversationLog, state: ConversationState, clock: Clock) -> str | None:
    """Ends the turn that was running when the process died.

    The log's tail has to hold the turn. Returns the model it called, None if no
    turn was running.
    """
    if not state.running:
        return None
    turn = state.running
    entries = [entry for entry in log.tail(turn) if entry.turn == turn]
    open_calls: list[str] = []
    cut: CutEvent | None = None
    counted = False
    model_calls = 1
    tokens = size = 0
    model = ""
    for entry in entries:
        match entry.kind:
            case "start":
                model = _start(entry.body).model
            case "tool_call":
                call = _call(entry.body)
                open_calls.append(call.call)
                model_calls = call.batch + 2
            case "tool_result":
                settled = _result(entry.body).call
                open_calls = [call for call in open_calls if call != settled]
            case "cut":
                cut = _cut(entry.body)
            case "usage":
                counted = True
            case kind if kind in TEXT_KINDS:
                tokens += entry.seq - entry.first + 1
                size += len(entry.body)
            case _:
                pass
    if open_calls:
        model_calls -= 1
    for call in open_calls:
        note = "The call was cancelled: the server was restarted."
        log.append(
            ToolResultEvent,
            turn=turn,
            call=call,
            status="cancelled",
            output=note,
            by="server",
        )
    if not counted:
        log.append(
            UsageEvent,
            turn=turn,
            input_tokens=0,
            output_tokens=max(tokens, -(-size // BYTES_PER_TOKEN)),
            estimated=True,
            model_calls=model_calls,
        )
    now = clock.now()
    through = log.head if cut is None else cut.keep_through
    log.append(
        DoneEvent,
        turn=turn,
        status="incomplete",
        reason="server_restarted",
        text=proof(entries, turn, through),
        timing=Stopwatch(accepted_at=now, started_at=now).timing(now, 0),
    )
    state.running = 0
    return model
