"""Folds the events of one conversation into what a client shows.

The fold is the same for frames that were merged and frames that were not:
`fold(merge(events)) == fold(events)`.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace

from protocol.content import Config
from protocol.events import (
    ConfigEvent,
    CutEvent,
    LogEvent,
    MessageEvent,
    SkipEvent,
    TextEvent,
    ToolDeltaEvent,
    first_seq,
)
from protocol.text import Text
from protocol.view import TurnView


class GapError(Exception):
    """An event does not fit after the last one; nothing was changed.

    The client sends `open` with its cursor.

    Attributes:
        last: The last number that was taken.
        event: What did not fit.
    """

    def __init__(self, last: int, event: LogEvent) -> None:
        super().__init__(
            f"numbers {first_seq(event)} to {event.seq} do not fit after {last}"
        )
        self.last = last
        self.event = event


class _Run:
    """Where in a text the numbers that came in last began.

    Attributes:
        text: Which text.
        firsts: For each piece of the run, its first number.
        offsets: For each piece, how many characters were before it.
    """

    __slots__ = ("firsts", "offsets", "text")

    def __init__(self, text: Text) -> None:
        self.text = text
        self.firsts: list[int] = []
        self.offsets: list[int] = []

    def since(self, first: int) -> str | None:
        """Returns the text from number `first` on, if a piece began there."""
        place = bisect_left(self.firsts, first)
        if place == len(self.firsts) or self.firsts[place] != first:
            return None
        return str(self.text)[self.offsets[place] :]


@dataclass(slots=True, kw_only=True)
class ConversationView:
    """One conversation as a client shows it.

    Attributes:
        conversation: Its id; None until an event names it.
        last: Everything up to this number is in it: the cursor's `seq`.
        config: Its settings.
        timeline: Messages and turns in the order in which they came.
        turns: The turns by their ids.
    """

    conversation: str | None = None
    last: int = 0
    config: Config = field(default_factory=Config)
    timeline: list[MessageEvent | TurnView] = field(
        default_factory=list[MessageEvent | TurnView]
    )
    turns: dict[int, TurnView] = field(default_factory=dict[int, TurnView])
    _run: _Run | None = field(init=False, default=None, compare=False, repr=False)

    @property
    def running(self) -> TurnView | None:
        """The turn that runs; at most one does."""
        newest = next(reversed(self.turns.values()), None)
        return newest if newest is not None and newest.status is None else None

    def apply(self, event: LogEvent) -> bool:
        """Takes the next event.

        - All of its numbers are known: it is ignored.
        - It begins right after `last`: it is taken.
        - Some of its numbers are known: of a `skip` the rest is taken; of text
          the rest is taken where it can be told, that is where a frame that
          came in before began at the same number and what is known is the
          beginning of the new text.
        - Otherwise there is a gap.

        Returns:
            Whether anything was new.

        Raises:
            GapError: It does not fit.
            ValueError: It is another conversation's.
        """
        if self.conversation not in (None, event.conversation):
            raise ValueError(f"{event.conversation!r} is not {self.conversation!r}")
        first = first_seq(event)
        if first != self.last + 1:
            if event.seq <= self.last:
                return False
            event = self._rest(event, first)
            first = self.last + 1
        if isinstance(event, TextEvent):
            self._text(event, first)
        else:
            self._run = None
            self._other(event)
        self.conversation = event.conversation
        self.last = event.seq
        return True

    def _text(self, event: TextEvent, first: int) -> None:
        turn = self._turn(event.turn)
        if isinstance(event, ToolDeltaEvent):
            turn.begin_call(event)
        text = turn.growing(event)
        if text is None:
            self._run = None
            return
        if self._run is None or self._run.text is not text:
            self._run = _Run(text)
        self._run.firsts.append(first)
        self._run.offsets.append(len(text))
        text.append(event.text)

    def _other(self, event: LogEvent) -> None:
        match event:
            case SkipEvent():
                if self.running is not None:
                    self.running.skip()
            case MessageEvent():
                self.timeline.append(event)
            case ConfigEvent():
                self.config = event.config
            case CutEvent() if event.turn not in self.turns:
                pass  # retention has dropped the turn
            case _:
                self._turn(event.turn).apply(event)

    def _turn(self, turn: int) -> TurnView:
        if turn not in self.turns:
            self.turns[turn] = TurnView(turn=turn)
            self.timeline.append(self.turns[turn])
        return self.turns[turn]

    def _rest(self, event: LogEvent, first: int) -> LogEvent:
        """Returns the part of `event` after `last`."""
        if first <= self.last and isinstance(event, SkipEvent):
            return replace(event, first=self.last + 1)
        if first <= self.last and isinstance(event, TextEvent):
            known = self._known(event, first)
            if known is not None and event.text.startswith(known):
                rest = event.text[len(known) :]
                return replace(event, first=self.last + 1, text=rest)
        raise GapError(self.last, event)

    def _known(self, event: TextEvent, first: int) -> str | None:
        turn = self.turns.get(event.turn)
        run = self._run
        if turn is None or run is None or turn.growing(event) is not run.text:
            return None
        return run.since(first)


def fold(
    events: Iterable[LogEvent], state: ConversationView | None = None
) -> ConversationView:
    """Applies `events` in order.

    Args:
        events: Of one conversation.
        state: What to go on from; it is changed and returned. None begins right
            before the first event, wherever that is: a log may have lost its
            oldest part.

    Raises:
        GapError: An event does not fit; the ones before it are taken.
        ValueError: The events are of several conversations.
    """
    for event in events:
        if state is None:
            state = ConversationView(last=first_seq(event) - 1)
        state.apply(event)
    return ConversationView() if state is None else state
