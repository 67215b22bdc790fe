"""The truthful interrupt: which turn is meant, what of its text stays.

A race is an outcome, never an error: the turn may have ended, may wait in the
queue, or may belong to a send that has not arrived yet.
"""

from typing import Protocol

from msgspec import UNSET, UnsetType

from protocol.commands import Interrupt, Keep
from protocol.control import Reply
from protocol.events import CutEvent, Reason
from wsserver.auth.principal import Principal
from wsserver.engine.conversation import ConversationState
from wsserver.log.conversation_log import ConversationLog
from wsserver.turns.applied import Applied
from wsserver.turns.kept_text import cut_through, keep_through, proof
from wsserver.turns.pre_cancelled import PreCancelled
from wsserver.turns.running import RunningTurn
from wsserver.turns.viewer import Viewer


class Target(Protocol):
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


def interrupt(
    target: Target,
    command: Interrupt,
    principal: Principal,
    viewer: Viewer | None,
    pre_cancelled: PreCancelled,
) -> Applied:
    """Applies an interrupt."""
    running = target.turn
    turn = command.turn
    if command.send is not None:
        if running is None or running.message.id != command.send:
            outcome = _withdraw(target, command.send, principal.name, pre_cancelled)
            reply = Reply(re=command.id, ok=True, outcome=outcome)
            return Applied(reply=reply)
        turn = running.turn
    if running is None or turn not in (None, running.turn):
        return _too_late(target, command, principal, viewer)
    through = stop_turn(
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
        keep_through=through,
    )
    return Applied(
        reply=reply,
        flush_through=through if command.keep == "generated" else 0,
    )


def stop_turn(
    log: ConversationLog,
    running: RunningTurn,
    *,
    reason: Reason,
    by: str,
    keep: Keep | None,
    seen_seq: int | None,
    viewer: Viewer | None,
) -> int:
    """Stops the running turn; returns the last number whose text stays.

    A connection that does not have the conversation open was sent nothing; it
    can't speak for what was seen, so all that was generated stays.
    """
    if running.keep_through is None:
        turn = running.turn
        sent = log.head if viewer is None else viewer.sent_through()
        through = keep_through(keep, seen_seq, turn=turn, sent=sent, head=log.head)
        running.stop(reason, by, (through, proof(log.tail(turn), turn, through)))
    if viewer is not None and keep != "generated":
        viewer.mute(running.turn)
    assert running.keep_through is not None, "the first cut of a turn counts"
    return running.keep_through


def _withdraw(target: Target, send: str, by: str, pre_cancelled: PreCancelled) -> str:
    for waiting in target.state.queue:
        if waiting.id == send:
            waiting.withdrawn = "by_client"
            target.log.touch()
            return "dequeued"
    if target.has_sent(by, send):
        return "already_finished"
    pre_cancelled.add(target.log.key, by, send)
    return "pre_cancelled"


def _too_late(
    target: Target, command: Interrupt, principal: Principal, viewer: Viewer | None
) -> Applied:
    """The turn is over: its status stays, but its text may still be cut.

    Turns before the last two are no longer in memory; theirs is not cut.
    """
    log = target.log
    turn = command.turn or target.state.last_turn
    entries = log.tail(turn)
    known = bool(entries) and entries[0].first == turn
    if not 0 < turn <= target.state.last_turn or (known and entries[0].kind != "start"):
        reply = Reply(re=command.id, ok=True, outcome="not_found")
        return Applied(reply=reply)
    kept: int | UnsetType = UNSET
    if known and command.seen_seq is not None and command.keep in (None, "seen"):
        sent = log.head if viewer is None else viewer.sent_through()
        seen = command.seen_seq
        kept = keep_through("seen", seen, turn=turn, sent=sent, head=log.head)
        before = cut_through(entries, turn)
        if before is not None:
            kept = min(kept, before)
        text = proof(entries, turn, kept)
        log.append(CutEvent, turn=turn, keep_through=kept, by=principal.name, text=text)
    reply = Reply(
        re=command.id,
        ok=True,
        outcome="already_finished",
        turn=turn,
        keep_through=kept,
    )
    return Applied(reply=reply)
