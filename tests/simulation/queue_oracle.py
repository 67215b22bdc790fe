"""In which order messages must have had their turns, across restarts too."""

from collections.abc import Mapping, Sequence

from protocol.commands import Command, Interrupt, Send
from protocol.control import Reply
from protocol.events import DoneEvent, MessageEvent, StartEvent
from tests.simulation.log_oracle import Log, Report


def check_order(
    log: Log,
    given: Sequence[Command],
    replies: Mapping[str, list[Reply]],
    report: Report,
) -> None:
    """Checks that messages waited in order, those that interrupt before the others."""
    interrupts = {
        command.id
        for command in given
        if isinstance(command, Send) and command.policy == "interrupt"
    }
    pre_cancelled = {
        command.send
        for command in given
        if isinstance(command, Interrupt)
        and any(reply.outcome == "pre_cancelled" for reply in replies[command.id])
    }
    waiting: dict[int, tuple[bool, int]] = {}
    places = {e.message for e in log.events if isinstance(e, StartEvent)}
    running = 0
    for event in log.events:
        match event:
            case MessageEvent() if event.seq > log.base:
                if event.steers not in (None, running):
                    report(f"log of {log.name}: {event} steers while {running} runs")
                # What was taken back before it came goes before nobody.
                if event.seq in places and event.id not in pre_cancelled:
                    first = running and event.id in interrupts
                    waiting[event.seq] = (not first, event.seq)
            case StartEvent():
                place = waiting.pop(event.message, None)
                if place is not None and waiting and min(waiting.values()) < place:
                    report(f"log of {log.name}: {event} overtook {waiting}")
                running = event.turn
            case DoneEvent():
                running = 0
            case _:
                pass
