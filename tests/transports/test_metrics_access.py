"""Who gets the metrics, by each rule."""

from typing import Any

import pytest
from websockets.datastructures import Headers

from wsserver.transports.handshake import RefusedError
from wsserver.transports.metrics_access import MetricsAccess

TOKEN = MetricsAccess(rule="token", token="s3cret")  # noqa: S106
HERE = ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]
ELSEWHERE = ["192.0.2.1", "172.17.0.1", "2001:db8::1", "", None]


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def refusal(access: MetricsAccess, remote: str | None, **headers: str) -> int:
    """Returns with which status a request is refused; 0 if it is not."""
    given = Headers({name.replace("_", "-"): v for name, v in headers.items()})
    try:
        access.check(remote, given)
    except RefusedError as refused:
        return refused.status
    return 0


@pytest.mark.parametrize("remote", HERE)
def test_by_default_programs_of_this_machine_get_them(remote: str) -> None:
    assert refusal(MetricsAccess(), remote) == 0


@pytest.mark.parametrize("remote", ELSEWHERE)
def test_by_default_nobody_else_does(remote: str | None) -> None:
    assert refusal(MetricsAccess(), remote) == 403


@pytest.mark.parametrize("name", ["X_Forwarded_For", "Forwarded", "x_real_ip", "VIA"])
def test_what_a_proxy_on_this_machine_passes_on_is_not_of_this_machine(
    name: str,
) -> None:
    assert refusal(MetricsAccess(), "127.0.0.1", **{name: "127.0.0.1"}) == 403


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        (None, 401),
        ("Bearer s3cret", 0),
        ("bearer s3cret", 0),
        ("Bearer s3cre", 401),
        ("Bearer ", 401),
        ("Basic s3cret", 401),
        ("Bearer \xe4", 401),
    ],
)
def test_a_token_is_asked_for_wherever_one_comes_from(
    authorization: str | None, expected: int
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    for remote in (*HERE, *ELSEWHERE):
        assert refusal(TOKEN, remote, **headers) == expected


@pytest.mark.parametrize("remote", [*HERE, *ELSEWHERE])
def test_open_is_open(remote: str | None) -> None:
    assert refusal(MetricsAccess(rule="open"), remote, Via="1.1 proxy") == 0


async def test_over_http(rig: Any) -> None:
    host = f"Host: 127.0.0.1:{rig.port}\r\n"
    for line, expected in [("", 200), ("X-Forwarded-For: 192.0.2.1\r\n", 403)]:
        _, answer = await rig.ask(f"GET /metrics HTTP/1.1\r\n{host}{line}\r\n".encode())
        assert status(answer) == expected
    rig.listener._metrics_access = TOKEN
    for line, expected in [("", 401), ("Authorization: Bearer s3cret\r\n", 200)]:
        _, answer = await rig.ask(f"GET /metrics HTTP/1.1\r\n{host}{line}\r\n".encode())
        assert status(answer) == expected
        assert (b"WWW-Authenticate: Bearer\r\n" in answer) is (expected == 401)
