"""What a demo model says, complete and before any of it is given out."""

from collections.abc import Sequence
from itertools import chain, cycle, islice

from msgspec import DecodeError, Raw, Struct, json

from wsserver.engine.model import (
    Call,
    CallFragment,
    Failure,
    Finished,
    FinishReason,
    Reasoning,
    Refusal,
    Text,
    Usage,
)

TokenEvent = Text | Reasoning | Refusal | CallFragment


class Answer(Struct, frozen=True, kw_only=True):
    """An answer, and how it ends.

    Attributes:
        events: One event for each token.
        reason: How the answer ends; None when it never does: after the last
            token there is silence.
        failure: Why, with the reason `error`.
        call_ids: The ids of the calls that `events` holds, by position.
        elastic: Whether it may be cut and continued to the length asked for.
    """

    events: tuple[TokenEvent, ...]
    reason: FinishReason | None = "stop"
    failure: Failure | None = None
    call_ids: tuple[str, ...] = ()
    elastic: bool = True


def resized(answer: Answer, tokens: int) -> Answer:
    """Returns the answer with exactly `tokens` tokens.

    A longer one is cut, a shorter one goes on with its own text from the start. An
    answer that is not elastic, or has no text, is only returned.
    """
    events = answer.events
    if not answer.elastic or len(events) == tokens:
        return answer
    if len(events) > tokens:
        return _with_events(answer, events[:tokens])
    text = [event for event in events if isinstance(event, Text)]
    if not text:
        return answer
    more = islice(chain((Text("\n\n"),), cycle(text)), tokens - len(events))
    return _with_events(answer, (*events, *more))


def limited(answer: Answer, max_tokens: int) -> Answer:
    """Returns the answer as a model gives it that may say `max_tokens` tokens."""
    if len(answer.events) <= max_tokens:
        return answer
    return Answer(
        events=answer.events[:max_tokens],
        reason="length",
        call_ids=answer.call_ids,
        elastic=False,
    )


def finish(answer: Answer, input_tokens: int) -> Finished | None:
    """Returns the event that ends the answer; None when nothing does.

    Usage is exact. A stream that breaks off or fails reports none, as upstreams
    only report it at their regular end.
    """
    if answer.reason is None:
        return None
    thoughts = sum(isinstance(event, Reasoning) for event in answer.events)
    regular = answer.reason not in ("incomplete", "error")
    return Finished(
        reason=answer.reason,
        upstream_reason=answer.reason if regular else None,
        calls=assemble_calls(answer.events, answer.call_ids),
        usage=Usage(
            input_tokens=input_tokens,
            output_tokens=len(answer.events),
            reasoning_tokens=thoughts or None,
        )
        if regular
        else None,
        failure=answer.failure,
    )


def assemble_calls(
    events: Sequence[TokenEvent], call_ids: Sequence[str]
) -> tuple[Call, ...]:
    """Joins the fragments of each call that was opened; whole ones are valid."""
    if not call_ids:
        return ()
    names: dict[int, str] = {}
    texts: dict[int, list[str]] = {}
    for event in events:
        if isinstance(event, CallFragment):
            names.setdefault(event.position, event.name)
            texts.setdefault(event.position, []).append(event.text)
    return tuple(
        Call(
            upstream_id=call_ids[position],
            name=names[position],
            arguments="".join(pieces),
            valid=is_json("".join(pieces)),
        )
        for position, pieces in sorted(texts.items())
    )


def is_json(text: str) -> bool:
    """Says whether `text` is one JSON value."""
    try:
        json.decode(text, type=Raw)
    except DecodeError:
        return False
    return True


def _with_events(answer: Answer, events: tuple[TokenEvent, ...]) -> Answer:
    return Answer(
        events=events,
        reason=answer.reason,
        failure=answer.failure,
        call_ids=answer.call_ids,
        elastic=answer.elastic,
    )
