"""A fork: the log of another conversation, copied up to the end of a turn."""

from collections.abc import Sequence

import msgspec

from protocol.content import Config
from protocol.events import ConfigEvent, CutEvent, LogEvent, MessageEvent, StartEvent
from wsserver.engine.conversation import ConversationState
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.entry import TEXT_KINDS, Entry

_event = msgspec.json.Decoder(LogEvent).decode
_encode = msgspec.json.Encoder().encode


def end_of_turn(entries: Sequence[Entry], through: int) -> int | None:
    """Returns the number where the turn that `through` lies in has ended.

    A number between turns is its own end. None when the turn has not ended, or the
    log does not reach so far.
    """
    if through > (entries[-1].seq if entries else 0):
        return None
    turn = 0
    for entry in entries:
        if entry.first > through:
            if not turn:
                return through
            if entry.kind == "done" and entry.turn == turn:
                return entry.seq
        elif entry.kind == "start":
            turn = entry.turn
        elif entry.kind == "done":
            turn = 0
    return None if turn else through


def copy(
    entries: Sequence[Entry], through: int, conversation: str
) -> tuple[list[Entry], ConversationState]:
    """Returns the entries up to `through` as those of another conversation.

    Numbers stay as they are; no entry may stand for numbers on both sides.
    """
    copied: list[Entry] = []
    state = ConversationState()
    for entry in entries:
        if entry.first > through:
            break
        if entry.kind in TEXT_KINDS:
            copied.append(entry)
            continue
        event = msgspec.structs.replace(_event(entry.body), conversation=conversation)
        copied.append(msgspec.structs.replace(entry, body=_encode(event)))
        match event:
            case ConfigEvent():
                state.config = event.config
            case MessageEvent():
                state.sent(event.by, event.id)
            case StartEvent():
                state.last_turn = event.turn
            case _:
                pass
    return copied, state


def later_cuts(entries: Sequence[Entry], through: int) -> list[CutEvent]:
    """Returns the cuts after number `through` of turns that began before it."""
    cuts: list[CutEvent] = []
    for entry in entries:
        if entry.kind == "cut" and entry.seq > through >= entry.turn:
            event = _event(entry.body)
            assert isinstance(event, CutEvent), "an entry is what its kind says"
            cuts.append(event)
    return cuts


def fill(
    log: ConversationLog,
    state: ConversationState,
    copied: Sequence[Entry],
    cuts: Sequence[CutEvent],
    *,
    config: Config,
) -> None:
    """Fills a new log.

    Args:
        log: It is empty.
        state: What `copy` returned.
        copied: What `copy` returned.
        cuts: What `later_cuts` returned.
        config: The source's settings, where the copied part has none.
    """
    log.adopt(copied)
    log.keep_from(state.last_turn or log.head + 1)
    for cut in cuts:
        members = {"keep_through": cut.keep_through, "text": cut.text}
        log.append(CutEvent, turn=cut.turn, by=cut.by, **members)
    if state.config == Config() != config:
        state.config = config
        log.append(ConfigEvent, config=config)
    log.touch()
