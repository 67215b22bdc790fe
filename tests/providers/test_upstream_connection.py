"""What an upstream may send beside an answer: it is bounded, and nobody's text."""

import asyncio

import anyio
import pytest

from wsserver.providers.http.connection import UpstreamConnection

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE = HEAD + b"3\r\none\r\n0\r\n\r\n"
READ_BYTES = 65_536
MOST_READS = 10


class Socket(asyncio.Transport):
    """Takes what is written, and knows whether it was aborted."""

    def __init__(self) -> None:
        super().__init__()
        self.aborted = False

    def write(self, data: object) -> None:
        del data

    def is_closing(self) -> bool:
        return self.aborted

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def abort(self) -> None:
        self.aborted = True


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def answered(*reads: bytes) -> tuple[UpstreamConnection, Socket, bytes]:
    """Returns what came of a request that is answered so: the body that was given."""
    connection, socket, body = UpstreamConnection(), Socket(), bytearray()
    connection.connection_made(socket)
    async with anyio.create_task_group() as tasks:

        async def read() -> None:
            await anyio.lowlevel.checkpoint()
            for data in reads:
                if not socket.aborted:
                    connection.data_received(data)
            if socket.aborted:
                connection.connection_lost(None)

        tasks.start_soon(read)
        with anyio.fail_after(5):
            await connection.request(b"GET / HTTP/1.1\r\n\r\n", b"")
            await connection.pump(body.extend)
    return connection, socket, bytes(body)


async def test_an_answer_and_no_more() -> None:
    connection, _, body = await answered(WHOLE)
    assert body == b"one"
    assert connection.reusable


@pytest.mark.parametrize("reason", [b" OK", b""])
@pytest.mark.parametrize("together", [True, False])
async def test_an_answer_that_was_not_asked_for_is_nobodys(
    reason: bytes, together: bool
) -> None:
    another = WHOLE.replace(b" OK", reason).replace(b"one", b"TWO")
    reads = [WHOLE + another] if together else [WHOLE, another]
    connection, socket, body = await answered(*reads)
    assert body == b"one"
    assert socket.aborted
    assert not connection.reusable


@pytest.mark.parametrize(
    "endless",
    [
        b"HTTP/1.1 200 ",
        b"HTTP/1.1 200 OK\r\nA: ",
        HEAD + b"3;",
        HEAD + b"3\r\none\r\n0\r\nA: ",
    ],
)
async def test_a_line_that_does_not_end_is_not_kept(endless: bytes) -> None:
    reads = [endless, *[b"a" * READ_BYTES] * MOST_READS]
    with pytest.raises(ExceptionGroup) as it:
        await answered(*reads)
    assert it.group_contains(ConnectionError, match="a line is too long")


async def test_nor_where_nobody_takes_the_body() -> None:
    connection, socket = UpstreamConnection(), Socket()
    connection.connection_made(socket)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.request, b"GET / HTTP/1.1\r\n\r\n", b"")
        await anyio.lowlevel.checkpoint()
        connection.data_received(HEAD + b"3\r\none\r\n0\r\nA: ")
    for _ in range(MOST_READS):
        if not socket.aborted:
            connection.data_received(b"a" * READ_BYTES)
    assert socket.aborted


async def test_interim_answers_are_no_lines_without_end() -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"
    _, _, body = await answered(hints * 3, WHOLE)
    assert body == b"one"


async def test_sizes_of_chunks_do_not_add_up() -> None:
    piece = [b"4000\r\n", b"x" * 0x4000 + b"\r\n"]
    _, socket, body = await answered(HEAD, *piece * 100, b"0\r\n\r\n")
    assert len(body) == 100 * 0x4000
    assert not socket.aborted


async def test_nor_where_the_body_is_taken_later() -> None:
    connection, socket = UpstreamConnection(), Socket()
    connection.connection_made(socket)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.request, b"GET / HTTP/1.1\r\n\r\n", b"")
        await anyio.lowlevel.checkpoint()
        connection.data_received(HEAD)
    for _ in range(MOST_READS):
        for data in (b"1;" + b"e" * READ_BYTES, b"\r\n", b"a", b"\r\n"):
            connection.data_received(data)
    assert not socket.aborted
    assert await connection.read() == b"a" * MOST_READS
