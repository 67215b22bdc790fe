"""Views that gather text, in virtual time: what was written when."""

from typing import Any

import anyio
import msgspec

from protocol.content import Config
from protocol.events import ConfigEvent
from tests.connections.journal import (
    Desk,
    Journal,
    settle,
)

DELAY = 0.2
TICK = 0.001


class Sent:
    """When which frame was written."""

    def __init__(self, d: Desk) -> None:
        self.frames: list[tuple[float, dict[str, Any]]] = []
        write = d.wire.write

        def noted(frames: list[bytes]) -> None:
            now = anyio.current_time()
            self.frames += [(now, msgspec.json.decode(frame)) for frame in frames]
            write(frames)

        d.wire.write = noted  # type: ignore[assignment,method-assign]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [frame for _, frame in self.frames if frame["type"] != "caught_up"]

    @property
    def texts(self) -> list[str]:
        return [frame["text"] for frame in self.events if "text" in frame]


async def something_else(journal: Journal) -> None:
    journal.log.append(ConfigEvent, config=Config())
    await journal.commit()
    await settle()
