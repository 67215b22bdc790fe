"""The WebSocket between the inspector and its page.

To the page: first `{"type":"recording","header":{…},"connections":[…],
"ring_bytes":…}`, then `{"type":"lines","missed":n,"lines":[…]}`, the lines as a
recording has them. From the page: orders (`wsserver.inspector.inspector`), which
show as lines. A page that is slow misses lines; nothing is kept for it.
"""

import anyio
import msgspec
import structlog

from wsserver.connections.transport import Handshake, Transport, TransportClosed
from wsserver.inspector.inspector import AnyOrder, Inspector
from wsserver.inspector.ring import Batch

FEED_PATH = "/inspect/feed"
BATCH_SECONDS = 0.1
BATCH_BYTES = 262_144

_decode = msgspec.json.Decoder(AnyOrder).decode
_encode = msgspec.json.Encoder().encode

log = structlog.get_logger(__name__)


class Feed:
    """Serves pages of the inspector."""

    def __init__(self, inspector: Inspector, ring_bytes: int) -> None:
        """Takes the inspector, and what its ring holds."""
        self._inspector = inspector
        self._ring_bytes = ring_bytes

    async def serve(self, transport: Transport, handshake: Handshake) -> None:
        """Serves one page until it leaves."""
        log.info("inspector_opened", peer=handshake.peer)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._show, transport)
                await self._listen(transport)
                tasks.cancel_scope.cancel()
        finally:
            log.info("inspector_closed", peer=handshake.peer)

    async def _listen(self, transport: Transport) -> None:
        while True:
            try:
                text = await transport.receive()
            except TransportClosed:
                return
            try:
                order = _decode(text)
            except (msgspec.MsgspecError, UnicodeError) as error:
                about = {"type": "refused", "about": str(error)}
                transport.write([_encode(about)])
            else:
                log.warning("inspector_order", order=repr(order))
                self._inspector.obey(order)

    async def _show(self, transport: Transport) -> None:
        recorder = self._inspector.recorder
        ring = recorder.ring
        first = {
            "type": "recording",
            "header": recorder.header,
            "connections": self._inspector.watched(),
            "ring_bytes": self._ring_bytes,
        }
        transport.write([_encode(first)])
        position = 0
        try:
            while True:
                await ring.wait_after(position)
                batch = ring.after(position, BATCH_BYTES)
                position = batch.through
                transport.write([_lines(batch)])
                if position == ring.head:
                    await anyio.sleep(BATCH_SECONDS)
                await transport.writable()
        except TransportClosed:
            return  # the task that listens sees it too


def _lines(batch: Batch) -> bytes:
    lines = b",".join(batch.lines)
    return b'{"type":"lines","missed":%d,"lines":[%b]}' % (batch.missed, lines)
