"""Faults in what changes conversations are seen too: forks, deletions, settings, trims.

As in `test_planted_faults`; only the sessions that have such steps are played.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from protocol.content import Config
from tests.simulation.plan import CHANGING_EVERY
from tests.simulation.planting import Plant, check_seen
from tests.simulation.test_sessions import SESSIONS
from wsserver.connections import views
from wsserver.connections.verdict import Verdict
from wsserver.connections.views import Views
from wsserver.engine.conversation import ConversationState, Waiting
from wsserver.log.committer import Committer
from wsserver.log.conversation_log import ConversationLog
from wsserver.turns import conversation, directory, forking, loading
from wsserver.turns.conversation import Conversation
from wsserver.turns.loading import Loader
from wsserver.turns.receipts import Receipts
from wsserver.turns.retention import Retention
from wsserver.turns.running import RunningTurn
from wsserver.turns.schedule import Schedule


def forks_inside_of_a_turn(patch: pytest.MonkeyPatch) -> None:
    """The copy ends where the client said, and not with the turn."""
    real = forking.end_of_turn

    def end_of_turn(entries: Any, through: int) -> int | None:
        end = real(entries, through)
        return end if end is None else through

    patch.setattr(forking, "end_of_turn", end_of_turn)


def forks_what_steered(patch: pytest.MonkeyPatch) -> None:
    """A message that waited still says in the fork that it steers."""
    real = forking.copy

    def copy(entries: Any, through: int, name: str, apart: Any) -> Any:
        return real(entries, through, name, ())

    patch.setattr(forking, "copy", copy)


def forks_without_settings(patch: pytest.MonkeyPatch) -> None:
    """Where the copy tells no settings, it has none."""
    real = directory.fill

    def fill(log: Any, branch: Any, *, config: Config) -> None:
        real(log, branch, config=Config())

    patch.setattr(directory, "fill", fill)


def deletes_and_goes_on(patch: pytest.MonkeyPatch) -> None:
    """The turn of a conversation that was deleted runs to its end."""

    def delete(found: Conversation) -> None:
        found.state.queue.clear()
        found.log.delete()

    patch.setattr(Conversation, "delete", delete)


def deletes_later(patch: pytest.MonkeyPatch) -> None:
    """It says that it is gone while the store still has it."""

    async def delete(committer: Committer, key: str) -> None:
        committer.discard(key)

    patch.setattr(Committer, "delete", delete)


def deletes_in_silence(patch: pytest.MonkeyPatch) -> None:
    """Others that have it open are not told."""

    def deleted(opened: Views, view: Any) -> None:
        opened.close(view.log.conversation)

    patch.setattr(Views, "_deleted", deleted)


def goes_on_with_an_epoch(patch: pytest.MonkeyPatch) -> None:
    """What is made anew has the epoch of what was deleted."""
    real = Loader.new

    def new(loader: Loader, key: str, state: ConversationState) -> Conversation:
        made = real(loader, key, state)
        made.log.epoch = f"of-{made.log.conversation}"
        return made

    patch.setattr(Loader, "new", new)


def configures_what_runs(patch: pytest.MonkeyPatch) -> None:
    """A running turn takes other settings at its next model call."""
    real = RunningTurn.request

    async def request(turn: RunningTurn) -> Any:
        turn.config = turn._state.config
        return await real(turn)

    patch.setattr(RunningTurn, "request", request)


def takes_no_setting_back(patch: pytest.MonkeyPatch) -> None:
    real = conversation.configured

    def configured(config: Config, change: Config) -> Config:
        after = real(config, change)
        return replace(after, instructions=after.instructions or config.instructions)

    patch.setattr(conversation, "configured", configured)


def trims_what_waits(patch: pytest.MonkeyPatch) -> None:
    """Retention takes a message that has not had its turn."""

    def trim(found: Conversation, through: int) -> None:
        if found.log.oldest <= through and not found.log.deleted:
            found.log.trim(through)

    patch.setattr(Conversation, "trim", trim)


def trims_one_turn_less(patch: pytest.MonkeyPatch) -> None:
    real = ConversationLog.trim

    def trim(log: ConversationLog, through: int) -> None:
        if through < log.head:
            real(log, through)

    patch.setattr(ConversationLog, "trim", trim)


def trims_too_much(patch: pytest.MonkeyPatch) -> None:
    """A limit of bytes counts for nothing."""
    real = Retention.trim_point

    async def trim_point(kept: Retention, *rest: Any) -> int:
        few = kept if kept.bytes is None else replace(kept, bytes=0)
        return await real(few, *rest)

    patch.setattr(Retention, "trim_point", trim_point)


def resumes_what_is_trimmed(patch: pytest.MonkeyPatch) -> None:
    """A cursor behind the oldest number goes on, and does not begin anew."""
    real = views.verdict

    def verdict(cursor: Any, **log: Any) -> Verdict:
        judged = real(cursor, **log)
        if judged.reason != "expired":
            return judged
        return Verdict(outcome="replay", after=judged.after)

    patch.setattr(views, "verdict", verdict)


def forgets_receipts_in_a_restart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loading, "Receipts", lambda kept=(): Receipts())


def lets_the_last_go_first(patch: pytest.MonkeyPatch) -> None:
    """What waited is answered in the wrong order."""

    def pop(state: ConversationState) -> Waiting | None:
        return state.queue.pop() if state.queue else None

    patch.setattr(ConversationState, "next", pop)


def begins_for_nobody(patch: pytest.MonkeyPatch) -> None:
    """A conversation is loaded, and what waits begins before somebody opens it."""
    real = Loader.load

    async def load(loader: Loader, *rest: Any) -> Conversation:
        loaded = await real(loader, *rest)
        schedule: Schedule = loaded._schedule
        schedule.start_next()
        return loaded

    patch.setattr(Loader, "load", load)


PLANTS: list[Plant] = [
    forks_inside_of_a_turn,
    forks_what_steered,
    forks_without_settings,
    deletes_and_goes_on,
    deletes_later,
    deletes_in_silence,
    goes_on_with_an_epoch,
    configures_what_runs,
    takes_no_setting_back,
    trims_what_waits,
    trims_one_turn_less,
    trims_too_much,
    resumes_what_is_trimmed,
    forgets_receipts_in_a_restart,
    lets_the_last_go_first,
    begins_for_nobody,
]


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.timeout(120)
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_it_is_seen(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    check_seen(plant, monkeypatch, range(0, SESSIONS, CHANGING_EVERY))
