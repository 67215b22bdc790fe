"""A function of the operator's own that says who connects."""

import asyncio
from typing import Any, cast

import anyio
import pytest
from msgspec import ValidationError
from structlog.testing import capture_logs
from trio.testing import MockClock

from tests.connections.wire import connected
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider, says
from wsserver.assembly import credentials
from wsserver.auth.called import ANSWER_SECONDS, CalledAuthority
from wsserver.auth.either import EitherAuthority
from wsserver.auth.principal import ForbiddenError, Principal, UnauthorizedError
from wsserver.connections.transport import Handshake
from wsserver.lifecycle.reload import Reload
from wsserver.operations.checks.config import check_loaded
from wsserver.settings import Settings, SettingsError, load

HERE = "tests.auth.test_called"
READER = Principal(name="ann", space="team", verbs=frozenset(("open",)))

FOUND: dict[str | None, object] = {
    "reader": READER,
    "wrong": "ann",
    "numbered": Principal(name=cast("str", 42), space="team"),  # as rows of tables are
    "broken": Principal(name="a\ud800", space="team"),
    "nowhere": Principal(name="ann", space=""),
}


async def authenticate(token: str | None) -> Any:
    match token:
        case "barred":
            raise ForbiddenError("not here")
        case "outage":
            raise ConnectionError("postgres://user:password@db is down")
        case "slow":
            await anyio.sleep_forever()
        case "cancelled":
            raise asyncio.CancelledError  # as by a query that another task gave up
        case "exits":
            raise SystemExit(1)
    if token not in FOUND:
        raise UnauthorizedError("no such session")
    return FOUND[token]


def blocks(token: str | None) -> Principal:
    raise AssertionError(token)


async def test_what_it_says_counts() -> None:
    authority = CalledAuthority(authenticate)
    ann = await authority.authenticate("reader")
    assert ann == READER
    authority.authorize(ann, "open", "team/c")
    for verb, key in (("send", "team/c"), ("open", "other/c")):
        with pytest.raises(ForbiddenError):
            authority.authorize(ann, verb, key)
    for token in ("unknown", None):
        with pytest.raises(UnauthorizedError):
            await authority.authenticate(token)


@pytest.mark.parametrize(
    ("token", "code"),
    [
        ("unknown", 4401),
        ("barred", 4403),
        ("outage", 1011),
        ("wrong", 1011),
        ("exits", 1011),
        ("numbered", 1011),
        ("broken", 1011),
        ("nowhere", 1011),
    ],
)
async def test_how_a_connection_ends_that_it_does_not_believe(
    token: str, code: int
) -> None:
    authority = CalledAuthority(authenticate)
    known = Handshake(peer="test", token="reader")  # noqa: S106
    async with (
        rig(ScriptedProvider(says("a"))) as r,
        connected(r, authority=authority, handshake=known) as other,
        connected(r, authority=authority, name="c2", hello=False) as client,
    ):
        client.say("hello", protocol=1, token=token)
        ended, reason = await client.ended()
        assert ended == code
        assert "password" not in reason
        assert other.wire.closed is None


async def test_a_refresh_that_fails_is_answered_and_the_connection_goes_on() -> None:
    authority = CalledAuthority(authenticate)
    known = Handshake(peer="test", token="reader")  # noqa: S106
    async with (
        rig(ScriptedProvider(says("a"))) as r,
        connected(r, authority=authority, handshake=known) as client,
    ):
        for token, ok in (("cancelled", False), ("numbered", False), ("reader", True)):
            reply = await client.ask("refresh", token=token)
            assert reply["ok"] == ok
            assert ok or reply["error"]["code"] == "internal"


async def test_the_operator_hears_what_is_wrong_with_a_principal() -> None:
    with capture_logs() as logs, pytest.raises(ValidationError):
        await CalledAuthority(authenticate).authenticate("numbered")
    [line] = logs
    assert line["event"] == "auth_call_wrong"
    assert line["about"] == "Expected `str`, got `int` - at `$.name`"


@pytest.mark.parametrize(
    "anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})]
)
async def test_it_has_to_answer_in_time() -> None:
    began = anyio.current_time()
    with pytest.raises(TimeoutError):
        await CalledAuthority(authenticate).authenticate("slow")
    assert anyio.current_time() - began == ANSWER_SECONDS


def loaded(**flags: str) -> Settings:
    return load(flags=flags, environ={}).settings


def test_it_is_a_credential_by_itself_and_beside_others(tmp_path: Any) -> None:
    own = loaded(host="0.0.0.0", auth_call=f"{HERE}:authenticate")  # noqa: S104
    assert isinstance(credentials.authority(own, float, Reload()), CalledAuthority)
    keys = tmp_path / "keys"
    keys.write_text("bot:a-key-that-is-long-enough\n")
    keys.chmod(0o600)
    both = loaded(auth_call=f"{HERE}:authenticate", auth_keys_file=str(keys))
    assert isinstance(credentials.authority(both, float, Reload()), EitherAuthority)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("blocks", "is not async; define it by async def"),
        ("missing", "AttributeError"),
        ("HERE", "can't be called"),
    ],
)
def test_what_is_no_such_function_is_refused(name: str, says: str) -> None:
    with pytest.raises(SettingsError, match=f"^auth_call: .*{says}"):
        credentials.authority(loaded(auth_call=f"{HERE}:{name}"), float, Reload())


def test_a_check_of_the_settings_says_what_would_be_asked() -> None:
    for name, status in (("authenticate", "ok"), ("blocks", "fail")):
        given = load(flags={"auth_call": f"{HERE}:{name}"}, environ={})
        [finding] = [f for f in check_loaded(given) if f.check == "credentials"]
        assert (finding.status, f"{HERE}:{name}" in finding.says) == (status, True)
