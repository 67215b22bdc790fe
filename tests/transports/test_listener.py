import logging
from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from websockets.exceptions import InvalidStatus

from wsserver.transports.websocket import WebSocket

HUSH = "HUSH123"


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


async def test_a_handshake_of_ours_is_answered_with_the_version_alone(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    _, answer = await rig.raw(Sec_WebSocket_Protocol=f"bearer.{HUSH}, wsserver.v1")
    assert status(answer) == 101
    assert b"Sec-WebSocket-Protocol: wsserver.v1\r\n" in answer
    assert HUSH.encode() not in answer
    assert b"Server:" not in answer
    assert b"Extensions" not in answer
    served = await rig.connection()
    assert served.handshake.token == HUSH
    assert served.handshake.common_version
    assert served.handshake.peer.startswith("127.0.0.1:")
    assert HUSH not in caplog.text


async def test_a_client_without_subprotocols_is_taken(rig: Any) -> None:
    _, answer = await rig.raw(Authorization=f"Bearer {HUSH}")
    assert status(answer) == 101
    assert (await rig.connection()).handshake.token == HUSH


async def test_a_client_of_another_version_is_told_later(rig: Any) -> None:
    _, answer = await rig.raw(Sec_WebSocket_Protocol="wsserver.v9")
    assert status(answer) == 101
    assert b"Protocol" not in answer.partition(b"\r\n")[2]
    assert not (await rig.connection()).handshake.common_version


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_WebSocket_Protocol": f"bearer.{HUSH}=, wsserver.v1"},
        {"Authorization": f"Bearer {HUSH}", "Sec_WebSocket_Key": "bad"},
        {"Authorization": f"Bearer {HUSH}", "Origin": "https://evil.example"},
        {"Origin": f"https://{HUSH}.example"},
    ],
)
async def test_a_refused_client_hears_and_leaves_nothing_of_its_secret(
    rig: Any, caplog: pytest.LogCaptureFixture, headers: dict[str, str]
) -> None:
    caplog.set_level(logging.DEBUG)
    client, answer = await rig.raw(**headers)
    answer += await client.receive_all()
    assert status(answer) in (400, 403)
    assert HUSH.encode() not in answer
    assert HUSH not in caplog.text
    assert rig.served == []


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("https://evil.example", 403),
        ("null", 403),
        ("http://127.0.0.1:{port}", 101),
        ("https://chat.example.org", 101),
    ],
)
async def test_a_page_connects_only_from_where_it_may(
    rig: Any, origin: str, expected: int
) -> None:
    _, answer = await rig.raw(Origin=origin.format(port=rig.port))
    assert status(answer) == expected
    assert len(rig.served) == (expected == 101)


async def test_a_rebound_name_gets_nothing_but_a_sign_of_life(rig: Any) -> None:
    name = f"rebound.example:{rig.port}"
    _, answer = await rig.raw(Host=name, Origin=f"http://{name}")
    assert status(answer) == 421
    for path, expected in [("/", 421), ("/metrics", 421), ("/healthz", 200)]:
        request = f"GET {path} HTTP/1.1\r\nHost: {name}\r\n\r\n"
        _, answer = await rig.ask(request.encode())
        assert status(answer) == expected


async def test_whoever_asks_by_head_gets_no_body_in_any_case(rig: Any) -> None:
    for host, path, expected in [
        ("rebound.example", "/", b"421"),
        ("localhost", "/v1/chat", b"426"),
        ("localhost", "/nothing", b"404"),
        ("localhost", "/healthz", b"200"),
    ]:
        request = f"HEAD {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"
        client, answer = await rig.ask(request.encode())
        answer += await client.receive_all()
        assert answer[9:12] == expected
        assert b"\r\nContent-Length: " in answer
        assert answer.endswith(b"\r\n\r\n")


async def test_more_connections_than_allowed_are_told_to_come_back(rig: Any) -> None:
    await rig.pair()
    assert rig.listener is not None
    rig.listener._endpoint = replace(rig.listener._endpoint, max_connections=1)
    with pytest.raises(InvalidStatus) as caught:
        await rig.client()
    response = caught.value.response
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "5"


async def test_a_server_that_takes_nobody_says_why(rig: Any) -> None:
    rig.reason = "draining"
    with pytest.raises(InvalidStatus) as caught:
        await rig.client()
    assert caught.value.response.status_code == 503
    assert caught.value.response.body == b"draining\n"


async def test_probes_and_strangers_leave_no_line_in_the_log(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    host = f"Host: 127.0.0.1:{rig.port}\r\n"
    for message, expected in [
        (f"GET /healthz HTTP/1.1\r\n{host}\r\n", 200),
        (f"GET /healthz HTTP/1.0\r\n{host}\r\n", 200),
        (f"HEAD /readyz HTTP/1.1\r\n{host}\r\n", 200),
        (f"GET /v1/chat HTTP/1.1\r\n{host}\r\n", 426),
        (f"POST /v1/chat HTTP/1.1\r\n{host}\r\n", 405),
        (f"GET /v1/chat HTTP/1.1\r\n{host}Upgrade: h2c\r\n\r\n", 426),
        (f"GET /nothing?token={HUSH} HTTP/1.1\r\n{host}\r\n", 404),
        (f"GET /{'x' * 9000} HTTP/1.1\r\n{host}\r\n", 414),
        (f"GET / HTTP/1.1\r\nX: {'x' * 9000}\r\n\r\n", 431),
        ("GET / HTTP/1.1\r\n" + "X: 1\r\n" * 200 + "\r\n", 431),
    ]:
        _, answer = await rig.ask(message.encode())
        assert status(answer) == expected, message[:60]
    for garbage in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"SSH-2.0-x\n",
    ):
        client, answer = await rig.ask(garbage + b"\r\n\r\n")
        assert status(answer) == 400
        client.close()
    for _ in range(20):
        client = type(rig.clients[0])()
        rig.clients.append(client)
        await client.connect(rig.port)
        client.vanish()
    await rig.pair()
    assert caplog.records == []


async def test_a_thousand_handshakes_at_once_all_succeed(rig: Any) -> None:
    count = 1_000
    answers = list[int]()

    async def connect() -> None:
        _, answer = await rig.raw()
        answers.append(status(answer))

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(connect)
    assert answers == [101] * count
    await rig.connection(count - 1)


async def test_stopping_waits_for_nobody(rig: Any) -> None:
    stranger = type((await rig.raw())[0])()
    rig.clients.append(stranger)
    await stranger.connect(rig.port)
    served = await rig.connection()
    transport: WebSocket = served.transport
    transport.write([b"x" * 100_000] * 5)
    served.leave.set()
    with anyio.fail_after(1):
        await rig.listener.stop()
    assert transport.protocol.state.name == "CLOSED"
    late = type(stranger)()
    rig.clients.append(late)
    with pytest.raises(ConnectionRefusedError):
        await late.connect(rig.port)
