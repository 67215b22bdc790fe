"""A fork: the log of another conversation, copied up to the end of a turn."""

from collections.abc import Collection, Sequence

import msgspec
from msgspec import Struct

from protocol.content import Config
from protocol.events import ConfigEvent, CutEvent, LogEvent, MessageEvent, StartEvent
from wsserver.engine.conversation import ConversationState
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.entry import TEXT_KINDS, Entry
from wsserver.turns.errors import refusal

_event = msgspec.json.Decoder(LogEvent).decode
_encode = msgspec.json.Encoder().encode


class Branch(Struct, frozen=True, kw_only=True):
    """What a fork takes along.

    Attributes:
        entries: Up to the end of a turn, as those of the new conversation.
        state: The snapshot that goes with them.
        cuts: What was cut of them later.
    """

    entries: list[Entry]
    state: ConversationState
    cuts: list[CutEvent]


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
    entries: Sequence[Entry], through: int, conversation: str, apart: Collection[int]
) -> tuple[list[Entry], ConversationState]:
    """Returns the entries up to `through` as those of another conversation.

    Numbers stay as they are; no entry may stand for numbers on both sides. `apart` are
    messages that have joined no turn: in the copy they don't want to, for there is
    nothing there any more that would tell.
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
        if isinstance(event, MessageEvent) and event.seq in apart:
            event = msgspec.structs.replace(event, steers=None)
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


def answered_later(entries: Sequence[Entry], through: int) -> set[int]:
    """Returns the messages that were given turns after number `through`."""
    starts = [
        _event(entry.body)
        for entry in entries
        if entry.kind == "start" and entry.seq > through
    ]
    return {start.message for start in starts if isinstance(start, StartEvent)}


def later_cuts(entries: Sequence[Entry], through: int) -> list[CutEvent]:
    """Returns the cuts after number `through` of turns that began before it."""
    cuts: list[CutEvent] = []
    for entry in entries:
        if entry.kind == "cut" and entry.seq > through >= entry.turn:
            event = _event(entry.body)
            assert isinstance(event, CutEvent), "an entry is what its kind says"
            cuts.append(event)
    return cuts


def branch_off(
    log: ConversationLog,
    entries: Sequence[Entry],
    waiting: Collection[int],
    through: int,
    conversation: str,
) -> Branch:
    """Works out what a fork takes along.

    Args:
        log: The source's.
        entries: All of them.
        waiting: The source's messages that have not had a turn.
        through: A number in the last turn that goes along.
        conversation: The fork's name.

    Raises:
        CommandError: The number is not kept, or its turn has not ended.
    """
    if 0 < through < log.oldest:
        raise refusal(
            "bad_frame",
            f"{through} is not kept any more; the log begins with {log.oldest}.",
            param="$.through",
        )
    end = end_of_turn(entries, through)
    if end is None:
        raise refusal(
            "bad_frame",
            f"{through} is not in a turn that has ended; the log's last number is"
            f" {log.head}.",
            param="$.through",
        )
    apart = {*waiting, *answered_later(entries, end)}
    copied, state = copy(entries, end, conversation, apart)
    return Branch(entries=copied, state=state, cuts=later_cuts(entries, end))


def fill(log: ConversationLog, branch: Branch, *, config: Config) -> None:
    """Fills a new log.

    Args:
        log: It is empty.
        branch: What goes into it.
        config: The source's settings, where the branch does not tell any.
    """
    state = branch.state
    log.adopt(branch.entries)
    log.keep_from(state.last_turn or log.head + 1)
    for cut in branch.cuts:
        members = {"keep_through": cut.keep_through, "text": cut.text}
        log.append(CutEvent, turn=cut.turn, by=cut.by, **members)
    told = any(entry.kind == "config" for entry in branch.entries)
    if not told and config != Config():
        state.config = config
        log.append(ConfigEvent, config=config)
    log.touch()
