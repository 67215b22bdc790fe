"""The turn machine: from a message to exactly one `done`.

Model events, results, interrupts and passing time go in; actions come out. It
does no I/O and reads no clock: `now` is seconds on a monotonic clock, `wall`
seconds since the epoch, `jitter` a random number in [0, 1). It knows nothing of
the log's numbers; the runner in `wsserver.turns` appends what it decides.

    connecting -> waiting_first_token -> streaming -> (waiting_tools -> connecting)
    connecting, waiting_first_token -> retry_wait -> connecting
    any -> stopping -> ended, when a model call has first to be closed
    any -> ended
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import orjson

from protocol.content import Tool
from protocol.events import CutEvent, Reason, TakeoverEvent
from wsserver.engine import ending
from wsserver.engine.actions import (
    Action,
    Append,
    AppendText,
    CallModel,
    CloseModel,
    ShowWaiting,
)
from wsserver.engine.answer import AnswerCheck
from wsserver.engine.deadlines import CLOSE_SECONDS, NEVER, Deadlines, Phase
from wsserver.engine.ending import Ending
from wsserver.engine.limits import TurnLimits
from wsserver.engine.model import (
    Answering,
    CallFragment,
    Failure,
    Finished,
    ModelEvent,
    Text,
)
from wsserver.engine.retry import next_attempt
from wsserver.engine.text_runs import Other, TextRun, text_runs
from wsserver.engine.timing import Stopwatch
from wsserver.engine.tools import LONGEST_NAME, Batch, Settling
from wsserver.engine.usage import Tally


class Turn:
    """One turn.

    Attributes:
        phase: Where it is.
        calling: Whether a model call is under way whose end was not seen yet.
        stopped_in: The phase in which somebody wanted it to end.
        tools: Its tool calls; results are for `tool_result`.
    """

    __slots__ = (
        "_answer", "_attempt", "_bytes", "_calls", "_deadlines", "_ending",
        "_has_schema", "_limits", "_rounds", "_shown", "_tally", "_waiting_since",
        "_was_cut", "_watch", "calling", "phase", "stopped_in", "tools",
    )  # fmt: skip

    def __init__(
        self,
        *,
        turn: int,
        tools: Mapping[str, Tool],
        response_schema: dict[str, Any] | None = None,
        limits: TurnLimits,
        accepted_at: float,
        now: float,
        epoch: str = "",
    ) -> None:
        """Begins in `connecting`: the first model call is due.

        Args:
            turn: Its number, for the calls' ids.
            tools: What the model is told of, by name.
            response_schema: What a complete answer has to fit.
            limits: What it may take.
            accepted_at: When its message was in the log, on the clock of `now`.
            now: When it starts.
            epoch: The log's, for the calls' ids.
        """
        self.phase: Phase = "connecting"
        self.calling = False
        self.stopped_in = ""
        self._limits = limits
        self.tools = Batch(turn, tools, limits.tool_times, limits.call_bytes, epoch)
        self._answer = AnswerCheck(response_schema)
        self._has_schema = response_schema is not None
        self._watch = Stopwatch(accepted_at=accepted_at, started_at=now)
        self._tally = Tally()
        self._deadlines = Deadlines(limits.patience, now)
        self._waiting_since = accepted_at
        self._shown = False  # whether this model call has shown anything
        self._attempt = 0
        self._rounds = 0
        self._calls = 0
        self._bytes = 0
        self._was_cut = False
        self._ending: Ending | None = None

    @property
    def interrupted(self) -> bool:
        """Whether it ends, or has ended, because somebody wanted it to."""
        return self._ending is not None and self._ending.status == "interrupted"

    @property
    def first_token_seconds(self) -> float | None:
        """Time to first token, None while there is none."""
        return self._watch.first_token_seconds

    # The model

    def called(self, prompt_bytes: int, now: float) -> None:
        """The request goes out; answers a `CallModel`."""
        assert self.phase == "connecting", "a model call has to be due"
        self.calling = True
        self._shown = False
        self._attempt += 1
        self._answer.begin()
        self._deadlines.called(now)
        self._tally.called(prompt_bytes)
        self._watch.called(now)

    def connected(self, now: float) -> None:
        """The upstream answered with headers."""
        if self.calling and self.phase == "connecting":
            self.phase = "waiting_first_token"
            self._deadlines.active_at = now

    def feed(self, events: Sequence[ModelEvent], now: float) -> list[Action]:
        """Takes what one read of the upstream held; neighbours become one.

        A `Finished` among them is for `finished`.
        """
        if not self.calling or self.phase == "stopping":
            return []
        self._deadlines.active_at = now
        actions: list[Action] = []
        if len(events) == 1 and type(event := events[0]) is Text:  # as nearly all are
            self._text(actions, "delta", event.text, 1, now)
        else:
            for part in text_runs(events):
                if isinstance(part, TextRun):
                    self._text(actions, part.kind, part.text, part.pieces, now)
                else:
                    self._other(actions, part, now)
        if self._bytes > self._limits.turn_bytes:
            actions += self.fail(ending.too_large(self._limits.turn_bytes), now)
        return actions

    def finished(
        self, end: Finished, now: float, wall: float, jitter: float
    ) -> list[Action]:
        """Takes the end of the model call's stream."""
        if not self.calling or self.phase == "stopping":
            return []
        self._call_over()
        failure = end.failure
        if end.reason == "error" and failure is not None and not self._shown:
            self._tally.refused(end.usage)
            return self._failed(failure, now, jitter)
        self._tally.ended(end.usage)
        if end.reason == "tool_calls" and end.calls:
            return self._ask(end, now, wall)
        how = ending.finished(end.reason, end.upstream_reason, failure)
        misfit = self._answer.misfit() if how.status == "completed" else None
        if misfit is not None:
            how = ending.failed(misfit)
        return self._end(how, now)

    def refused(self, failure: Failure, now: float, jitter: float) -> list[Action]:
        """There was no stream, and the call is closed."""
        if not self.calling:
            return []
        self._call_over()
        self._tally.refused(None)
        if self.phase == "stopping":
            return self.closed(now)
        return self._failed(failure, now, jitter)

    def closed(self, now: float) -> list[Action]:
        """The model call is closed; answers a `CloseModel`."""
        if self.phase == "ended":
            return []
        assert self._ending is not None, "closed without having been stopped"
        self._call_over()
        return self._end(self._ending, now)

    # Tools

    def tool_result(
        self,
        call: str,
        status: Literal["ok", "error"],
        output: Any,
        by: str,
        now: float,
    ) -> tuple[Settling, list[Action]]:
        """Takes a result of one of its calls.

        Args:
            call: The call's id.
            status: Whether the tool did what it was asked.
            output: Any JSON value, within the limit.
            by: The principal it comes from, or `server`.
            now: Seconds on the turn's monotonic clock.

        Returns:
            What became of the result, and what is to be done.
        """
        outcome, actions = self.tools.settle(call, status, output, by)
        return outcome, actions + self._continue(now)

    # Stopping

    def stop(
        self,
        *,
        reason: Reason,
        by: str,
        now: float,
        cut: dict[str, Any] | None = None,
    ) -> list[Action]:
        """Ends the turn before its time.

        The first reason wins. `cut` holds members of a `cut` event, which is
        appended unless there was one, also when the turn is stopping already.
        """
        if self.phase == "ended":
            return []
        actions: list[Action] = []
        if cut is not None and not self._was_cut:
            self._was_cut = True
            actions.append(Append(CutEvent, {"by": by, **cut}))
        if self.phase == "stopping":
            return actions
        how = ending.stopped(reason)
        if how.status == "interrupted":
            self.stopped_in = self.phase
            self._watch.stopped(now)
        return actions + self._close(how, now)

    def fail(self, failure: Failure, now: float) -> list[Action]:
        """Ends the turn because the server can't go on with it."""
        if self.phase in ("stopping", "ended"):
            return []
        return self._close(ending.failed(failure), now)

    def detached(self, grace_seconds: float | None, now: float) -> None:
        """The last viewer is gone; None means that nobody minds."""
        at = NEVER if grace_seconds is None else now + grace_seconds
        self._deadlines.abandon_at = at

    def attached(self) -> None:
        """There is a viewer again."""
        self._deadlines.abandon_at = NEVER

    # Time

    def deadline(self) -> float:
        """Returns when `time` has something to do, at the latest."""
        return self._deadlines.next(self.phase, self.tools.deadline())

    def time(self, now: float) -> list[Action]:
        """Returns what is to be done at `now`; empty where nothing is due."""
        actions: list[Action] = []
        match self._deadlines.due(self.phase, self.tools.deadline(), now):
            case "abandoned" | "turn_timeout" | "upstream_stalled" as reason:
                actions = self.stop(reason=reason, by="server", now=now)
            case "silent":
                actions = self.fail(ending.silent(now - self._deadlines.called_at), now)
            case "retry":
                self.phase = "connecting"
                self._deadlines.called(now)
                actions = [CallModel()]
            case "tools":
                actions = self.tools.expire(now) + self._continue(now)
            case "waiting":
                actions = self._show_waiting(now)
            case "not_closed":
                actions = self.closed(now)
            case None:
                pass
        return actions

    # Inside

    def _show_waiting(self, now: float) -> list[Action]:
        phase = self.phase
        assert phase in ("connecting", "waiting_first_token", "retry_wait"), (
            "it is due in no other"
        )
        self._deadlines.shown_waiting(now)
        elapsed = int((now - self._waiting_since) * 1000)
        return [ShowWaiting(phase, elapsed)]

    def _other(self, actions: list[Action], event: Other, now: float) -> None:
        match event:
            case CallFragment():
                self._fragment(actions, event, now)
            case Answering():
                self._watch.called(now - event.seconds)
                members = {"model": event.model, "code": event.code}
                actions.append(Append(TakeoverEvent, members))
            case Finished():
                pass

    def _text(
        self, actions: list[Action], kind: str, text: str, count: int, now: float
    ) -> None:
        self._token(count, text, now)
        if kind == "delta":
            if self._has_schema:
                self._answer.add(text)
        elif kind == "refusal":
            self._answer.refuse()
        actions.append(AppendText(kind, text))

    def _fragment(self, actions: list[Action], event: CallFragment, now: float) -> None:
        if not event.text and not event.name:
            return
        self._token(1, event.text, now)
        if event.text:
            call = self.tools.call_id(event.position).encode()
            name = orjson.dumps(event.name[:LONGEST_NAME])
            attrs = b'"call":"%b","name":%b,' % (call, name)
            actions.append(AppendText("tool_delta", event.text, attrs))

    def _token(self, count: int, text: str, now: float) -> None:
        tally = self._tally
        size = len(text) if text.isascii() else len(text.encode())
        self._shown = True
        self.phase = "streaming"
        self._bytes += size
        tally.fragments += count
        tally.bytes += size
        self._watch.token(now)

    def _call_over(self) -> None:
        self.calling = False
        self._watch.call_ended()

    def _ask(self, end: Finished, now: float, wall: float) -> list[Action]:
        limits = self._limits
        self._rounds += 1
        self._calls += len(end.calls)
        if self._rounds > limits.rounds or self._calls > limits.calls:
            most = f"{limits.rounds} times and {limits.calls} calls"
            failure = ending.too_many_rounds(self._rounds, self._calls, most)
            return self._end(ending.failed(failure), now)
        self.phase = "waiting_tools"
        self._watch.tools_began(now)
        self._deadlines.tools_began(now)
        return self.tools.ask(end.calls, now, wall) + self._continue(now)

    def _continue(self, now: float) -> list[Action]:
        """Calls the model again once all calls of the batch have settled."""
        if self.phase != "waiting_tools" or self.tools.open:
            return []
        self._watch.tools_ended(now)
        self._deadlines.tools_ended(now)
        self._waiting_since = now
        self._attempt = 0
        self.phase = "connecting"
        return [CallModel()]

    def _failed(self, failure: Failure, now: float, jitter: float) -> list[Action]:
        if not self._shown:
            wait = next_attempt(failure, self._attempt, jitter=jitter)
            if wait is not None:
                self.phase = "retry_wait"
                self._deadlines.retry_at = now + wait
                return []
        return self._end(ending.failed(failure), now)

    def _close(self, how: Ending, now: float) -> list[Action]:
        """Ends the turn once a model call that is under way is closed."""
        actions = self.tools.cancel()
        if self.phase in ("connecting", "waiting_first_token", "streaming"):
            self.phase = "stopping"
            self._deadlines.close_by = now + CLOSE_SECONDS
            self._ending = how
            return [*actions, CloseModel()]
        return actions + self._end(how, now)

    def _end(self, how: Ending, now: float) -> list[Action]:
        self.phase = "ended"
        self._ending = how
        self._tally.ended(None)
        if how.status == "interrupted":
            self._tally.estimated = True
        return ending.closing(how, self._tally, self._watch, now)
