"""The tally of what a turn's model calls cost.

What the upstream reports counts. A call that ended without a report (it was
interrupted, it broke off, the upstream never reports) is estimated: a token per
fragment or per four bytes, whichever is more.
"""

from wsserver.engine.model import Usage

BYTES_PER_TOKEN = 4


class Tally:
    """Adds up model calls.

    Attributes:
        model_calls: How many requests went out, those made again too.
        estimated: Whether some of the numbers are.
        fragments: With content, of the running call.
        bytes: Of their text.
    """

    __slots__ = (
        "_cached", "_input", "_open", "_output", "_prompt_bytes", "_reasoning", "bytes",
        "estimated", "fragments", "model_calls",
    )  # fmt: skip

    def __init__(self) -> None:
        self.model_calls = 0
        self.estimated = False
        self._input = 0
        self._output = 0
        self._reasoning: int | None = None
        self._cached: int | None = None
        self._prompt_bytes = 0
        self.fragments = 0
        self.bytes = 0
        self._open = False

    def called(self, prompt_bytes: int) -> None:
        """A request goes out."""
        self.model_calls += 1
        self._prompt_bytes = prompt_bytes
        self.fragments = self.bytes = 0
        self._open = True

    def refused(self, usage: Usage | None) -> None:
        """The call failed: it cost what was reported, else what came, maybe nothing."""
        if usage is None and not self.fragments:
            self._open = False
        else:
            self.ended(usage)

    def ended(self, usage: Usage | None) -> None:
        """The call is over, with the upstream's report if there was one."""
        if not self._open:
            return
        self._open = False
        if usage is None:
            self.estimated = True
            self._input += self._prompt_bytes // BYTES_PER_TOKEN
            self._output += max(self.fragments, -(-self.bytes // BYTES_PER_TOKEN))
            return
        self._input += usage.input_tokens
        self._output += usage.output_tokens
        if usage.reasoning_tokens is not None:
            self._reasoning = (self._reasoning or 0) + usage.reasoning_tokens
        if usage.cached_tokens is not None:
            self._cached = (self._cached or 0) + usage.cached_tokens

    @property
    def output_tokens(self) -> int:
        """Output tokens of all calls that are over."""
        return self._output

    def members(self) -> dict[str, int | bool | None]:
        """Returns the members of the `usage` event.

        A turn that was stopped before its first request went out counts as one
        call: none means that its message was taken back.
        """
        return {
            "input_tokens": self._input,
            "output_tokens": self._output,
            "reasoning_tokens": self._reasoning,
            "cached_tokens": self._cached,
            "estimated": self.estimated,
            "model_calls": max(1, self.model_calls),
        }
