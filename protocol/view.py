"""What a client shows of one turn and of its calls; `protocol.fold` fills it in.

These values change while events come in. Two of them are equal when they show
the same, whichever frames that came in.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import UNSET

from protocol.content import TextProof, Timing
from protocol.events import (
    CutEvent,
    DeltaEvent,
    DoneEvent,
    Reason,
    ReasoningEvent,
    RefusalEvent,
    StartEvent,
    Status,
    TakeoverEvent,
    TextEvent,
    ToolCallEvent,
    ToolDeltaEvent,
    ToolResultEvent,
    ToolStatus,
    TurnErrorEvent,
    TurnEvent,
    UsageEvent,
)
from protocol.text import Text, proof

CallStatus = Literal["streaming", "open"] | ToolStatus


@dataclass(slots=True, kw_only=True)
class CallView:
    """One call of a tool.

    Attributes:
        call: The server's id of it.
        name: The tool's; None for a result whose call was not seen.
        position: Where in the turn's answer it stands: how many characters of
            `text` come before it.
        status: `streaming` while its arguments come in, `open` while it runs,
            then how it was settled.
        arguments: Its arguments as JSON; UNSET until the call is complete.
        batch: Which model call asked for it, from 0.
        index: Its place in that batch, from 0.
        deadline_at: When it counts as timed out.
        output: What the tool gave, or a note for the model; UNSET until settled.
        by: The principal whose client ran it, or `server`.
    """

    call: str
    name: str | None
    position: int
    status: CallStatus = "streaming"
    arguments: Any = UNSET
    batch: int | None = None
    index: int | None = None
    deadline_at: str | None = None
    output: Any = UNSET
    by: str | None = None
    _partial: Text = field(init=False, default_factory=Text)

    @property
    def partial(self) -> str:
        """The arguments' text as far as it came; empty once they are complete.

        Of a call that is `invalid` it is what the model wrote.
        """
        return str(self._partial)

    def growing(self) -> Text | None:
        """Returns the text that a `tool_delta` adds to; None once that is over."""
        return self._partial if self.status == "streaming" else None

    def complete(self, event: ToolCallEvent) -> None:
        """The model has finished the call."""
        self.name = event.name
        self.status = "open"
        self.arguments = event.arguments
        self.batch = event.batch
        self.index = event.index
        self.deadline_at = event.deadline_at
        self._partial = Text()

    def settle(self, event: ToolResultEvent) -> None:
        """The call has its result."""
        if event.invalid is not None:
            self.name = event.invalid.name
            self.batch = event.invalid.batch
            self.index = event.invalid.index
            self._partial = Text(event.invalid.arguments)
        self.status = event.status
        self.output = event.output
        self.by = event.by


@dataclass(slots=True, kw_only=True)
class TurnView:
    """One turn: a user's message and all that the assistant does for it.

    Attributes:
        turn: Its id, the number of its `start`.
        whole: Its `start` was seen. Otherwise the log's older part is gone and
            what is shown may lack its beginning.
        message: The number of the message that it answers.
        model: Which model answers; with a fallback it may change.
        request_id: How the operator's log names it.
        at: When it began.
        status: How it ended; None while it runs.
        reason: Why it was interrupted or incomplete.
        finish_reason: The upstream's own word, if it gave one.
        calls: By their ids, in the order in which they appeared.
        usage: What it cost.
        error: Why it failed.
        timing: How long it took.
        cut: The last cut of its answer, if it was cut.
        proven: Whether `text` is, to the byte, what the server keeps; None
            before the server has said, or where a part was not sent.
    """

    turn: int
    whole: bool = False
    message: int | None = None
    model: str | None = None
    request_id: str | None = None
    at: str | None = None
    status: Status | None = None
    reason: Reason | None = None
    finish_reason: str | None = None
    calls: dict[str, CallView] = field(default_factory=dict[str, CallView])
    usage: UsageEvent | None = None
    error: TurnErrorEvent | None = None
    timing: Timing | None = None
    cut: CutEvent | None = None
    proven: bool | None = None
    _answer: Text = field(init=False, default_factory=Text)
    _reasoning: Text = field(init=False, default_factory=Text)
    _refusal: Text = field(init=False, default_factory=Text)
    _skipped: bool = field(init=False, default=False, compare=False)

    @property
    def text(self) -> str:
        """The answer, as far as it came and is kept."""
        return str(self._answer)

    def parts(self) -> Iterator[str | CallView]:
        """Yields the answer's text with the calls where they were made."""
        text, begin = self.text, 0
        for call in self.calls.values():
            if begin < call.position:
                yield text[begin : call.position]
            yield call
            begin = call.position
        if begin < len(text):
            yield text[begin:]

    @property
    def reasoning(self) -> str:
        """The model's thinking; never part of the answer, never cut."""
        return str(self._reasoning)

    @property
    def refusal(self) -> str:
        """What the model said in its refusal channel; never cut."""
        return str(self._refusal)

    def growing(self, event: TextEvent) -> Text | None:
        """Returns the text that `event` adds to; None where it adds nothing.

        Nothing is added to an answer that was cut, nor to the arguments of a
        call that is complete or did not begin.
        """
        match event:
            case DeltaEvent():
                return self._answer if self.cut is None else None
            case ReasoningEvent():
                return self._reasoning
            case RefusalEvent():
                return self._refusal
            case ToolDeltaEvent():
                call = self.calls.get(event.call)
                return None if call is None else call.growing()
            case _:
                raise AssertionError(f"{type(event)} is a kind of text")

    def begin_call(self, event: ToolDeltaEvent) -> None:
        """A call's arguments begin, or go on, to come in."""
        self._call(event.call, event.name)

    def skip(self) -> None:
        """Numbers came without what they hold: maybe text that this client cut."""
        self._skipped = True

    def apply(self, event: TurnEvent) -> None:
        """Takes an event of this turn that is not text."""
        match event:
            case StartEvent():
                self.whole = True
                self.message = event.message
                self.model = event.model
                self.request_id = event.request_id
                self.at = event.at
            case TakeoverEvent():
                self.model = event.model
            case ToolCallEvent():
                self._call(event.call, event.name).complete(event)
            case ToolResultEvent():
                self._call(event.call, None).settle(event)
            case UsageEvent():
                self.usage = event
            case TurnErrorEvent():
                self.error = event
            case CutEvent():
                self._cut(event)
            case DoneEvent():
                self._done(event)
            case _:
                raise AssertionError(f"{type(event)} is an event of a turn, not text")

    def _call(self, call: str, name: str | None) -> CallView:
        if call not in self.calls:
            position = len(self._answer)
            self.calls[call] = CallView(call=call, name=name, position=position)
        return self.calls[call]

    def _cut(self, event: CutEvent) -> None:
        self.cut = event
        self._answer.keep(event.text.bytes)
        for call in self.calls.values():
            call.position = min(call.position, len(self._answer))
        self._prove(event.text)

    def _done(self, event: DoneEvent) -> None:
        self.status = event.status
        self.reason = event.reason
        self.finish_reason = event.finish_reason
        self.timing = event.timing
        for call in [one for one in self.calls.values() if one.status == "streaming"]:
            del self.calls[call.call]
        self._prove(event.text)
        if self._skipped and len(self.text.encode()) < event.text.bytes:
            self.proven = None  # the `cut` that follows says more

    def _prove(self, kept: TextProof) -> None:
        self.proven = proof(self.text) == kept if self.whole else None
