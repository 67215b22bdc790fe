"""What must be true of every client at the end of a session."""

from collections import Counter
from functools import partial

from protocol.commands import Command, Interrupt, Send, ToolResult
from protocol.control import Reply
from protocol.events import MessageEvent, ToolCallEvent, ToolResultEvent, first_seq
from protocol.view import TurnView
from tests.simulation.app import App
from tests.simulation.log_oracle import Log, Report


def check_view(app: App, log: Log, report: Report) -> None:
    """Checks what a client shows of a conversation, to the byte."""
    wrong = partial(_say, f"{app.name} of {log.name}", report)
    view = app.views[log.name]
    taken = app.taken[log.name]
    if app.last(log.name) != log.head:
        wrong(f"has {view.last} of {log.head}")
        return
    last = first_seq(taken[0]) - 1 if taken else log.head
    if not log.life.begins(last + 1):
        wrong(f"begins inside of a turn: {last + 1}")
    whole = log.whole(app.with_tool_deltas[log.name], last)
    for event in taken:
        if first_seq(event) != last + 1:
            wrong(f"was told {event} after {last}")
        last = event.seq
    if len(view.timeline) != len(whole.timeline) or view.config != whole.config:
        wrong("shows other messages and turns")
        return
    unsure = _stopped_unstored(app, log.name)
    for mine, theirs in zip(view.timeline, whole.timeline, strict=True):
        if isinstance(mine, TurnView) and isinstance(theirs, TurnView):
            # A crash took its cut back, and nothing says so to who was sent no text.
            if unsure and mine.proven is None and theirs.text.startswith(mine.text):
                continue
            _check_shown(mine, theirs, wrong)
        elif mine != theirs:
            wrong(f"shows {mine}, not {theirs}")


def _stopped_unstored(app: App, name: str) -> bool:
    """Says whether a client was told of a stop that a crash could take back."""
    return any(
        reply.stored is False
        for command in app.given
        if isinstance(command, Interrupt) and command.conversation == name
        for reply in app.replies.get(command.id, ())
    )


def _say(who: str, report: Report, what: str) -> None:
    report(f"{who} {what}")


def _check_shown(mine: TurnView, theirs: TurnView, wrong: Report) -> None:
    if mine.text != theirs.text or mine.proven is not True:
        wrong(f"turn {mine.turn} shows {mine.text!r}, not {theirs.text!r}")
    elif theirs.reason in ("by_client", "superseded") or theirs.cut is not None:
        # Who has stopped or cut it is not sent the rest of its thinking.
        if _ending(mine) != _ending(theirs):
            wrong(f"shows {mine}, not {theirs}")
    elif mine != theirs:
        wrong(f"shows {mine}, not {theirs}")


def _ending(view: TurnView) -> tuple[object, ...]:
    return view.status, view.reason, view.usage, view.cut, view.timing


def check_commands(
    apps: list[App],
    logs: list[Log],
    heard: Counter[str],
    forgotten: set[str],
    report: Report,
) -> None:
    """Checks that every command has one reply and its effect once.

    `heard` says how often which one came in; the refusal of one that came twice
    may follow a reply that was lost. `forgotten` are conversations of which a store that
    forgets may not have had all.
    """
    messages = _messages(apps, logs, report)
    for app in apps:
        for command in app.given:
            replies = app.replies.get(command.id, [])
            if len(replies) != 1:
                report(f"{len(replies)} replies to {command}: {replies}")
                continue
            counts = [0]
            if isinstance(command, Send):
                counts = [f[command.id] for f in messages.get(command.conversation, ())]
            if command.conversation in forgotten:
                continue
            fits = _fits if len(counts) == 1 else _may_fit
            if not fits(command, replies[0], sum(counts), heard[command.id]):
                report(f"{command} was told {replies[0]} and is {counts} times there")


def _messages(
    apps: list[App], logs: list[Log], report: Report
) -> dict[str, list[Counter[str]]]:
    """Returns how often messages were sent into each life, by the conversation."""
    messages: dict[str, list[Counter[str]]] = {}
    for log in logs:
        own = log.events[max(0, log.base + 1 - log.first) :]
        found = Counter(e.id for e in own if isinstance(e, MessageEvent))
        messages.setdefault(log.name, []).append(found)
    given = {command.id for app in apps for command in app.given}
    for name, lives in messages.items():
        for found in lives:
            if not set(found) <= given:
                report(f"{name} has messages that nobody sent: {set(found) - given}")
            if found and max(found.values()) > 1:
                report(f"{name} has messages twice: {found}")
    return messages


def _fits(command: Command, reply: Reply, count: int, heard: int) -> bool:
    """Says whether a command had the effect that its reply tells."""
    if not isinstance(command, Send):
        return True
    return count == 1 if reply.ok else count == 0 or (count == 1 and heard > 1)


def _may_fit(command: Command, reply: Reply, count: int, heard: int) -> bool:
    """The same where a conversation was deleted: it may have come in before and after."""
    if not isinstance(command, Send):
        return True
    return count > 0 or not reply.ok


def check_tools(apps: list[App], report: Report) -> None:
    """Checks that no tool ran twice, but where it was handed over."""
    for app in apps:
        for key, times in app.runs.items():
            if times != 1:
                report(f"{app.name} ran {key} {times} times")
    asked: dict[tuple[str, str, str], list[bool]] = {}
    for app in apps:
        for epoch, request in app.requests:
            key = (request.conversation, epoch, request.call)
            asked.setdefault(key, []).append(request.redelivered)
    for key, again in asked.items():
        if again.count(False) > 1:
            report(f"{key} was asked of several clients, without a word: {again}")


def tally(apps: list[App], logs: list[Log]) -> Counter[str]:
    """Counts what happened with tools."""
    counts: Counter[str] = Counter()
    for log in logs:
        calls = [e for e in log.events if isinstance(e, ToolCallEvent)]
        counts["tool turns"] += len({call.turn for call in calls})
        counts["calls"] += len(calls)
        for event in log.events:
            if isinstance(event, ToolResultEvent):
                counts[f"settled {event.status}"] += 1
    for app in apps:
        counts["runs"] += app.runs.total()
        for _, request in app.requests:
            counts["handed over or asked again"] += request.redelivered
        for command in app.given:
            if isinstance(command, ToolResult):
                for reply in app.replies.get(command.id, []):
                    counts[f"result {reply.outcome}"] += 1
    return counts
