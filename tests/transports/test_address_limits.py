"""How many connections an address may have, on a real port."""

from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from websockets.exceptions import InvalidStatus

from tests.fakes.weight import weight
from wsserver.transports.addresses import AddressCounts, read_networks

# Loopback is not counted, so clients come through a "proxy" that is believed.
FAR, OTHER = "192.0.2.1", "192.0.2.2"


@pytest.fixture
def limited(rig: Any) -> Any:
    """Two connections an address, and a proxy here that is believed."""
    listener = rig.listener
    listener._endpoint = replace(
        listener._endpoint, trusted_proxies=read_networks(["127.0.0.1"])
    )
    listener._addresses = AddressCounts(2)
    return rig


def through_proxy(rig: Any, address: str) -> Any:
    return rig.client(additional_headers={"X-Forwarded-For": address})


async def gone(rig: Any, number: int) -> None:
    with anyio.fail_after(5):
        while len(rig.listener._counted) > number:
            await anyio.lowlevel.checkpoint()


async def test_one_connection_too_many_of_an_address(limited: Any) -> None:
    first = await through_proxy(limited, FAR)
    await through_proxy(limited, FAR)
    with pytest.raises(InvalidStatus) as caught:
        await through_proxy(limited, FAR)
    response = caught.value.response
    assert response.status_code == 429
    assert response.headers["Retry-After"] == "5"
    assert response.body == b"too many connections are open from this address\n"
    assert FAR.encode() not in response.body
    await through_proxy(limited, OTHER)
    await limited.client()
    await first.close()
    (await limited.connection(0)).leave.set()
    await gone(limited, 3)
    await through_proxy(limited, FAR)


async def test_the_log_names_the_client_and_not_its_proxy(limited: Any) -> None:
    await through_proxy(limited, FAR)
    assert (await limited.connection()).handshake.peer == FAR


async def test_without_trust_a_header_is_nothing(rig: Any) -> None:
    rig.listener._addresses = AddressCounts(1)
    for number in range(3):
        await through_proxy(rig, FAR)
        served = await rig.connection(number)
        assert served.handshake.peer.startswith("127.0.0.1:")
    assert weight(rig.listener._addresses) == weight(AddressCounts(1))


async def test_a_handshake_that_fails_takes_no_place(limited: Any) -> None:
    for _ in range(5):
        client, answer = await limited.raw(X_Forwarded_For=FAR, Sec_WebSocket_Key="bad")
        answer += await client.receive_all()
        assert b" 400 " in answer
        client.close()
        await gone(limited, 0)
    for origin in ("https://evil.example", "null"):
        _, answer = await limited.raw(X_Forwarded_For=FAR, Origin=origin)
        assert b" 403 " in answer
    await gone(limited, 0)
    await through_proxy(limited, FAR)
    await through_proxy(limited, FAR)


async def test_who_vanishes_leaves_its_place(limited: Any) -> None:
    for number in range(6):
        client, answer = await limited.raw(X_Forwarded_For=FAR)
        assert b" 101 " in answer
        client.vanish()
        (await limited.connection(number)).leave.set()
        await gone(limited, 0)
    assert weight(limited.listener._addresses) == weight(AddressCounts(2))


async def test_a_probe_is_answered_whatever_its_address_has(limited: Any) -> None:
    for _ in range(2):
        await through_proxy(limited, FAR)
    host = f"Host: 127.0.0.1:{limited.port}\r\nX-Forwarded-For: {FAR}\r\n"
    _, answer = await limited.ask(f"GET /healthz HTTP/1.1\r\n{host}\r\n".encode())
    assert b" 200 " in answer


async def test_who_left_before_it_was_asked_takes_no_place(limited: Any) -> None:
    client, _ = await limited.raw(X_Forwarded_For=FAR)
    served = await limited.connection()
    client.vanish()
    served.leave.set()
    await gone(limited, 0)
    assert limited.listener._find_room(served.transport, FAR) is None
    assert weight(limited.listener._addresses) == weight(AddressCounts(2))
