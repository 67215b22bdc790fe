"""The truthful interrupt: which turn is meant, what of its text stays.

A race is an outcome, never an error: the turn may have ended, may wait in the
queue, or may belong to a send that has not arrived yet.
"""

from typing import Protocol

from protocol.commands import Interrupt, Keep
from protocol.control import Reply
from protocol.events import CutEvent, Reason
from wsserver.auth.principal import Principal
from wsserver.engine.conversation import ConversationState
from wsserver.log.conversation_log import ConversationLog
from wsserver.turns.applied import Applied
from wsserver.turns.clock import Clock
from wsserver.turns.kept_text import keep_through, proof
from wsserver.turns.running import RunningTurn
from wsserver.turns.viewer import Viewer

PRE_CANCEL_SECONDS = 60.0


class Target(Protocol):
    """What an interrupt needs of its conversation."""

    log: ConversationLog
    state: ConversationState
    turn: RunningTurn | None


class PreCancelled:
    """Sends that were taken back before they arrived."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[tuple[str, str], float] = {}

    def add(self, by: str, send: str) -> None:
        """Remembers a send for a while."""
        now = self._clock.now()
        self._until = {key: at for key, at in self._until.items() if at > now}
        self._until[by, send] = now + PRE_CANCEL_SECONDS

    def take(self, by: str, send: str) -> bool:
        """Says, once, whether the send was taken back."""
        return self._until.pop((by, send), 0.0) > self._clock.now()


def interrupt(
    target: Target,
    command: Interrupt,
    principal: Principal,
    viewer: Viewer | None,
    pre_cancelled: PreCancelled,
) -> Applied:
    """Applies an interrupt."""
    turn = command.turn
    running = target.turn
    if command.send is not None:
        if running is None or running.message.id != command.send:
            return _withdraw(target, command, command.send, principal, pre_cancelled)
        turn = running.turn
    if running is not None and turn in (None, running.turn):
        through = stop_turn(
            target,
            running,
            "by_client",
            principal.name,
            command.keep,
            command.seen_seq,
            viewer,
        )
        return Applied(
            reply=Reply(
                re=command.id,
                ok=True,
                outcome="interrupted",
                turn=running.turn,
                keep_through=through,
            ),
            through=target.log.head,
            flush_through=through if command.keep == "generated" else 0,
        )
    return _too_late(target, command, turn or target.state.last_turn, principal, viewer)


def stop_turn(
    target: Target,
    running: RunningTurn,
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
    log = target.log
    through = running.keep_through
    if through is None:
        sent = log.head if viewer is None else viewer.sent_through()
        through = keep_through(
            keep, seen_seq, turn=running.turn, sent=sent, head=log.head
        )
        kept = proof(log.tail(running.turn), running.turn, through)
        running.stop(reason, by, (through, kept))
    if viewer is not None and keep != "generated":
        viewer.mute(running.turn)
    return through


def _withdraw(
    target: Target,
    command: Interrupt,
    send: str,
    principal: Principal,
    pre_cancelled: PreCancelled,
) -> Applied:
    outcome = "pre_cancelled"
    for waiting in target.state.queue:
        if waiting.id == send and not waiting.withdrawn:
            waiting.withdrawn = "by_client"
            outcome = "dequeued"
            break
    else:
        if send in target.state.last_ids:
            outcome = "already_finished"
        else:
            pre_cancelled.add(principal.name, send)
    target.log.touch()
    reply = Reply(re=command.id, ok=True, outcome=outcome)
    return Applied(reply=reply, through=target.log.head)


def _too_late(
    target: Target,
    command: Interrupt,
    turn: int,
    principal: Principal,
    viewer: Viewer | None,
) -> Applied:
    """The turn is over: its status stays, but its text may still be cut.

    Turns before the last two are no longer in memory; theirs is not cut.
    """
    log = target.log
    through = log.head
    if turn == 0 or turn > log.head:
        reply = Reply(re=command.id, ok=True, outcome="not_found")
        return Applied(reply=reply, through=through)
    entries = log.tail(turn)
    known = bool(entries) and entries[0].first == turn
    if known and entries[0].kind != "start":
        reply = Reply(re=command.id, ok=True, outcome="not_found")
        return Applied(reply=reply, through=through)
    kept: int | None = None
    if known and command.seen_seq is not None and command.keep in (None, "seen"):
        sent = log.head if viewer is None else viewer.sent_through()
        kept = keep_through(
            "seen", command.seen_seq, turn=turn, sent=sent, head=log.head
        )
        text = proof(entries, turn, kept)
        log.append(CutEvent, turn=turn, keep_through=kept, by=principal.name, text=text)
    reply = Reply(re=command.id, ok=True, outcome="already_finished", turn=turn)
    if kept is not None:
        reply.keep_through = kept
    return Applied(reply=reply, through=log.head)
