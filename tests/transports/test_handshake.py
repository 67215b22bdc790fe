from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.datastructures import Headers

from wsserver.transports.handshake import Admission, RefusedError, read_handshake

HUSH = "HUSH123"
OPEN = Admission(
    allowed_origins=frozenset({"https://chat.example.org"}), loopback_only=True
)
KEYED = Admission(allowed_origins=frozenset(), loopback_only=False)


def refusal(call: object, *args: object) -> HTTPStatus:
    assert callable(call)
    with pytest.raises(RefusedError) as caught:
        call(*args)
    assert HUSH not in caught.value.message
    return caught.value.status


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost:8765",
        "127.0.0.1:9",
        "[::1]:8765",
        "chat.example.org",
        "chat.example.org:443",
    ],
)
def test_without_credentials_loopback_names_and_named_proxies_are_served(
    host: str,
) -> None:
    OPEN.check_host(Headers(Host=host))


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8765",
        "localhost.evil.example:8765",
        "127.0.0.1.evil.example",
        "chat.example.org:8765",
        "192.168.0.7:8765",
        "",
    ],
)
def test_without_credentials_a_rebound_name_is_not_served(host: str) -> None:
    assert refusal(OPEN.check_host, Headers(Host=host)) == 421


def test_without_credentials_a_request_names_its_host() -> None:
    assert refusal(OPEN.check_host, Headers()) == 421


def test_with_credentials_any_host_is_served() -> None:
    KEYED.check_host(Headers(Host="chat.example.com"))
    KEYED.check_host(Headers())


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (None, "localhost:8765"),
        ("http://localhost:8765", "localhost:8765"),
        ("http://LOCALHOST:8765", "localhost:8765"),
        ("http://[::1]:8765", "[::1]:8765"),
        ("https://example.com", "example.com"),
        ("https://example.com", "example.com:443"),
        ("http://example.com:80", "example.com"),
        ("https://chat.example.org", "anything"),
    ],
)
def test_no_origin_its_own_and_listed_ones_may_connect(
    origin: str | None, host: str
) -> None:
    headers = Headers(Host=host)
    if origin is not None:
        headers["Origin"] = origin
    OPEN.check_origin(headers)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://evil.example", "localhost:8765"),
        ("null", "localhost:8765"),
        ("", "localhost:8765"),
        ("http://localhost:3000", "localhost:8765"),
        ("http://localhost", "localhost:8765"),
        ("http://127.0.0.1:8765", "localhost:8765"),
        ("http://localhost:8765.evil.example", "localhost:8765"),
        ("https://chat.example.org.evil.example", "localhost:8765"),
        ("https://chat.example.org/", "localhost:8765"),
        ("http://chat.example.org", "localhost:8765"),
        ("ftp://localhost:8765", "localhost:8765"),
        ("http://", ""),
        ("http://a b", "a b"),
        (f"https://{HUSH}", "localhost:8765"),
    ],
)
def test_any_other_origin_is_forbidden(origin: str, host: str) -> None:
    headers = Headers(Host=host, Origin=origin)
    assert refusal(OPEN.check_origin, headers) == HTTPStatus.FORBIDDEN


SCHEMES = {"http": 80, "https": 443}
NAMES = st.sampled_from(["a", "b", "a.b", "b.a", "A"])
PORTS = st.sampled_from([None, 80, 443, 8765])


def authority(name: str, port: int | None) -> str:
    return name if port is None else f"{name}:{port}"


@given(st.sampled_from(sorted(SCHEMES)), NAMES, PORTS, NAMES, PORTS)
def test_the_own_origin_is_that_of_the_same_name_and_port(
    scheme: str, name: str, port: int | None, other: str, other_port: int | None
) -> None:
    headers = Headers(
        Origin=f"{scheme}://{authority(name, port)}", Host=authority(other, other_port)
    )
    own = SCHEMES[scheme]
    if name.lower() == other.lower() and (port or own) == (other_port or own):
        KEYED.check_origin(headers)
    else:
        assert refusal(KEYED.check_origin, headers) == HTTPStatus.FORBIDDEN


@given(st.text(st.characters(codec="latin-1", exclude_categories=["Cc"])))
def test_no_odd_origin_gets_in(origin: str) -> None:
    headers = Headers(Host="localhost:8765", Origin=origin)
    if origin.lower() not in {"http://localhost:8765", "https://localhost:8765"}:
        assert refusal(OPEN.check_origin, headers) == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("name", ["Origin", "Host", "Authorization"])
def test_a_header_that_counts_is_sent_once(name: str) -> None:
    headers = Headers([("Host", "localhost"), (name, HUSH), (name, HUSH)])

    def everything() -> None:
        OPEN.check_host(headers)
        OPEN.check_origin(headers)
        read_handshake(headers, "peer")

    assert refusal(everything) == HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize(
    ("authorization", "token"),
    [
        (f"Bearer {HUSH}", HUSH),
        (f"bearer   {HUSH}  ", HUSH),
        ("Bearer", None),
        ("Bearer ", None),
        ("Basic dXNlcjpwYXNz", None),
        (HUSH, None),
    ],
)
def test_the_token_of_the_authorization_header(
    authorization: str, token: str | None
) -> None:
    headers = Headers(Authorization=authorization)
    assert read_handshake(headers, "peer").token == token


@pytest.mark.parametrize(
    ("offered", "token", "common"),
    [
        ([], None, True),
        (["wsserver.v1"], None, True),
        (["wsserver.v2, wsserver.v1"], None, True),
        (["wsserver.v2"], None, False),
        ([f"wsserver.v1, bearer.{HUSH}"], HUSH, True),
        ([f"bearer.{HUSH}", "wsserver.v1"], HUSH, True),
        ([f"bearer.{HUSH}"], HUSH, False),
        (["wsserver.v1, bearer.first, bearer.second"], "first", True),
    ],
)
def test_what_the_subprotocol_list_says(
    offered: list[str], token: str | None, common: bool
) -> None:
    headers = Headers([("Sec-WebSocket-Protocol", value) for value in offered])
    handshake = read_handshake(headers, "peer")
    assert handshake.token == token
    assert handshake.common_version is common


def test_the_header_goes_before_the_subprotocol_list() -> None:
    headers = Headers(Authorization=f"Bearer {HUSH}")
    headers["Sec-WebSocket-Protocol"] = "wsserver.v1, bearer.two"
    assert read_handshake(headers, "peer").token == HUSH


@pytest.mark.parametrize("value", [f"bearer.{HUSH}=", f"wsserver.v1;{HUSH}", "a,,b "])
def test_a_malformed_list_is_refused_without_repeating_it(value: str) -> None:
    headers = Headers([("Sec-WebSocket-Protocol", value)])
    if value.startswith("a"):
        assert read_handshake(headers, "peer").common_version is False
    else:
        assert refusal(read_handshake, headers, "peer") == HTTPStatus.BAD_REQUEST
