"""A server that may open few files, and a crowd."""

import re
import socket
from collections import Counter
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread

from tests.fakes.server import ServerProcess, server

FILES, CROWD = 150, 130
REQUEST = (
    b"GET /v1/chat HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def crowd(process: ServerProcess) -> Counter[bytes]:
    """Connects all before any of them says something; returns the answers."""
    port = int(process.http.rpartition(":")[2])
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(CROWD)]
    try:
        for client in clients:
            client.settimeout(10)
            # Who was told before can't say it, but reads what it was told.
            with suppress(OSError):
                client.sendall(REQUEST)
        return Counter(client.recv(4096)[9:12] for client in clients)
    finally:
        for client in clients:
            client.close()


async def test_a_crowd_that_there_are_no_files_for_is_answered_all_the_same(
    tmp_path: Path,
) -> None:
    async with server(
        "--store", "memory", "--log-format", "json", folder=tmp_path, open_files=FILES
    ) as process:
        found = re.search(r'"connections":(\d+),.*few_open_files', process.log)
        assert found is not None
        room = int(found[1])
        answers = await anyio.to_thread.run_sync(crowd, process)
        assert answers == {b"101": room, b"503": CROWD - room}
        with anyio.fail_after(10):
            while '"event":"clients_turned_away"' not in process.log:
                await anyio.sleep(0.05)
        assert "open_files_run_out" not in process.log
        assert await process.terminate() == 0
