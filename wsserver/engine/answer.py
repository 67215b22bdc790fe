"""Whether a complete answer fits the schema that was asked for."""

from typing import Any

import msgspec

from wsserver.engine.model import Failure
from wsserver.engine.schemas import misfit

_decode = msgspec.json.Decoder().decode


class AnswerCheck:
    """Gathers the text of one model call, where there is a schema to fit."""

    def __init__(self, schema: dict[str, Any] | None) -> None:
        """Begins; without a schema everything fits, and nothing need be added."""
        self._schema = schema
        self._texts: list[str] = []
        self._refused = False

    def begin(self) -> None:
        """A model call begins: what was said before it is not the answer."""
        self._texts.clear()
        self._refused = False

    def add(self, text: str) -> None:
        """Takes a piece of the answer."""
        self._texts.append(text)

    def refuse(self) -> None:
        """The model said why it does not answer, which needs to fit nothing."""
        self._refused = True

    def misfit(self) -> Failure | None:
        """Says how the answer does not fit; None when it does."""
        if self._schema is None or self._refused:
            return None
        try:
            value = _decode("".join(self._texts))
        except (msgspec.DecodeError, RecursionError):
            wrong = "it is not JSON"
        else:
            said = misfit(self._schema, value)
            if said is None:
                return None
            wrong = said
        return Failure(
            code="schema_mismatch",
            message=f"The answer does not fit the response schema: {wrong}.",
            retryable=True,
        )
