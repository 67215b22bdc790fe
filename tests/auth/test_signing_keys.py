"""Key files and key sets: which keys of them serve which tokens."""

from pathlib import Path
from typing import Any

import jwt
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.auth.issuer import SECRET, jwk, key_set, pem
from wsserver.auth.signing_keys import (
    MOST_KEYS,
    KeyFile,
    KeyFileError,
    KeySetError,
    read_key_set,
)

ALL = frozenset({"RS256", "PS256", "ES256", "ES384", "EdDSA"})


def served(*keys: dict[str, Any], algorithms: frozenset[str] = ALL) -> set[Any]:
    return set(read_key_set(key_set(*keys), algorithms))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "key"


def complaint(file: Path, content: bytes, *algorithms: str) -> str:
    file.write_bytes(content)
    with pytest.raises(KeyFileError) as caught:
        KeyFile.load(file, algorithms)
    text = str(caught.value)
    assert text.startswith(f"{file}: ")
    assert "hush" not in text
    assert "-----" not in text
    assert "\n" not in text
    return text


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
async def test_the_line_end_is_no_part_of_a_secret(file: Path, end: bytes) -> None:
    keys = await _loaded(file, SECRET + end, "HS256")
    assert await keys.find(None, "HS256") == SECRET


async def test_a_key_serves_its_own_algorithms_only(file: Path) -> None:
    keys = await _loaded(file, pem("rsa"), "RS256", "PS256")
    assert await keys.find("whatever", "RS256") is not None
    assert await keys.find(None, "PS256") is not None
    for other in ("RS512", "HS256", "none"):
        assert await keys.find(None, other) is None


async def _loaded(file: Path, content: bytes, *algorithms: str) -> KeyFile:
    from anyio import to_thread

    def load() -> KeyFile:
        file.write_bytes(content)
        return KeyFile.load(file, algorithms)

    return await to_thread.run_sync(load)


@pytest.mark.parametrize(
    ("content", "algorithm", "expected"),
    [
        (pem("ec"), "RS256", "no key for RS256, which needs a public key in PEM"),
        (pem("ec"), "ES384", "no key for ES384"),
        (pem("rsa"), "HS256", "no key for HS256, which needs a secret"),
        (pem("rsa", private=True), "RS256", "holds a private key"),
        (pem("ed", private=True), "EdDSA", "holds a private key"),
        (pem("ec", private=True), "ES256", "holds a private key"),
        (pem("weak"), "RS256", "too short for RS256"),
        (b"hush" * 7, "HS256", "too short for HS256"),
        (b"hush" * 15, "HS512", "too short for HS512"),
        (b"", "HS256", "no key for HS256"),
        (b"hush", "RS256", "no key for RS256"),
        (b"-----BEGIN PUBLIC KEY-----\nhush\n-----END PUBLIC KEY-----", "RS256", "no"),
        (b"\xff\xfe", "ES256", "no key for ES256"),
    ],
)
def test_a_key_that_does_not_serve_is_refused(
    file: Path, content: bytes, algorithm: str, expected: str
) -> None:
    assert expected in complaint(file, content, algorithm)


def test_a_file_that_is_not_there_is_named(file: Path) -> None:
    with pytest.raises(KeyFileError, match="No such file"):
        KeyFile.load(file, ["RS256"])


def test_a_secret_that_others_can_read_is_taken_with_a_warning(file: Path) -> None:
    file.write_bytes(SECRET)
    file.chmod(0o644)
    (warning,) = KeyFile.load(file, ["HS256"]).warnings
    assert "others can read" in warning
    file.chmod(0o600)
    assert KeyFile.load(file, ["HS256"]).warnings == ()
    file.chmod(0o644)
    file.write_bytes(pem("rsa"))
    assert KeyFile.load(file, ["RS256"]).warnings == (), "it is public"


def test_a_key_without_an_algorithm_serves_all_that_fit() -> None:
    keys = jwk("rsa", kid="r"), jwk("ec", kid="e"), jwk("ed", kid="o")
    assert served(*keys) == {
        ("r", "RS256"),
        ("r", "PS256"),
        ("e", "ES256"),
        ("o", "EdDSA"),
    }
    assert served(*keys, algorithms=frozenset({"ES256"})) == {("e", "ES256")}


def test_a_key_with_an_algorithm_serves_that() -> None:
    assert served(jwk("rsa", kid="r", alg="PS256")) == {("r", "PS256")}


def test_one_id_may_stand_for_keys_of_two_kinds() -> None:
    keys = read_key_set(key_set(jwk("rsa", kid="k"), jwk("ec", kid="k")), ALL)
    assert {name for _, name in keys} == {"RS256", "PS256", "ES256"}


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "oct", "k": "aHVzaA", "kid": "x"},
        {"kty": "oct", "k": "aHVzaA", "alg": "RS256", "kid": "x"},
        {"kty": "RSA", "kid": "x"},
        {"kty": "RSA", "n": "AQAB", "e": 3, "kid": "x"},
        {"kty": "new", "kid": "x"},
        {"kid": "x"},
        {},
        jwk("rsa", kid=5),
        jwk("rsa", kid="x", use="enc"),
        jwk("rsa", kid="x", alg="RS512"),
        jwk("rsa", kid="x", alg="none"),
        jwk("rsa", kid="x", alg=5),
        jwk("weak", kid="x"),
        jwk("rsa", kid="x", private=True),
        jwk("ec", kid="x", private=True),
    ],
)
def test_a_key_that_is_of_no_use_is_left_out(key: dict[str, Any]) -> None:
    with pytest.raises(KeySetError):
        served(key)
    assert {kid for kid, _ in served(key, jwk("ec", kid="good"))} == {"good"}


def test_a_secret_that_anybody_may_read_is_no_key() -> None:
    secret = {"kty": "oct", "k": "c2VjcmV0" * 12, "alg": "HS256", "kid": "x"}
    with pytest.raises(KeySetError, match="of use"):
        served(secret, algorithms=frozenset({"HS256"}))


def test_only_so_many_keys_are_looked_at() -> None:
    many = [{"kty": "new"}] * (MOST_KEYS - 1)
    assert served(*many, jwk("ec", kid="k")) == {("k", "ES256")}
    with pytest.raises(KeySetError):
        served(*many, {}, jwk("ec", kid="k"))


@pytest.mark.parametrize(
    "document",
    [b"", b"<html>", b"[]", b"{}", b'{"keys":{}}', b'{"keys":[5]}', b"[" * 90_000],
)
def test_a_document_that_is_no_key_set(document: bytes) -> None:
    with pytest.raises(KeySetError):
        read_key_set(document, ALL)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3),
)
MEMBERS = st.dictionaries(
    st.sampled_from(["kty", "crv", "x", "y", "n", "e", "kid", "alg", "use", "k", "d"]),
    st.sampled_from(["RSA", "EC", "OKP", "oct", "P-256", "Ed25519", "AQAB", "ES256"])
    | VALUES,
)


@given(st.lists(MEMBERS, max_size=4))
def test_no_key_set_is_a_defect(members: list[dict[str, Any]]) -> None:
    document = orjson.dumps({"keys": [*members, jwk("ec", kid="good")]})
    keys = read_key_set(document, ALL)
    assert ("good", "ES256") in keys
    assert all(isinstance(key, jwt.PyJWK) for key in keys.values())
