"""The truthful interrupt: which turn is meant, what of its text stays.

A race is an outcome, never an error: the turn may have ended, may wait in the
queue, or may belong to a send that has not arrived yet.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import UNSET, Struct, UnsetType

from protocol.commands import Interrupt, Keep
from protocol.control import Reply
from protocol.events import CutEvent, MessageEvent, Reason, StartEvent
from wsserver.auth.principal import Principal
from wsserver.engine.conversation import ConversationState, Waiting
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.entry import Entry
from wsserver.turns.applied import Applied
from wsserver.turns.kept_text import cut_through, keep_through, last_text, proof
from wsserver.turns.pre_cancelled import PreCancelled
from wsserver.turns.running import RunningTurn
from wsserver.turns.viewer import Viewer

_message = msgspec.json.Decoder(MessageEvent).decode
_start = msgspec.json.Decoder(StartEvent).decode


class Stopped(Struct, frozen=True, kw_only=True):
    """How a turn was stopped.

    Attributes:
        keep_through: The last number whose text stays.
        flush_through: What the connection has to be sent before it hears of it,
            because it has not had all that stays; 0 for nothing.
    """

    keep_through: int
    flush_through: int


class Interruptible(Protocol):
    """What an interrupt needs of its conversation."""

    log: ConversationLog
    state: ConversationState

    @property
    def turn(self) -> RunningTurn | None:
        """The turn that runs."""
        ...

    def has_sent(self, by: str, send: str) -> bool:
        """Whether a principal's send is known to have arrived."""
        ...


def first_needed(target: Interruptible, command: Interrupt, by: str) -> int | None:
    """Returns from which number on an interrupt needs the log; None if memory does.

    Turns before the last two are only in the store.
    """
    log, send = target.log, command.send
    if send is not None:
        running = target.turn
        arrived = target.has_sent(by, send) and not (
            (running is not None and running.answers(by, send))
            or _waiting(target.state, by, send)
        )
        return 1 if arrived and not _turn_of(log.tail(1), by, send) else None
    turn = command.turn or target.state.last_turn
    if not turn or turn > target.state.last_turn or log.remembers(turn):
        return None
    return turn


def interrupt(
    target: Interruptible,
    command: Interrupt,
    principal: Principal,
    viewer: Viewer | None,
    pre_cancelled: PreCancelled,
    older: Sequence[Entry] = (),
) -> Applied:
    """Applies an interrupt.

    Args:
        target: The conversation.
        command: The interrupt.
        principal: Who wants it.
        viewer: The connection that it came from, if it has the conversation open.
        pre_cancelled: Sends that were taken back before they arrived.
        older: The log from the number on that `first_needed` names, where it does.
    """
    running = target.turn
    turn = command.turn
    if command.send is not None:
        by = principal.name
        if running is not None and running.answers(by, command.send):
            turn = running.turn
        else:
            turn = _turn_of(older or target.log.tail(1), by, command.send)
            if not turn:
                outcome = _withdraw(target, command.send, by, pre_cancelled)
                reply = Reply(re=command.id, ok=True, outcome=outcome)
                return Applied(reply=reply)
    if running is None or turn not in (None, running.turn):
        return _too_late(target, turn, command, principal, viewer, older)
    stopped = stop_turn(
        target.log,
        running,
        reason="by_client",
        by=principal.name,
        keep=command.keep,
        seen_seq=command.seen_seq,
        viewer=viewer,
    )
    reply = Reply(
        re=command.id,
        ok=True,
        outcome="interrupted" if running.interrupted else "already_finished",
        turn=running.turn,
        keep_through=stopped.keep_through,
    )
    return Applied(reply=reply, flush_through=stopped.flush_through)


def stop_turn(
    log: ConversationLog,
    running: RunningTurn,
    *,
    reason: Reason,
    by: str,
    keep: Keep | None,
    seen_seq: int | None,
    viewer: Viewer | None,
) -> Stopped:
    """Stops the running turn, or finds it stopped: the first cut of a turn counts.

    A connection that does not have the conversation open was sent nothing; it
    can't speak for what was seen, so all that was generated stays.
    """
    if running.keep_through is None:
        turn = running.turn
        sent = log.head if viewer is None else viewer.sent_through()
        through = keep_through(keep, seen_seq, turn=turn, sent=sent, head=log.head)
        running.stop(reason, by, (through, proof(log.tail(turn), turn, through)))
    through = running.keep_through
    if through is None:  # a defect of ours ends it in the place of that: nothing is cut
        through = log.head
    flush_through = 0
    if viewer is not None:
        if keep == "generated" or through > viewer.sent_through():
            # No more text comes, so muting what lies beyond would gain nothing.
            flush_through = max(through, last_text(log.tail(running.turn)))
        else:
            viewer.mute(running.turn)
    return Stopped(keep_through=through, flush_through=flush_through)


def _withdraw(
    target: Interruptible, send: str, by: str, pre_cancelled: PreCancelled
) -> str:
    waiting = _waiting(target.state, by, send)
    if waiting is not None:
        waiting.withdrawn = "by_client"
        target.log.touch()
        return "dequeued"
    if target.has_sent(by, send):
        return "already_finished"
    pre_cancelled.add(target.log.key, by, send)
    return "pre_cancelled"


def _waiting(state: ConversationState, by: str, send: str) -> Waiting | None:
    """Returns the message that a send became, if it waits for its turn."""
    found = [each for each in state.queue if (each.by, each.id) == (by, send)]
    return found[0] if found else None


def _turn_of(entries: Sequence[Entry], by: str, send: str) -> int:
    """Returns the turn that answered a send, if the entries hold it; else 0."""
    message = 0
    for entry in entries:
        if entry.kind == "message":
            sent = _message(entry.body)
            message = sent.seq if (sent.by, sent.id) == (by, send) else message
        elif entry.kind == "start" and message:
            start = _start(entry.body)
            if start.message == message:
                return start.turn
    return 0


def _too_late(
    target: Interruptible,
    turn: int | None,
    command: Interrupt,
    principal: Principal,
    viewer: Viewer | None,
    older: Sequence[Entry],
) -> Applied:
    """The turn is over: its status stays, but its text may still be cut."""
    log = target.log
    turn = turn or target.state.last_turn
    entries = [entry for entry in older or log.tail(turn) if entry.turn == turn]
    if not entries or entries[0].kind != "start":
        reply = Reply(re=command.id, ok=True, outcome="not_found")
        return Applied(reply=reply)
    kept: int | UnsetType = UNSET
    if command.seen_seq is not None and command.keep in (None, "seen"):
        sent = log.head if viewer is None else viewer.sent_through()
        seen = command.seen_seq
        kept = keep_through("seen", seen, turn=turn, sent=sent, head=log.head)
        before = cut_through(entries, turn)
        if before is not None:
            kept = min(kept, before)
        text = proof(entries, turn, kept)
        log.append(CutEvent, turn=turn, keep_through=kept, by=principal.name, text=text)
        if viewer is not None and last_text(entries) > sent:
            viewer.mute(turn)
    reply = Reply(
        re=command.id,
        ok=True,
        outcome="already_finished",
        turn=turn,
        keep_through=kept,
    )
    return Applied(reply=reply)
