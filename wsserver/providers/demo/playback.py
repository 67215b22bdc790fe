"""Gives an answer out in time.

Each token is due at a time that is fixed when the request is made, so that late
wake-ups do not add up: a stream at 30 tokens a second has given 300 after ten
seconds, whatever happened on the way.
"""

import math
from collections.abc import AsyncGenerator, Sequence

import anyio
import anyio.lowlevel
from msgspec import Struct

from wsserver.engine.model import Finished, ModelEvent
from wsserver.providers.demo.answer import TokenEvent

FLAT_OUT_BATCH = 64
"""Tokens between two checkpoints when there is no pace.

About what one read of a fast local upstream holds; it keeps other tasks waiting
for microseconds only.
"""


class Pace(Struct, frozen=True, kw_only=True):
    """When tokens are due.

    Attributes:
        first_token_seconds: From the request to the first token.
        tokens_per_second: From there on; infinite for as fast as it goes.
    """

    first_token_seconds: float
    tokens_per_second: float


async def play(
    events: tuple[TokenEvent, ...],
    finished: Finished | None,
    pace: Pace,
    requested_at: float,
) -> AsyncGenerator[Sequence[ModelEvent], None]:
    """Yields, at each wake-up, everything that is due by then.

    Args:
        events: One event for each token.
        finished: Comes with the last token; None for silence from there on.
        pace: When tokens are due.
        requested_at: When the request was made, by the event loop's clock.
    """
    first_due = requested_at + pace.first_token_seconds
    rate = pace.tokens_per_second
    flat_out = math.isinf(rate)
    end = len(events)
    given = 0
    await anyio.sleep_until(first_due)
    while True:
        if flat_out:
            due = given + FLAT_OUT_BATCH
        else:
            elapsed = anyio.current_time() - first_due
            due = max(given + 1, int(elapsed * rate) + 1)
        if due >= end:
            break
        yield events[given:due]
        given = due
        if flat_out:
            await anyio.lowlevel.checkpoint()
        else:
            await anyio.sleep_until(first_due + given / rate)
    if finished is not None:
        yield (*events[given:], finished)
        return
    if given < end:
        yield events[given:]
    await anyio.sleep_forever()
