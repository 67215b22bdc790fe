"""What must be true of every client at the end of a session."""

from collections import Counter
from functools import partial

from protocol.commands import Command, Open, Send, ToolResult
from protocol.control import Reply
from protocol.events import MessageEvent, ToolCallEvent, ToolResultEvent, first_seq
from protocol.view import TurnView
from tests.simulation.app import App
from tests.simulation.log_oracle import Log, Report


def check_view(app: App, log: Log, report: Report) -> None:
    """Checks what a client shows of a conversation, to the byte."""
    wrong = partial(_say, f"{app.name} of {log.name}", report)
    view = app.views[log.name]
    last = app.begins[log.name]
    whole = log.whole(app.with_tool_deltas[log.name], last)
    if view.last != len(log.events):
        wrong(f"has {view.last} of {len(log.events)}")
        return
    for event in app.taken[log.name]:
        if first_seq(event) != last + 1:
            wrong(f"was told {event} after {last}")
        last = event.seq
    if len(view.timeline) != len(whole.timeline) or view.config != whole.config:
        wrong("shows other messages and turns")
        return
    for mine, theirs in zip(view.timeline, whole.timeline, strict=True):
        if isinstance(mine, TurnView) and isinstance(theirs, TurnView):
            _check_shown(mine, theirs, wrong)
        elif mine != theirs:
            wrong(f"shows {mine}, not {theirs}")


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
    apps: list[App], logs: dict[str, Log], heard: Counter[str], report: Report
) -> None:
    """Checks that every command has one reply and its effect once.

    `heard` says how often which one came in; the refusal of one that came twice
    may follow a reply that was lost.
    """
    messages = {
        name: Counter(e.id for e in log.events if isinstance(e, MessageEvent))
        for name, log in logs.items()
    }
    given = {command.id for app in apps for command in app.given}
    for name, found in messages.items():
        if not set(found) <= given:
            report(f"{name} has messages that nobody sent: {set(found) - given}")
    for app in apps:
        for command in app.given:
            replies = app.replies.get(command.id, [])
            if len(replies) != 1:
                report(f"{len(replies)} replies to {command}: {replies}")
                continue
            count = 0
            if isinstance(command, Send) and command.conversation in logs:
                count = messages[command.conversation][command.id]
            if not _fits(command, replies[0], count, heard[command.id], logs):
                report(f"{command} was told {replies[0]} and is {count} times there")


def _fits(
    command: Command, reply: Reply, count: int, heard: int, logs: dict[str, Log]
) -> bool:
    """Says whether a command had the effect that its reply tells."""
    if isinstance(command, Open):
        return not reply.ok or command.conversation in logs
    if not isinstance(command, Send):
        return True
    return count == 1 if reply.ok else count == 0 or (count == 1 and heard > 1)


def check_tools(apps: list[App], report: Report) -> None:
    """Checks that no tool ran twice, but where it was handed over."""
    for app in apps:
        for key, times in app.runs.items():
            if times != 1:
                report(f"{app.name} ran {key} {times} times")
    asked: dict[tuple[str, str], list[bool]] = {}
    for app in apps:
        for request in app.requests:
            key = (request.conversation, request.call)
            asked.setdefault(key, []).append(request.redelivered)
    for key, again in asked.items():
        if again.count(False) > 1:
            report(f"{key} was asked of several clients, without a word: {again}")


def tally(apps: list[App], logs: dict[str, Log]) -> Counter[str]:
    """Counts what happened with tools."""
    counts: Counter[str] = Counter()
    for log in logs.values():
        calls = [e for e in log.events if isinstance(e, ToolCallEvent)]
        counts["tool turns"] += len({call.turn for call in calls})
        counts["calls"] += len(calls)
        for event in log.events:
            if isinstance(event, ToolResultEvent):
                counts[f"settled {event.status}"] += 1
    for app in apps:
        counts["runs"] += app.runs.total()
        for request in app.requests:
            counts["handed over or asked again"] += request.redelivered
        for command in app.given:
            if isinstance(command, ToolResult):
                for reply in app.replies.get(command.id, []):
                    counts[f"result {reply.outcome}"] += 1
    return counts
