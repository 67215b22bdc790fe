"""Keys and tokens side by side."""

import anyio
import pytest

from tests.auth.issuer import AUDIENCE, now, private_key, token
from wsserver.auth.either import EitherAuthority
from wsserver.auth.jwt import Claims, JwtAuthority
from wsserver.auth.keys import KeyAuthority
from wsserver.auth.principal import ForbiddenError, UnauthorizedError
from wsserver.auth.signing_keys import Key

KEY = "a-key-that-is-long-enough"


class Keys:
    def __init__(self) -> None:
        self.running = anyio.Event()

    async def find(self, key_id: str | None, algorithm: str) -> Key | None:
        del key_id, algorithm
        return private_key("rsa").public_key()

    async def run(self) -> None:
        self.running.set()


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def authority(keys: Keys) -> EitherAuthority:
    tokens = JwtAuthority(
        keys,
        algorithms=frozenset({"RS256"}),
        audience=AUDIENCE,
        claims=Claims(scope="scope"),
        wall=now,
    )
    return EitherAuthority(KeyAuthority.parse([f"bot:{KEY}"], "keys.txt"), tokens)


async def test_both_kinds_are_believed(authority: EitherAuthority) -> None:
    assert (await authority.authenticate(KEY)).name == "bot"
    ann = await authority.authenticate(token(scope="wsserver:read"))
    authority.authorize(ann, "open", ann.key("c"))
    for verb, key in (("send", ann.key("c")), ("open", "bot/c")):
        with pytest.raises(ForbiddenError):
            authority.authorize(ann, verb, key)


@pytest.mark.parametrize("wrong", [None, "", KEY[:-1], token(aud="another")])
async def test_what_neither_believes_is_refused(
    authority: EitherAuthority, wrong: str | None
) -> None:
    with pytest.raises(UnauthorizedError):
        await authority.authenticate(wrong)


async def test_it_keeps_both_up_to_date(authority: EitherAuthority, keys: Keys) -> None:
    with anyio.fail_after(5):
        await authority.run()
    assert keys.running.is_set()
