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

from collections.abc import Sequence
from typing import Any, Literal

import orjson
from msgspec import Struct

from protocol.codes import ERRORS
from protocol.content import Tool
from protocol.control import Phase
from protocol.events import (
    CutEvent,
    Reason,
    Status,
    TurnErrorEvent,
    UsageEvent,
)
from wsserver.engine.actions import (
    Action,
    Append,
    AppendDone,
    AppendText,
    CallModel,
    CloseModel,
    ShowWaiting,
)
from wsserver.engine.deadlines import NEVER, Deadlines, Patience
from wsserver.engine.model import (
    CallFragment,
    Failure,
    Finished,
    ModelEvent,
    Reasoning,
    Refusal,
    Text,
)
from wsserver.engine.retry import next_attempt
from wsserver.engine.timing import Stopwatch
from wsserver.engine.tools import Batch, Settling, ToolTimes
from wsserver.engine.usage import Tally

_KINDS: dict[type, str] = {Text: "delta", Reasoning: "reasoning", Refusal: "refusal"}


class TurnLimits(Struct, frozen=True, kw_only=True):
    """What a turn may take.

    Attributes:
        patience: How long it waits.
        tool_times: How long tool calls may take.
        turn_bytes: Text of all kinds together, in UTF-8.
        rounds: Model calls that may ask for tools.
        calls: Tool calls in all.
        call_bytes: Arguments of one call.
    """

    patience: Patience = Patience()
    tool_times: ToolTimes = ToolTimes()
    turn_bytes: int = 4 * 2**20
    rounds: int = 16
    calls: int = 64
    call_bytes: int = 131_072


class _Ending(Struct, frozen=True, kw_only=True):
    status: Status
    reason: Reason | None = None
    finish_reason: str | None = None
    error: Failure | None = None


class Turn:
    """One turn.

    Attributes:
        phase: Where it is.
        shown: Whether the model call under way has shown anything.
    """

    def __init__(
        self,
        *,
        turn: int,
        tools: dict[str, Tool],
        limits: TurnLimits,
        accepted_at: float,
        now: float,
    ) -> None:
        self.phase: Phase | Literal["stopping", "ended"] = "connecting"
        self.shown = False
        self._limits = limits
        self._tools = tools
        self._batch = Batch(turn, limits.tool_times)
        self._watch = Stopwatch(accepted_at=accepted_at, started_at=now)
        self._tally = Tally()
        self._deadlines = Deadlines(limits.patience, now)
        self._waiting_since = accepted_at
        self._attempt = 0
        self._rounds = 0
        self._calls = 0
        self._bytes = 0
        self._ending: _Ending | None = None

    # The model

    def called(self, prompt_bytes: int, now: float) -> None:
        """The request goes out; answers a `CallModel`."""
        self.phase = "connecting"
        self.shown = False
        self._deadlines.called(now)
        self._attempt += 1
        self._tally.called(prompt_bytes)
        self._watch.called(now)

    def connected(self, now: float) -> None:
        """The upstream answered with headers."""
        if self.phase == "connecting":
            self.phase = "waiting_first_token"
            self._deadlines.active_at = now

    def feed(
        self, events: Sequence[ModelEvent], now: float, wall: float, jitter: float
    ) -> list[Action]:
        """Takes what one read of the upstream held; neighbours become one."""
        self._deadlines.active_at = now
        if self.phase in ("stopping", "ended") or not events:
            return []
        actions: list[Action] = []
        kind = ""
        texts: list[str] = []
        for event in events:
            if isinstance(event, Text | Reasoning | Refusal):
                found = _KINDS[type(event)]
                if found != kind and texts:
                    self._text(actions, kind, texts, now)
                    texts = []
                kind = found
                texts.append(event.text)
                continue
            if texts:
                self._text(actions, kind, texts, now)
                texts = []
            if isinstance(event, CallFragment):
                self._fragment(actions, event, now)
            else:
                actions += self._finished(event, now, wall, jitter)
        if texts:
            self._text(actions, kind, texts, now)
        if self._bytes > self._limits.turn_bytes and self._ending is None:
            actions += self._too_large(now)
        return actions

    def refused(self, failure: Failure, now: float, jitter: float) -> list[Action]:
        """There was no stream, and the call is closed."""
        self._tally.refused()
        if self.phase == "stopping":
            return self.closed(now)
        return self._failed(failure, now, jitter)

    def closed(self, now: float) -> list[Action]:
        """The model call is closed; answers a `CloseModel`."""
        assert self._ending is not None, "closed without having been stopped"
        return self._end(self._ending, now)

    # Tools

    def open_calls(self) -> list[str]:
        """Returns the ids of calls that wait for their result, in call order."""
        return list(self._batch.open)

    def deliver(self, call: str, now: float) -> "tuple[str, Any, int, bool] | None":
        """Counts a delivery of an open call.

        Returns its name, arguments, time left in milliseconds and whether it
        was delivered before; None when it is not open.
        """
        if call not in self._batch.open:
            return None
        opened = self._batch.redelivered(call, now)
        left = max(0, int((opened.deadline - now) * 1000))
        return opened.name, opened.arguments, left, opened.asked > 1

    def tool_of(self, call: str) -> str | None:
        """Returns the name of an open call's tool."""
        opened = self._batch.open.get(call)
        return None if opened is None else opened.name

    def knows(self, name: str) -> bool:
        """Whether the model was told of a tool of that name."""
        return name in self._tools

    def tool_result(
        self,
        call: str,
        status: Literal["ok", "error"],
        output: Any,
        by: str,
        now: float,
    ) -> tuple[Settling, list[Action]]:
        """Takes a result."""
        outcome, actions = self._batch.settle(call, status, output, by)
        return outcome, actions + self._continue(now)

    def tool_progress(self, call: str, now: float) -> bool:
        """Extends a call's deadline; False when the call is not open."""
        return self._batch.progress(call, now)

    # Stopping

    def stop(
        self,
        *,
        reason: Reason,
        by: str,
        now: float,
        cut: dict[str, Any] | None = None,
    ) -> list[Action]:
        """Ends the turn before its time; `cut` holds a `cut` event's members."""
        if self.phase in ("stopping", "ended"):
            return []
        actions: list[Action] = []
        if cut is not None:
            actions.append(Append(CutEvent, {"by": by, **cut}))
        interrupted = reason in ("by_client", "abandoned", "superseded")
        ending = _Ending(
            status="interrupted" if interrupted else "incomplete", reason=reason
        )
        self._watch.stopped(now)
        return actions + self._close(ending, now)

    def fail(self, failure: Failure, now: float) -> list[Action]:
        """Ends the turn because the server can't go on with it."""
        if self.phase in ("stopping", "ended"):
            return []
        return self._close(_Ending(status="failed", error=failure), now)

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
        return self._deadlines.next(self.phase, self._batch.deadline())

    def time(self, now: float) -> list[Action]:
        """Does what is due."""
        match self._deadlines.due(self.phase, self._batch.deadline(), now):
            case "abandoned" | "turn_timeout" | "upstream_stalled" as reason:
                return self.stop(reason=reason, by="server", now=now)
            case "silent":
                return self._silent(now)
            case "retry":
                self.phase = "connecting"
                return [CallModel()]
            case "tools":
                return self._batch.expire(now) + self._continue(now)
            case "waiting":
                return self._show_waiting(now)
            case None:
                return []

    @property
    def first_token_seconds(self) -> float | None:
        """Time to first token, None while there is none."""
        return self._watch.first_token_seconds

    # Inside

    def _silent(self, now: float) -> list[Action]:
        failure = Failure(
            code="upstream_timeout",
            message=f"The model gave no token within {now - self._deadlines.called_at:.0f} s.",
            retryable=True,
        )
        return self.fail(failure, now)

    def _show_waiting(self, now: float) -> list[Action]:
        assert self.phase not in ("stopping", "ended"), "nothing is due any more"
        self._deadlines.shown_waiting(now)
        elapsed = int((now - self._waiting_since) * 1000)
        return [ShowWaiting(self.phase, elapsed)]

    def _token(self, count: int, size: int, now: float) -> None:
        self.shown = True
        self.phase = "streaming"
        self._bytes += size
        self._tally.fragment(count, size)
        self._watch.token(now)

    def _text(
        self, actions: list[Action], kind: str, texts: list[str], now: float
    ) -> None:
        text = texts[0] if len(texts) == 1 else "".join(texts)
        self._token(len(texts), len(text.encode()), now)
        actions.append(AppendText(kind, text))

    def _fragment(self, actions: list[Action], event: CallFragment, now: float) -> None:
        if not event.text and not event.name:
            return
        self._token(1, len(event.text.encode()), now)
        if event.text:
            call = self._batch.call_id(event.position)
            attrs = b'"call":"%b","name":%b,' % (
                call.encode(),
                orjson.dumps(event.name),
            )
            actions.append(AppendText("tool_delta", event.text, attrs))

    def _finished(
        self, end: Finished, now: float, wall: float, jitter: float
    ) -> list[Action]:
        self._tally.ended(end.usage)
        self._watch.call_ended()
        match end.reason:
            case "error":
                failure = end.failure or Failure(
                    code="upstream_error",
                    message="The model failed without saying why.",
                    retryable=False,
                )
                return self._failed(failure, now, jitter)
            case "tool_calls" if end.calls:
                return self._ask(end, now, wall)
            case "stop" | "tool_calls":
                ending = _Ending(status="completed")
            case "length":
                ending = _Ending(status="incomplete", reason="max_output_tokens")
            case "content_filter":
                ending = _Ending(status="incomplete", reason="content_filter")
            case "incomplete":
                ending = _Ending(status="incomplete", reason="upstream_truncated")
        return self._end(ending, now, finish_reason=end.upstream_reason)

    def _ask(self, end: Finished, now: float, wall: float) -> list[Action]:
        self._rounds += 1
        self._calls += len(end.calls)
        if self._rounds > self._limits.rounds or self._calls > self._limits.calls:
            failure = Failure(
                code="too_many_tool_rounds",
                message=f"The model asked for tools {self._rounds} times"
                f" ({self._calls} calls); {self._limits.rounds} times and"
                f" {self._limits.calls} calls are allowed in a turn.",
                retryable=False,
            )
            return self._end(_Ending(status="failed", error=failure), now)
        self.phase = "waiting_tools"
        self._watch.tools_began(now)
        limit = self._limits.call_bytes
        actions = self._batch.ask(end.calls, self._tools, now, wall, limit)
        return actions + self._continue(now)

    def _continue(self, now: float) -> list[Action]:
        """Calls the model again once all calls of the batch have settled."""
        if self.phase != "waiting_tools" or self._batch.open:
            return []
        self._watch.tools_ended(now)
        self._attempt = 0
        self.phase = "connecting"
        self._deadlines.called(now)
        return [CallModel()]

    def _failed(self, failure: Failure, now: float, jitter: float) -> list[Action]:
        if not self.shown:
            wait = next_attempt(failure, self._attempt, jitter=jitter)
            if wait is not None:
                self.phase = "retry_wait"
                self._deadlines.retry_at = now + wait
                return []
        return self._end(_Ending(status="failed", error=failure), now)

    def _too_large(self, now: float) -> list[Action]:
        failure = Failure(
            code="response_too_large",
            message=f"The answer is longer than {self._limits.turn_bytes} bytes.",
            retryable=False,
        )
        return self.fail(failure, now)

    def _close(self, ending: _Ending, now: float) -> list[Action]:
        """Ends the turn once a model call that is under way is closed."""
        actions = self._batch.cancel()
        if self.phase in ("connecting", "waiting_first_token", "streaming"):
            self.phase = "stopping"
            self._ending = ending
            return [*actions, CloseModel()]
        return actions + self._end(ending, now)

    def _end(
        self, ending: _Ending, now: float, finish_reason: str | None = None
    ) -> list[Action]:
        self.phase = "ended"
        self._ending = ending
        self._tally.ended(None)
        if ending.status == "interrupted":
            self._tally.estimated = True
        actions: list[Action] = [Append(UsageEvent, self._tally.members())]
        if ending.error is not None:
            wait = ending.error.retry_after_s
            members = {
                "code": ending.error.code,
                "message": ending.error.message,
                "retryable": ending.error.retryable and ending.error.code in ERRORS,
                "retry_after_ms": None if wait is None else int(wait * 1000),
            }
            actions.append(Append(TurnErrorEvent, members))
        done = {
            "status": ending.status,
            "reason": ending.reason,
            "finish_reason": finish_reason,
            "timing": self._watch.timing(now, self._tally.output_tokens),
        }
        return [*actions, AppendDone(done)]
