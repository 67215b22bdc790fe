"""The names of all that is measured, and what each means.

The one list of them: recorders, thresholds, reports and the reference use it.
"""

from typing import Literal

Measure = Literal[
    "connect", "open", "ttft", "upstream_ttft", "gap", "tpot", "turn",
    "interrupt_reply", "interrupt_done", "resume", "tool", "late", "lag",
]  # fmt: skip

MEASURES: dict[Measure, str] = {
    "connect": "From the begin of the TCP connection to `welcome`.",
    "open": "From `open` to its reply.",
    "ttft": "Time to first token: from `send` to the first piece of text, reasoning or"
    " call. What came late at this end is in it: it counts from when the send was due.",
    "upstream_ttft": "What the server says that the model took to its first token.",
    "gap": "Between pieces of text as they come.",
    "tpot": "Time per output token: from the first piece to the end of the turn, by the"
    " output tokens after the first that the upstream counted. Only completed turns"
    " of one model call.",
    "turn": "From `send` to `done`.",
    "interrupt_reply": "From `interrupt` to its reply.",
    "interrupt_done": "From `interrupt` to the `done` of the turn that it stopped.",
    "resume": "From the begin of the new connection to `caught_up`.",
    "tool": "From the answer to a `tool_request` to its event `tool_result`.",
    "late": "How much later than due a user began, or a time of a loop with"
    " `every_seconds`.",
    "lag": "How late a timer of this end fires: so much of every time may be its own.",
}

PERCENTILES = {
    "p50": 50.0, "p75": 75.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9,
}  # fmt: skip
FIELDS = ("count", "mean", "min", *PERCENTILES, "max")

TOTALS: dict[str, str] = {
    "users": "Users that began a script.",
    "scripts": "Scripts that were done to their end, one for each conversation.",
    "failed": "Scripts that an error ended.",
    "unfinished": "Scripts that were still running when the time was over.",
    "connections": "Connections made; those for reading again are not among them.",
    "disconnects": "Connections lost that the scenario did not drop.",
    "drops": "Connections that the scenario dropped.",
    "conversations": "Conversations opened.",
    "reread": "Conversations read again from the start and found the same or not.",
    "turns": "Messages sent.",
    "ended": "Turns that ended.",
    "incomplete": "Turns that ended with `incomplete`.",
    "frames": "Frames that came.",
    "bytes": "Bytes of them.",
    "sent_frames": "Frames sent.",
    "tokens": "Pieces of answer that came, by their numbers.",
    "output_tokens": "Output tokens that the server counted.",
}

COUNTED: dict[str, str] = {
    "errors": "By code: refused commands, failed turns, connections that could not be"
    " made (`connect_failed`), waits that took too long (`wait_timeout`).",
    "closes": "Close codes that the server gave; `none` where none came.",
    "statuses": "How turns ended: `completed`, or the status with its reason, such as"
    " `incomplete/upstream_stalled`.",
    "interrupts": "Outcomes of interrupts.",
    "resumes": "Outcomes of opens with a cursor.",
    "tools": "Outcomes of tool results.",
    "violations": "What the oracle found, by kind.",
}

RATES: dict[str, str] = {
    "errors.rate": "Errors for each message sent.",
    "errors.count": "All errors.",
    "oracle.violations": "All that the oracle found. Any is exit code 3, with or"
    " without a threshold.",
    "completed.rate": "Completed turns among those that ended.",
    "incomplete.rate": "Incomplete turns among those that ended.",
    "tokens.per_second": "Pieces of answer a second, over the whole run.",
    "turns.per_second": "Turns that ended a second.",
    "cpu.mean": "How busy this end's processes were, on average, in percent of a core.",
    "cpu.max": "The busiest second of the busiest process, in percent of a core.",
}
