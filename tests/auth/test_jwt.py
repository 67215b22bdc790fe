"""Which tokens are believed, and as whom."""

import base64
import hashlib
import hmac
from pathlib import Path
from typing import Any

import jwt
import orjson
import pytest
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st

from tests.auth.issuer import AUDIENCE, ISSUER, SECRET, now, pem, private_key, token
from wsserver.auth.jwt import LONGEST_TOKEN, Claims, JwtAuthority
from wsserver.auth.principal import VERBS, ForbiddenError, UnauthorizedError
from wsserver.auth.signing_keys import Key, KeyFile

RS = frozenset({"RS256", "PS256"})


class Keys:
    """Keeps one key for everything, and notes what it is asked for."""

    def __init__(self, key: Key | None) -> None:
        self.key = key
        self.asked: list[tuple[str | None, str]] = []

    async def find(self, key_id: str | None, algorithm: str) -> Key | None:
        self.asked.append((key_id, algorithm))
        return self.key

    async def run(self) -> None:
        raise AssertionError("not here")


def authority(
    keys: Any = None, algorithms: frozenset[str] = RS, **rules: Any
) -> JwtAuthority:
    if keys is None:
        keys = Keys(private_key("rsa").public_key())
    defaults = {
        "audience": AUDIENCE,
        "issuer": ISSUER,
        "claims": Claims(),
        "wall": now,
    }
    return JwtAuthority(keys, algorithms=algorithms, **(defaults | rules))


async def refusal(of: JwtAuthority, given: str | None) -> str:
    with pytest.raises(UnauthorizedError) as caught:
        await of.authenticate(given)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


async def test_a_token_names_its_principal_until_its_end() -> None:
    exp = now() + 100.5
    principal = await authority().authenticate(token(exp=exp))
    assert (principal.name, principal.space) == ("ann", "ann")
    assert principal.expires_at == pytest.approx(exp, abs=0.01)
    assert principal.verbs == VERBS


@pytest.mark.parametrize(
    ("claims", "space"),
    [
        ({}, "ann"),
        ({"wsserver.space": "team"}, "team"),
        ({"wsserver": {"space": "team"}}, "team"),
        ({"wsserver.space": "one", "wsserver": {"space": "two"}}, "one"),
        ({"wsserver": "team"}, "ann"),
    ],
)
async def test_the_space_is_a_claim_or_the_principals_own(
    claims: dict[str, Any], space: str
) -> None:
    assert (await authority().authenticate(token(**claims))).space == space


async def test_claims_may_have_other_names() -> None:
    claims = Claims(principal="https://x.example/user", space="org.unit.id")
    body = {"https://x.example/user": "uma", "org": {"unit": {"id": "42"}}, "sub": None}
    found = await authority(claims=claims).authenticate(token(**body))
    assert (found.name, found.space) == ("uma", "42")


@pytest.mark.parametrize(
    "name", ["a/b", "auth0|5f7c", "ann@x.example", "安", "x" * 255]
)
async def test_names_may_be_what_issuers_have(name: str) -> None:
    assert (await authority().authenticate(token(sub=name))).name == name


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": None},
        {"sub": ""},
        {"sub": "x" * 256},
        {"sub": "a\nb"},
        {"sub": "a\x00"},
        {"wsserver.space": 5},
        {"wsserver.space": ""},
        {"wsserver.space": ["a"]},
        {"wsserver.space": "a\rb"},
    ],
)
async def test_a_name_that_cannot_be_is_not_taken(claims: dict[str, Any]) -> None:
    (claim,) = claims
    says = await refusal(authority(), token(**claims))
    assert says.startswith(
        f"the token's claim {claim} is absent, or no text of 1 to 255"
    )


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": now() - 60}, "expired"),
        ({"exp": None}, "required"),
        ({"exp": "tomorrow"}, "believed"),
        ({"exp": float("inf")}, "believed"),
        ({"aud": None}, "required"),
        ({"aud": "another"}, "another audience"),
        ({"aud": []}, "required"),
        ({"aud": ["a", "b"]}, "another audience"),
        ({"iss": None}, "required"),
        ({"iss": ISSUER + "/"}, "another issuer"),
        ({"nbf": now() + 100_000}, "not valid yet"),
        ({"iat": now() + 100_000}, "not valid yet"),
    ],
)
async def test_a_claim_that_does_not_hold(claims: dict[str, Any], why: str) -> None:
    assert why in await refusal(authority(), token(**claims))


async def test_one_of_several_audiences_is_enough() -> None:
    found = await authority().authenticate(token(aud=["another", AUDIENCE]))
    assert found.name == "ann"


async def test_without_an_issuer_set_any_is_taken() -> None:
    for issuer in ("https://other.example", None):
        found = await authority(issuer=None).authenticate(token(iss=issuer))
        assert found.name == "ann"


async def test_within_the_leeway_clocks_may_differ() -> None:
    late = authority(leeway_seconds=30.0)
    at = now()
    fresh = await late.authenticate(token(exp=at + 5, nbf=at + 20, iat=at + 20))
    assert fresh.expires_at == pytest.approx(at + 5, abs=0.01), (
        "no longer for the leeway"
    )
    over = await late.authenticate(token(exp=at - 10))
    assert over.expires_at == pytest.approx(at + 20, abs=0.01)
    await refusal(late, token(exp=at - 40))
    await refusal(authority(), token(exp=at - 1))


@pytest.mark.parametrize(
    ("kind", "algorithm", "allowed"),
    [
        ("rsa", "RS256", True),
        ("rsa", "PS256", True),
        ("rsa", "RS512", False),
        ("hmac", "HS256", False),
    ],
)
async def test_only_the_listed_algorithms(
    kind: str, algorithm: str, allowed: bool
) -> None:
    keys = Keys(private_key("rsa").public_key())
    of = authority(keys)
    given = token(kind, algorithm, kid="k")
    if allowed:
        assert (await of.authenticate(given)).name == "ann"
        assert keys.asked == [("k", algorithm)]
    else:
        assert "algorithm" in await refusal(of, given)
        assert keys.asked == [], "nothing is looked up for it"


def part(value: object) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).rstrip(b"=").decode()


BODY = {"sub": "eve", "aud": AUDIENCE, "iss": ISSUER, "exp": 9e9}


@pytest.mark.parametrize(
    "name", ["none", "None", "NONE", "nOnE", "", None, 5, ["none"]]
)
@pytest.mark.parametrize("signature", ["", "AAAA"])
async def test_no_token_goes_without_a_signature(name: Any, signature: str) -> None:
    header = {"typ": "JWT"} | ({} if name is None else {"alg": name})
    given = f"{part(header)}.{part(BODY)}.{signature}"
    await refusal(authority(), given)
    await refusal(authority(algorithms=RS | {"none"}), given)


async def test_a_public_key_is_no_secret() -> None:
    """The confusion of RS256 and HS256: signed with what everybody knows."""
    public = pem("rsa")
    signed = f"{part({'alg': 'HS256'})}.{part(BODY)}"
    mac = hmac.new(public, signed.encode(), hashlib.sha256).digest()
    given = f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
    for algorithms in (RS, RS | {"HS256"}):
        await refusal(authority(algorithms=algorithms), given)
        await refusal(authority(Keys(public), algorithms), given)


async def test_a_token_brings_no_key_of_its_own() -> None:
    given = token("rsa", number=1, headers={"jwk": {"kty": "RSA"}, "jku": "https://e"})
    assert "signature" in await refusal(authority(), given)


async def test_a_token_whose_key_is_not_known() -> None:
    assert "key" in await refusal(authority(Keys(None)), token(kid="new"))


async def test_each_part_of_a_token_is_signed() -> None:
    head, body, signature = token().split(".")
    other = part(BODY)
    await refusal(authority(), f"{head}.{other}.{signature}")
    await refusal(authority(), f"{part({'alg': 'PS256'})}.{body}.{signature}")
    await refusal(authority(), f"{head}.{body}.{signature[:-4]}")


async def test_no_token() -> None:
    assert "required" in await refusal(authority(), None)


async def test_a_token_may_not_be_longer_than_so() -> None:
    assert "long" in await refusal(authority(), "x" * (LONGEST_TOKEN + 1))
    assert "no JWT" in await refusal(authority(), "x" * LONGEST_TOKEN)


ODD = st.one_of(
    st.text(max_size=60),
    st.lists(st.text(max_size=20), min_size=3, max_size=3).map(".".join),
    st.tuples(
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text()),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ),
        st.one_of(st.just(BODY), st.lists(st.none())),
    ).map(lambda both: f"{part(both[0])}.{part(both[1])}.AAAA"),
    st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "b64", "enc", "zip"]),
        st.one_of(
            st.sampled_from(["RS256", "PS256", "none"]),
            st.none(),
            st.integers(-9, 9),
            st.lists(st.sampled_from(["b64", "exp"])),
        ),
    ).map(lambda header: f"{part(header)}.{part(BODY)}.AAAA"),
)


@given(ODD)
async def test_nothing_but_a_refusal_comes_of_what_is_no_token(given: str) -> None:
    await refusal(authority(), given)


async def test_what_is_deep_is_no_token() -> None:
    deep = base64.urlsafe_b64encode(b"[" * 9_000).rstrip(b"=").decode()
    head = part({"alg": "RS256"})
    for odd in (f"{deep}.AAAA.AAAA", f"{head}.{deep}.AAAA"):
        assert len(odd) < LONGEST_TOKEN
        await refusal(authority(), odd)


@pytest.mark.parametrize("claim", ["scope", "permissions"])
@pytest.mark.parametrize(
    ("scopes", "may", "may_not"),
    [
        ("openid wsserver:read", {"open", "ack", "close"}, {"send", "create"}),
        (["wsserver:read"], {"open"}, {"interrupt", "delete", "tool_result"}),
        ("wsserver:write x", {"open", "create", "send", "fork"}, {"delete"}),
        ("wsserver:delete", {"open", "delete"}, {"send"}),
        ("wsserver:all", VERBS, set()),
        ("wsserver:read wsserver:delete", {"open", "delete"}, {"send"}),
    ],
)
async def test_scopes_say_what_a_principal_may_do(
    claim: str, scopes: Any, may: set[Any], may_not: set[Any]
) -> None:
    of = authority(claims=Claims(scope=claim))
    principal = await of.authenticate(token(**{claim: scopes}))
    assert may <= principal.verbs
    assert not may_not & principal.verbs
    key = principal.key("c")
    for verb in may:
        of.authorize(principal, verb, key)
    for verb in may_not:
        with pytest.raises(ForbiddenError):
            of.authorize(principal, verb, key)


@pytest.mark.parametrize(
    "scopes", [None, "", "openid", "read write", 5, ["wsserver:", 5], "WSSERVER:all"]
)
async def test_a_token_without_a_scope_of_ours_may_do_nothing(scopes: Any) -> None:
    with pytest.raises(ForbiddenError):
        await authority(claims=Claims(scope="scope")).authenticate(token(scope=scopes))


async def test_nobody_leaves_their_space() -> None:
    of = authority()
    ann = await of.authenticate(token(sub="a", **{"wsserver.space": "x/y"}))
    of.authorize(ann, "open", "x/y/c")
    for foreign in ("x/c", "x/y/z/c", "y/c", "a/c"):
        with pytest.raises(ForbiddenError):
            of.authorize(ann, "open", foreign)


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        *(("rsa", name) for name in ("RS256", "RS384", "RS512", "PS256", "PS512")),
        ("ec", "ES256"),
        ("ec384", "ES384"),
        ("ed", "EdDSA"),
        *(("hmac", name) for name in ("HS256", "HS384", "HS512")),
    ],
)
async def test_each_algorithm_with_a_key_file(
    kind: str, algorithm: str, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_bytes(SECRET + b"\n" if kind == "hmac" else pem(kind))
    file.chmod(0o600)
    keys = await to_thread.run_sync(KeyFile.load, file, [algorithm])
    assert keys.warnings == ()
    of = authority(keys, frozenset({algorithm}))
    assert (await of.authenticate(token(kind, algorithm, kid="any"))).name == "ann"
    other = b"x" * 64 if kind == "hmac" else private_key(kind, 1)
    forged = token(kind, algorithm, key=other)
    assert "signature" in await refusal(of, forged)


def test_the_tokens_of_these_tests_are_as_issuers_make_them() -> None:
    assert jwt.get_unverified_header(token(kid="k")) == {
        "alg": "RS256",
        "kid": "k",
        "typ": "JWT",
    }
