import socket
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK

from wsserver.connections.transport import TransportClosed
from wsserver.transports.websocket import HIGH_WATER_BYTES, WebSocket

TEXT, BINARY, CLOSE, PING = 1, 2, 8, 9
PONG_HEAD = b"\x8a"
PRODUCT_LIMIT = 65_536
HARD_LIMIT = 4 * PRODUCT_LIMIT


async def test_frames_arrive_in_order_and_whole(rig: Any) -> None:
    client, served = await rig.pair()
    sizes = [0, 1, 125, 126, 65_535, 65_536, 300_000, 3]
    frames = [f"{n % 10}".encode() * size for n, size in enumerate(sizes)]
    served.transport.write(frames[:4])
    served.transport.write(frames[4:])
    for frame in frames:
        assert await client.recv() == frame.decode()
    assert served.transport.buffered_bytes() == 0
    assert served.transport.written_bytes > sum(sizes)


async def test_frames_written_at_once_are_one_write(
    rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, served = await rig.pair()
    writes: list[bytes] = []

    class Recorder:
        def write(self, data: bytes) -> None:
            writes.append(data)

        def is_closing(self) -> bool:
            return False

        def get_write_buffer_size(self) -> int:
            return 0

    with monkeypatch.context() as patch:
        patch.setattr(served.transport, "_out", Recorder())
        served.transport.write([b"a", b"bc"])
    assert writes == [b"\x81\x01a\x81\x02bc"]


async def test_text_comes_in_also_in_pieces(rig: Any, frame: Any) -> None:
    client, _ = await rig.raw()
    served = await rig.connection()
    word = "déjà vu".encode()
    await client.send(frame(TEXT, b"whole"))
    await client.send(frame(TEXT, word[:2], last=False) + frame(PING))
    await client.send(frame(0, word[2:]))
    assert await served.transport.receive() == "whole"
    assert await served.transport.receive() == "déjà vu"
    assert served.transport.received_bytes > len(rig.request()) + len(word)


async def test_between_the_two_limits_a_frame_is_the_products_affair(rig: Any) -> None:
    client, served = await rig.pair()
    await client.send("x" * (PRODUCT_LIMIT + 1))
    assert len(await served.transport.receive()) == PRODUCT_LIMIT + 1
    await client.send("x" * HARD_LIMIT)
    assert len(await served.transport.receive()) == HARD_LIMIT


@pytest.mark.parametrize(
    ("opcode", "payload", "code"),
    [
        (TEXT, b"x" * (HARD_LIMIT + 1), 1009),
        (TEXT, b"\xff", 1007),
        (BINARY, b"bytes", 1003),
    ],
    ids=["above the hard limit", "not UTF-8", "binary"],
)
async def test_what_ends_a_connection(
    rig: Any, frame: Any, opcode: int, payload: bytes, code: int
) -> None:
    client, _ = await rig.raw()
    served = await rig.connection()
    await client.send(frame(opcode, payload))
    closed = await served.end()
    assert (closed.code, closed.by_peer) == (code, False)
    received = await client.receive_all()
    assert received[:1] == b"\x88"
    assert int.from_bytes(received[2:4], "big") == code


async def test_a_close_of_the_peer_says_its_code(rig: Any) -> None:
    client, served = await rig.pair()
    await client.close(4321, "enough")
    closed = await served.end()
    assert (closed.code, closed.reason) == (4321, "enough")
    assert closed.by_peer


async def test_a_close_of_the_server_reaches_the_peer(rig: Any) -> None:
    client, served = await rig.pair()
    served.transport.write([b"last"])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(served.transport.close, 1012, "restart " * 30)
        assert await client.recv() == "last"
        with pytest.raises(ConnectionClosedError) as caught:
            await client.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1012
    assert caught.value.rcvd.reason.startswith("restart restart")
    closed = await served.end()
    assert closed.code == 1012
    assert not closed.by_peer
    served.transport.write([b"too late"])
    with pytest.raises(TransportClosed):
        await served.transport.writable()


async def test_a_handler_that_returns_closes_normally(rig: Any) -> None:
    client, served = await rig.pair()
    served.leave.set()
    with pytest.raises(ConnectionClosedOK) as closed:
        await client.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1000  # 1001 counts as closed well, too


async def test_a_handler_that_fails_closes_with_1011_and_is_logged(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    client, served = await rig.pair()
    served.error = ValueError("a bug")
    served.leave.set()
    with pytest.raises(ConnectionClosedError) as caught:
        await client.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1011
    with anyio.fail_after(5):
        while not caplog.records:
            await anyio.lowlevel.checkpoint()
    assert caplog.records[0].exc_info is not None


@pytest.mark.parametrize("when", ["idle", "while written to"])
async def test_a_peer_that_vanishes_leaves_no_line_in_the_log(
    rig: Any, caplog: pytest.LogCaptureFixture, when: str
) -> None:
    client, _ = await rig.raw()
    served = await rig.connection()
    client.vanish()
    if when == "while written to":
        for _ in range(20):
            served.transport.write([b"x" * 100_000])
            await anyio.lowlevel.checkpoint()
    assert (await served.end()).code is None
    served.transport.write([b"x"])
    served.leave.set()
    with anyio.fail_after(5):
        await served.left.wait()
    assert caplog.records == []


async def fill(transport: WebSocket) -> None:
    """Writes until the peer's buffers and ours are full."""
    with anyio.fail_after(5):
        while transport.buffered_bytes() <= HIGH_WATER_BYTES:
            transport.write([b"x" * 16_000])
            await anyio.lowlevel.checkpoint()


async def test_a_peer_that_reads_late_gets_everything(rig: Any) -> None:
    client, answer = await rig.raw(receive_buffer_bytes=4096)
    served = await rig.connection()
    await fill(served.transport)
    written = served.transport.written_bytes - len(answer)
    waiting = anyio.Event()

    async def wait() -> None:
        await served.transport.writable()
        waiting.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert not waiting.is_set()
        received = 0
        while received < written:
            received += len(await client.receive())
    assert waiting.is_set()


async def test_the_kernel_holds_little_for_a_peer_that_does_not_read(rig: Any) -> None:
    await rig.raw(receive_buffer_bytes=4096)
    served = await rig.connection()
    await fill(served.transport)
    taken = served.transport.written_bytes - served.transport.buffered_bytes()
    assert taken < 250_000


async def test_a_peer_that_never_reads_cannot_hold_up_a_close(rig: Any) -> None:
    await rig.raw(receive_buffer_bytes=4096)
    served = await rig.connection()
    await fill(served.transport)
    with anyio.fail_after(2):
        await served.transport.close(1012, "restart")
    with pytest.raises(TransportClosed):
        await served.transport.receive()


async def test_an_abort_ends_the_wait_for_a_peer_that_never_reads(rig: Any) -> None:
    await rig.raw(receive_buffer_bytes=4096)
    served = await rig.connection()
    await fill(served.transport)

    async def wait() -> None:
        with pytest.raises(TransportClosed):
            await served.transport.writable()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            served.transport.abort()


async def test_more_than_the_bound_in_the_buffer_drops_the_peer(rig: Any) -> None:
    await rig.raw(receive_buffer_bytes=4096)
    served = await rig.connection()
    for _ in range(40):
        served.transport.write([b"x" * PRODUCT_LIMIT])
    closed = await served.end()
    assert (closed.code, closed.by_peer) == (None, False)


async def test_a_half_closed_peer_that_never_reads_goes_away(rig: Any) -> None:
    client, _ = await rig.raw(receive_buffer_bytes=4096)
    served = await rig.connection()
    await fill(served.transport)
    client.socket.shutdown(socket.SHUT_WR)
    assert (await served.end()).code is None


async def test_a_peer_that_says_close_and_stays_goes_away(rig: Any, frame: Any) -> None:
    client, _ = await rig.raw()
    served = await rig.connection()
    await client.send(frame(CLOSE, (1000).to_bytes(2, "big")))
    assert (await served.end()).code == 1000


async def test_a_ping_is_answered(rig: Any) -> None:
    client, _ = await rig.pair()
    with anyio.fail_after(5):
        await (await client.ping(b"hello"))


async def test_of_pings_while_the_buffer_is_full_the_newest_is_answered_later(
    rig: Any, frame: Any
) -> None:
    client, _ = await rig.raw(receive_buffer_bytes=4096)
    served = await rig.connection()
    await fill(served.transport)
    written = served.transport.written_bytes
    received = served.transport.received_bytes
    pings = b"".join(frame(PING, b"ping %d" % n) for n in range(50))
    await client.send(pings)
    with anyio.fail_after(5):
        while served.transport.received_bytes < received + len(pings):
            await anyio.lowlevel.checkpoint()
    assert served.transport.written_bytes == written
    tail = b""
    while not tail.endswith(PONG_HEAD + b"\x07ping 49"):
        tail = (tail + await client.receive())[-1000:]
    assert b"ping 48" not in tail


async def test_a_ping_flood_without_reading_takes_no_memory_and_is_ended(
    rig: Any, frame: Any
) -> None:
    client, _ = await rig.raw(receive_buffer_bytes=4096)
    served = await rig.connection()
    highest = 0

    async def flood() -> None:
        pings = frame(PING, b"x" * 125) * 2_000
        try:
            while True:
                await client.send(pings)
        except OSError:
            pass

    async def watch() -> None:
        nonlocal highest
        while True:
            highest = max(highest, served.transport.buffered_bytes())
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(flood)
        tasks.start_soon(watch)
        closed = await served.end()
        tasks.cancel_scope.cancel()
    assert closed.code == 4529
    assert highest < HIGH_WATER_BYTES + 262_144


async def test_a_flood_of_small_frames_waits_until_it_is_read(
    rig: Any, frame: Any
) -> None:
    client, _ = await rig.raw()
    served = await rig.connection()
    count = 50_000
    transport: WebSocket = served.transport
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            client.send, b"".join(frame(TEXT, b"%06d" % n) for n in range(count))
        )
        with anyio.fail_after(5):
            while not transport.recv_messages.paused:
                await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        assert transport.received_bytes < 300_000
        assert len(transport.recv_messages.frames) < 3_000
        for n in range(count):
            assert await transport.receive() == f"{n:06}"


async def test_a_flood_lets_others_have_their_turn(rig: Any, frame: Any) -> None:
    client, _ = await rig.raw()
    served = await rig.connection()
    count, read, most, last = 5_000, 0, 0, 0
    await client.send(frame(TEXT, b"{}") * count)

    async def take_turns() -> None:
        nonlocal most, last
        while True:
            most, last = max(most, read - last), read
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_turns)
        for _ in range(count):
            await served.transport.receive()
            read += 1
        most = max(most, read - last)
        tasks.cancel_scope.cancel()
    assert most <= 2


async def test_peers_are_asked_for_a_sign_of_life(rig: Any) -> None:
    client, _ = await rig.raw()
    served = await rig.connection()
    received = b""
    served.transport.keep_pinging(0.01)
    while received.count(b"\x89\x00") < 3:
        received += await client.receive()


async def test_small_frames_are_not_held_back(rig: Any) -> None:
    _, served = await rig.pair()
    sock = served.transport.transport.get_extra_info("socket")
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
