"""A fork: the log of another conversation, copied up to the end of a turn."""

from collections.abc import Sequence

import msgspec

from protocol.events import ConfigEvent, LogEvent, MessageEvent
from wsserver.engine.conversation import ConversationState
from wsserver.log.entry import TEXT_KINDS, Entry

_event = msgspec.json.Decoder(LogEvent).decode
_encode = msgspec.json.Encoder().encode


def end_of_turn(entries: Sequence[Entry], through: int) -> int:
    """Returns the number where the turn that `through` lies in has ended.

    That is its `done` or a later `cut` of it. A number between turns is its own
    end; 0 when the turn has not ended.
    """
    turn = 0
    for entry in entries:
        if entry.first > through:
            break
        if entry.turn and not (entry.kind == "cut" and entry.seq == through):
            turn = 0 if entry.kind == "done" and entry.seq < through else entry.turn
    if not turn:
        return through
    end = 0
    for entry in entries:
        if (
            entry.turn == turn
            and entry.kind in ("done", "cut")
            and (end or entry.kind == "done")
        ):
            end = entry.seq
    return max(end, through) if end else 0


def copy(
    entries: Sequence[Entry], through: int, conversation: str
) -> tuple[list[Entry], ConversationState]:
    """Returns the entries up to `through` as those of another conversation.

    Numbers stay as they are.
    """
    copied: list[Entry] = []
    state = ConversationState()
    for entry in entries:
        if entry.first > through:
            break
        if entry.kind in TEXT_KINDS:
            copied.append(entry.part(entry.first - 1, through))
            continue
        event = msgspec.structs.replace(_event(entry.body), conversation=conversation)
        copied.append(msgspec.structs.replace(entry, body=_encode(event)))
        match event:
            case ConfigEvent():
                state.config = event.config
            case MessageEvent():
                state.sent(event.id)
            case _ if entry.kind == "start":
                state.last_turn = entry.seq
            case _:
                pass
    return copied, state
