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
def tokens(keys: Keys) -> JwtAuthority:
    return JwtAuthority(
        keys,
        algorithms=frozenset({"RS256"}),
        audience=AUDIENCE,
        claims=Claims(scope="scope"),
        wall=now,
    )


@pytest.fixture
def authority(tokens: JwtAuthority) -> EitherAuthority:
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


async def test_whichever_comes_first(tokens: JwtAuthority, keys: Keys) -> None:
    authority = EitherAuthority(tokens, KeyAuthority.parse([f"bot:{KEY}"], "keys.txt"))
    with anyio.fail_after(5):
        await authority.run()
    assert keys.running.is_set()


async def test_a_key_that_was_taken_back_does_not_stand(
    tokens: JwtAuthority,
) -> None:
    file = KeyAuthority.parse([f"bot:{KEY}"], "keys.txt")
    renewed = KeyAuthority.parse(["bob:another-key-long-enough"], "keys.txt")
    for authority in (EitherAuthority(file, tokens), EitherAuthority(tokens, file)):
        bot = await authority.authenticate(KEY)
        ann = await authority.authenticate(token(scope="wsserver:read"))
        before = file.principals
        assert authority.stands(bot)
        file.take(renewed)
        assert not authority.stands(bot)
        assert authority.stands(ann), "a token ends by its time"
        file.principals = before
