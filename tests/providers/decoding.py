"""Short ways to write upstream answers and to say what came of them."""

from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from wsserver.engine.model import (
    CallFragment,
    Finished,
    ModelEvent,
    Reasoning,
    Refusal,
    Text,
)
from wsserver.providers.chat.decoder import ChatDecoder

EVENT_STREAM = "text/event-stream"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Decoded:
    """The events of one answer, sorted by what they are."""

    events: list[ModelEvent]

    @property
    def end(self) -> Finished:
        last = self.events[-1]
        assert isinstance(last, Finished)
        assert sum(isinstance(event, Finished) for event in self.events) == 1
        return last

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Text)]

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def reasoning(self) -> str:
        return "".join(e.text for e in self.events if isinstance(e, Reasoning))

    @property
    def refusal(self) -> str:
        return "".join(e.text for e in self.events if isinstance(e, Refusal))

    @property
    def fragments(self) -> list[CallFragment]:
        return [event for event in self.events if isinstance(event, CallFragment)]

    @property
    def calls(self) -> list[tuple[str, str]]:
        return [(call.name, call.arguments) for call in self.end.calls]

    @property
    def said(self) -> tuple[str, str]:
        """The text and how it ended."""
        return self.text, self.end.reason


def decode(
    body: bytes,
    *,
    cuts: Iterable[int] = (),
    content_type: str | None = EVENT_STREAM,
    aborted: bool = False,
) -> Decoded:
    """Decodes a body in reads that end at `cuts`."""
    decoder = ChatDecoder(content_type=content_type)
    events: list[ModelEvent] = []
    start = 0
    for cut in [*cuts, len(body)]:
        events += decoder.feed(body[start:cut])
        start = cut
    events += decoder.close(aborted=aborted)
    assert decoder.finished
    return Decoded(events)


def raw(payload: str | bytes) -> bytes:
    """Returns the event that holds this data."""
    data = payload.encode() if isinstance(payload, str) else payload
    return b"data: " + data + b"\n\n"


def event(payload: object) -> bytes:
    """Returns the event that holds this value as JSON."""
    return raw(orjson.dumps(payload))


def choice(**members: object) -> bytes:
    """Returns the event of a chunk whose choice 0 has these members."""
    return event({"id": "c", "choices": [{"index": 0, **members}]})


def delta(**members: object) -> bytes:
    """Returns the event of a chunk whose delta has these members."""
    return choice(delta=members, finish_reason=None)


def finish(reason: str | None) -> bytes:
    """Returns the event of a chunk that holds only a finish reason."""
    return choice(delta={}, finish_reason=reason)


def call(
    arguments: object = None, *, name: str | None = None, **members: object
) -> dict[str, object]:
    """Returns one entry of `tool_calls`; members that are None are left out."""
    function = {"name": name, "arguments": arguments}
    function = {key: value for key, value in function.items() if value is not None}
    return {"type": "function", "function": function, **members}


def calls(*entries: dict[str, object]) -> bytes:
    """Returns the event of a chunk with these entries of `tool_calls`."""
    return delta(tool_calls=list(entries))


def escaped(text: str) -> bytes:
    """Returns the event of a delta whose content is this JSON text, as it is."""
    return raw('{"choices":[{"index":0,"delta":{"content":"' + text + '"}}]}')
