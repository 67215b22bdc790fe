"""What a scripted client can do, one Struct a step.

These are the format: the reference of scenarios is made from them. What the steps
may follow on each other is in `client_demo.load.rules`; who does them is
`client_demo.load.script`.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from client_demo.load.durations import Duration, Seconds
from protocol.commands import Keep, Policy

Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Tokens = Annotated[int, Meta(ge=0, le=1_000_000)]


class Step(
    Struct, frozen=True, kw_only=True, tag_field="do", forbid_unknown_fields=True
):
    """The base of all steps."""


class OpenStep(Step, frozen=True, kw_only=True, tag="open"):
    """Begins a new conversation; the one before it is checked and deleted.

    Attributes:
        view: `merged` takes missed pieces as one frame; `frames` never does.
        window_bytes: Acknowledge what was read, and take at most this much ahead.
        max_delay_ms: Text may be gathered this long.
    """

    view: Literal["merged", "frames"] = "merged"
    window_bytes: Annotated[int, Meta(ge=1024, le=2**31)] | None = None
    max_delay_ms: Annotated[int, Meta(ge=0, le=10_000)] | None = None


class SendStep(Step, frozen=True, kw_only=True, tag="send"):
    """Says something; does not wait for the answer. One of `text` and `prompts`.

    Attributes:
        text: What to say; `{n}` becomes the number of the send.
        prompts: Says the next one of this set of prompts.
        order: Of the prompts: as they stand, or drawn.
        model: Who is to answer from here on.
        policy: What to do while a turn runs.
    """

    text: str | None = None
    prompts: str | None = None
    order: Literal["in_order", "random"] = "in_order"
    model: str | None = None
    policy: Policy = "queue"


class WaitStep(Step, frozen=True, kw_only=True, tag="wait_for"):
    """Waits for exactly one thing.

    Attributes:
        event: An event of this type after the last send; `done` is the end of the
            turn of the last send. What belongs to a turn is not waited for beyond
            its end.
        tokens: So many pieces of the answer, or its end.
        seconds: So long, reading.
        within_seconds: Longer than this is the error `wait_timeout`, and ends the
            script.
    """

    event: str | None = None
    tokens: Count | None = None
    seconds: Duration | None = None
    within_seconds: Seconds = 120


class InterruptStep(Step, frozen=True, kw_only=True, tag="interrupt"):
    """Stops the turn of the last send and waits for its end.

    Attributes:
        after_tokens: Waits for so many pieces of the answer first, or its end.
        seen: Which part of what came was seen (`seen_seq`), 1 for all of it;
            absent leaves it to the server.
        keep: Which text stays in the history.
    """

    after_tokens: Tokens = 0
    seen: Annotated[float, Meta(ge=0, le=1)] | None = None
    keep: Keep | None = None


class DropStep(Step, frozen=True, kw_only=True, tag="drop"):
    """Cuts the TCP connection without a word, and stays away until `resume`.

    So it is for all conversations on the socket; the first `resume` brings it back.

    Attributes:
        after_tokens: Waits for so many pieces of the answer first, or its end.
    """

    after_tokens: Tokens = 0


class ResumeStep(Step, frozen=True, kw_only=True, tag="resume"):
    """Connects again, opens with the cursor, waits for `caught_up`."""


class ReadStep(Step, frozen=True, kw_only=True, tag="read"):
    """Says how fast this client reads from here on.

    While it is slow its times do not count: they would be its own.

    Attributes:
        bytes_per_second: The pace; 0 for as fast as it goes.
        pause_seconds: Reads nothing for so long first.
    """

    bytes_per_second: Annotated[float, Meta(ge=0)] = 0
    pause_seconds: Duration = 0


class ToolsStep(Step, frozen=True, kw_only=True, tag="tools"):
    """Says how the requests for tools are answered from here on.

    Attributes:
        answer: With an output, with an error, or never.
        output: What a tool gives.
        delay_seconds: From the request to the answer.
        copies: How often each answer is sent, under ids of their own.
    """

    answer: Literal["output", "error", "never"] = "output"
    output: Any = "done"
    delay_seconds: Duration = 0
    copies: Annotated[int, Meta(ge=1, le=10)] = 1


class ThinkStep(Step, frozen=True, kw_only=True, tag="think"):
    """Does nothing for a while, as a person does; reads on.

    Attributes:
        seconds: How long.
    """

    seconds: Duration


class LoopStep(Step, frozen=True, kw_only=True, tag="loop"):
    """Does steps again and again.

    Attributes:
        times: How often.
        steps: What.
        every_seconds: Begins each time so long after the last began; where that is
            not possible it begins late, and the times of its first send count
            from when it was due.
    """

    times: Count
    steps: Annotated[list["AnyStep"], Meta(min_length=1)]
    every_seconds: Seconds = 0


AnyStep = (
    OpenStep | SendStep | WaitStep | InterruptStep | DropStep | ResumeStep | ReadStep
    | ToolsStep | ThinkStep | LoopStep
)  # fmt: skip
