"""What must be true of every fork: the source's log up to the end of a turn."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from protocol.commands import Command, Fork, Send
from protocol.content import Config
from protocol.control import Reply
from protocol.events import (
    ConfigEvent,
    CutEvent,
    DoneEvent,
    LogEvent,
    MessageEvent,
    StartEvent,
)
from tests.simulation.host import SPACE
from tests.simulation.lives import Asked, Life, Lives
from tests.simulation.log_oracle import Log

CHOSEN = "conv_"
"""What the names begin with that the server chooses."""


class Fault(Exception):  # noqa: N818 - what is wrong with a fork
    """A life is no fork of another."""


def find_branches(
    lives: Lives,
    given: Sequence[Command],
    replies: Mapping[str, list[Reply]],
    report: Callable[[str], None],
) -> dict[Life, int]:
    """Returns of each fork up to which number it was copied.

    Reports forks that were made and are none, and those that were refused for no
    reason.
    """
    found: dict[Life, int] = {}
    logs: dict[Life, Log] = {}
    sent = {each.id: each.conversation for each in given if isinstance(each, Send)}

    def read(life: Life) -> Log:
        return logs.setdefault(life, Log(life))

    for fork in given:
        if not isinstance(fork, Fork) or fork.id not in lives.asked:
            continue
        reply, faults = replies[fork.id][0], list[str]()
        name = reply.conversation or fork.new
        made = [
            life for life in lives.all() if _may_be(life, name, lives.asked[fork.id])
        ]
        for life in made:
            base = _copied(read(life), fork, lives, read, sent, faults)
            if base is not None:
                found[life] = max(base, found.get(life, 0))
        if reply.ok and not found.keys() & set(made) and name not in lives.deletes:
            report(f"{fork} has made no fork: {faults}")
        if reply.error is not None and reply.error.param == "$.through":
            _check_refused(fork, lives, read, report)
    return found


def _may_be(life: Life, name: str | None, asked: Asked) -> bool:
    chosen = name is None and life.name.startswith(CHOSEN)
    return life.born_at >= asked.at and (chosen or life.name == name)


def _copied(
    fork: Log,
    command: Fork,
    lives: Lives,
    read: Callable[[Life], Log],
    sent: Mapping[str, str],
    faults: list[str],
) -> int | None:
    """Returns up to which number a log is a copy that a command made; else None."""
    for source in lives.of(f"{SPACE}/{command.conversation}"):
        if source is fork.life:
            continue
        try:
            return _branch(read(source), fork, command, lives, sent)
        except Fault as fault:
            faults.append(str(fault))
    return None


def end_of_turn(events: Sequence[LogEvent], through: int) -> int | None:
    """Returns where the turn ends that a number lies in; None if it does not."""
    for event in events:
        if isinstance(event, DoneEvent) and event.turn <= through <= event.seq:
            return event.seq
    if through > (events[-1].seq if events else 0):
        return None
    starts = [e.seq for e in events if isinstance(e, StartEvent) and e.seq <= through]
    ends = [e.seq for e in events if isinstance(e, DoneEvent) and e.seq < through]
    return None if len(starts) > len(ends) else through


def _branch(
    source: Log, fork: Log, command: Fork, lives: Lives, sent: Mapping[str, str]
) -> int:
    """Returns up to which number a log was copied from another.

    Raises:
        Fault: It was not.
    """
    end = end_of_turn(source.events, command.through)
    if end is None and source.life.ended_at is not None:
        # It was deleted before it was stored, and the copy is.
        end = end_of_turn(fork.events, command.through)
    if end is None:
        raise Fault(f"{command.through} is in no turn that has ended")
    copied = [event for event in fork.events if event.seq <= end]
    if end and (not source.life.begins(fork.first) or fork.first > end + 1):
        raise Fault(f"it begins with {fork.first}")
    if fork.head < end or (end and fork.first > command.through):
        raise Fault(f"it ends with {fork.head} and not with {end}")
    _check_copied(copied, source, fork, end, sent)
    rest = [event for event in fork.events if event.seq > end]
    known = lives.asked[command.id]
    rest = rest[_cuts(rest, source, end, known) :]
    if not any(isinstance(event, ConfigEvent) for event in copied):
        _check_config(rest, source, known)
    return end


def _check_copied(
    copied: Sequence[LogEvent],
    source: Log,
    fork: Log,
    end: int,
    sent: Mapping[str, str],
) -> None:
    before = source.events[fork.first - source.first :]
    for mine, theirs in zip(copied, before, strict=False):
        if not _same(mine, theirs, source, end):
            raise Fault(f"{mine} was {theirs}")
    for event in copied:
        late = isinstance(event, MessageEvent) and event.seq > source.head
        if late and sent[event.id] == fork.name:
            raise Fault(f"{event} was sent to it")


def _same(mine: LogEvent, theirs: LogEvent, source: Log, end: int) -> bool:
    theirs = replace(theirs, conversation=mine.conversation)
    if not isinstance(theirs, MessageEvent) or theirs.steers is None:
        return mine == theirs
    turns = [e for e in source.events if isinstance(e, StartEvent)]
    later = any(each.message == theirs.seq and each.seq > end for each in turns)
    apart = replace(theirs, steers=None)
    if later:
        return mine == apart
    # What was deleted before its turn came may have waited when it was forked.
    return mine == theirs or (source.life.ended_at is not None and mine == apart)


def _cuts(
    rest: Sequence[LogEvent],
    source: Log,
    end: int,
    known: Asked,
) -> int:
    """Returns how many cuts came along that were made after the end."""
    cuts = [
        event
        for event in source.events
        if isinstance(event, CutEvent) and event.seq > end >= event.turn
    ]
    same = known.life is source.life
    least = sum(cut.seq <= known.head for cut in cuts) if same else 0
    taken = 0
    for cut, event in zip(cuts, rest, strict=False):
        same = replace(cut, conversation=event.conversation, seq=event.seq)
        if event != same:
            break
        taken += 1
    if taken < least:
        raise Fault(f"{least} cuts were known and {taken} came along")
    return taken


def _check_config(rest: Sequence[LogEvent], source: Log, known: Asked) -> None:
    """Where nothing tells the settings of the place, they are the present ones."""
    told = [event for event in source.events if isinstance(event, ConfigEvent)]
    since = known.head if known.life is source.life else 0
    present = [a.config for a, b in pairwise(told) if b.seq > since]
    present += [event.config for event in told[-1:]] or [Config()]
    if not since or not told or told[0].seq > since:
        present.append(Config())
    mine = rest[0].config if rest and isinstance(rest[0], ConfigEvent) else Config()
    # Without any there is no event: what comes first may be set in the fork.
    if mine not in present and Config() not in present:
        raise Fault(f"its settings are {mine} and not among {present}")


def _check_refused(
    fork: Fork,
    lives: Lives,
    read: Callable[[Life], Log],
    report: Callable[[str], None],
) -> None:
    life, head = lives.asked[fork.id].life, lives.asked[fork.id].head
    if life is None or lives.of(life.key) != [life]:
        return
    log = read(life)
    end = end_of_turn(log.events, fork.through)
    known = end is not None and max(end, fork.through) <= head
    if known and (not fork.through or life.oldest <= fork.through):
        report(f"{fork} was refused, though {life.key} was stored up to {head}")
