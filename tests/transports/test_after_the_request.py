"""Bytes behind a request, and what is no request at all: answered, not logged."""

from typing import Any

import anyio
import pytest

HOST = "Host: localhost\r\n"
GET = f"GET /healthz HTTP/1.1\r\n{HOST}\r\n".encode()


def statuses(answer: bytes) -> list[int]:
    lines = [line for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
    return [int(line.split(b" ", 2)[1]) for line in lines]


@pytest.mark.parametrize("more", [b"xx", GET * 9, b"x" * 100_000, b"\r\n", b"\xff" * 9])
async def test_what_follows_a_request_does_not_cost_its_answer(
    rig: Any, caplog: pytest.LogCaptureFixture, more: bytes
) -> None:
    client, answer = await rig.ask(GET + more)
    answer += await client.receive_all()
    assert statuses(answer) == [200], "one request, one answer"
    assert answer.endswith(b"ok\n")
    assert caplog.records == []


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1_000])
async def test_a_request_in_pieces_is_read_with_the_frames_behind_it(
    rig: Any, frame: Any, size: int
) -> None:
    frames = b"".join(frame(1, b"%d" % n) for n in range(3))
    message = rig.request() + frames
    cut = len(message) - size - len(frames)
    client = type((await rig.raw())[0])()
    rig.clients.append(client)
    await client.connect(rig.port)
    await client.send(message[:cut])
    for at in range(cut, len(message), size):
        await anyio.lowlevel.checkpoint()
        await client.send(message[at : at + size])
    served = await rig.connection(1)
    assert [await served.transport.receive() for _ in range(3)] == ["0", "1", "2"]


async def test_a_bad_frame_behind_a_handshake_closes_it_as_any_other_time(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    client, answer = await rig.ask(rig.request() + b"GET / HTTP/1.1\r\n\r\n")
    served = await rig.connection()
    assert (await served.end()).code == 1002
    served.leave.set()
    answer += await client.receive_all()
    assert statuses(answer) == [101]
    assert b"\x03\xea" in answer, "a close frame with 1002"
    assert caplog.records == []


@pytest.mark.parametrize(
    "message",
    [
        f"POST /v1/chat HTTP/1.1\r\n{HOST}Content-Length: 5\r\n\r\nhello",
        f"POST / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        f"GET /\x00 HTTP/1.1\r\n{HOST}A\x00: b\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\r\n\r\n",
    ],
)
async def test_what_cannot_be_read_is_told_what_can(
    rig: Any, caplog: pytest.LogCaptureFixture, message: str
) -> None:
    client, answer = await rig.ask(message.encode())
    answer += await client.receive_all()
    assert statuses(answer) == [400]
    assert b"by GET or HEAD, without a body" in answer
    assert caplog.records == []
