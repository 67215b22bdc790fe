"""What chat upstreams send, and what has to come of it.

`bodies` holds response bodies to the byte; `catalogue.json` says of each how it was
sent and what the right outcome is. Those of origin `field` are small streams made
after faults that people met; those of origin `recorded` are what real servers sent
(llama.cpp, llama-cpp-python, vLLM, transformers), also from other APIs, as a wrong
URL would give them.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from tests.fakes.upstream import Reply
from wsserver.engine.model import (
    Failure,
    Finished,
    ModelEvent,
    Reasoning,
    Refusal,
    Text,
    Usage,
)

_HERE = Path(__file__).parent


class LongText(Struct, frozen=True):
    """A text by its length and its hash in UTF-8."""

    chars: int
    sha256: str


class Answer(Struct, frozen=True):
    """How the body is sent.

    Attributes:
        splits: Offsets at which reads end; the outcome is the same for all others.
    """

    status: int = 200
    content_type: str = "text/event-stream"
    end: Literal["clean", "abort", "stall"] = "clean"
    splits: Sequence[int] = ()


class First(Struct, frozen=True):
    """An answer that is given once, before that with the body."""

    status: int
    headers: dict[str, str]
    body: str


class Counts(Struct, frozen=True):
    """Token counts."""

    input: int
    output: int
    reasoning: int | None = None
    cached: int | None = None


class CallOutcome(Struct, frozen=True):
    """A tool call; without `id` any will do."""

    name: str
    arguments: str
    valid: bool
    id: str | None = None


class ErrorOutcome(Struct, frozen=True):
    """A failure; `says` is a part of its message."""

    code: str
    retryable: bool
    says: str


class Outcome(Struct, frozen=True):
    """What has to come of it.

    Attributes:
        runs: Whether the calls may be run.
    """

    finish: str
    text: str | LongText = ""
    reasoning: str | LongText = ""
    refusal: str | LongText = ""
    calls: Sequence[CallOutcome] = ()
    runs: bool = False
    usage: Counts | None = None
    error: ErrorOutcome | None = None


class Case(Struct, frozen=True):
    """One stream."""

    name: str
    origin: Literal["field", "recorded"]
    answer: Answer
    expect: Outcome
    note: str = ""
    first: First | None = None

    @property
    def body(self) -> bytes:
        """The body to the byte."""
        return (_HERE / "bodies" / f"{self.name}.body").read_bytes()

    def replies(self) -> list[Reply]:
        """Returns the script that makes a fake upstream send this."""
        answer = self.answer
        served = Reply(
            body=self.body,
            status=answer.status,
            content_type=answer.content_type,
            end=answer.end,
            splits=answer.splits,
        )
        if self.first is None:
            return [served]
        refusal = Reply(
            body=self.first.body.encode(),
            status=self.first.status,
            headers=self.first.headers,
            content_type="application/json",
        )
        return [refusal, served]


CASES = msgspec.json.decode((_HERE / "catalogue.json").read_bytes(), type=list[Case])


class WrongOutcomeError(AssertionError):
    """An outcome is not the expected one."""


def check_events(case: Case, events: Sequence[ModelEvent]) -> None:
    """Compares all that a model call yielded with what the case expects.

    Raises:
        WrongOutcomeError: They are not the same.
    """
    assert events, "a model call yields at least its end"
    *pieces, last = events
    _same(case, "last event", isinstance(last, Finished), True)
    assert isinstance(last, Finished), "compared just now"
    expect = case.expect
    _same_text(case, "text", expect.text, pieces, Text)
    _same_text(case, "reasoning", expect.reasoning, pieces, Reasoning)
    _same_text(case, "refusal", expect.refusal, pieces, Refusal)
    _same(case, "finish", last.reason, expect.finish)
    calls = [(call.name, call.arguments, call.valid) for call in last.calls]
    _same(case, "calls", calls, [(c.name, c.arguments, c.valid) for c in expect.calls])
    for call, wanted in zip(last.calls, expect.calls, strict=True):
        _same(case, "id", call.upstream_id, wanted.id or call.upstream_id)
    _same(case, "usage", last.usage, _usage(expect.usage))
    runs = last.reason == "tool_calls" and all(call.valid for call in last.calls)
    _same(case, "runs", runs, expect.runs)
    check_failure(case, last.failure)


def check_failure(case: Case, failure: Failure | None) -> None:
    """Compares a failure with what the case expects.

    Raises:
        WrongOutcomeError: They are not the same.
    """
    error = case.expect.error
    if failure is None or error is None:
        _same(case, "failure", failure, error)
        return
    _same(case, "code", failure.code, error.code)
    _same(case, "retryable", failure.retryable, error.retryable)
    _same(case, "message", error.says in failure.message, True)


def _usage(counts: Counts | None) -> Usage | None:
    if counts is None:
        return None
    return Usage(
        input_tokens=counts.input,
        output_tokens=counts.output,
        reasoning_tokens=counts.reasoning,
        cached_tokens=counts.cached,
    )


def _same_text(
    case: Case,
    what: str,
    wanted: str | LongText,
    pieces: Iterable[ModelEvent],
    kind: type[Text] | type[Reasoning] | type[Refusal],
) -> None:
    text = "".join(piece.text for piece in pieces if isinstance(piece, kind))
    if isinstance(wanted, LongText):
        digest = hashlib.sha256(text.encode()).hexdigest()
        _same(case, what, LongText(chars=len(text), sha256=digest), wanted)
    else:
        _same(case, what, text, wanted)


def _same(case: Case, what: str, got: object, wanted: object) -> None:
    if got != wanted:
        raise WrongOutcomeError(f"{case.name}: {what} is {got!r}, should be {wanted!r}")
