"""An issuer of tokens: key pairs, key sets, and tokens of every kind."""

from functools import cache
from typing import Any

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from wsserver.turns.clock import Clock

AUDIENCE = "wsserver"
ISSUER = "https://issuer.example"
SECRET = b"0123456789abcdef0123456789abcdef-and-more-than-enough-for-HS512!"


now = Clock().wall


def private_key(kind: str, number: int = 0) -> Any:
    """Makes a key pair once: `rsa`, `weak` (RSA, too short), `ec`, `ec384`, `ed`."""
    return _made(kind, number)


@cache
def _made(kind: str, number: int) -> Any:
    del number
    match kind:
        case "rsa":
            return rsa.generate_private_key(65_537, 2048)
        case "weak":
            return rsa.generate_private_key(65_537, 1024)  # noqa: S505 - on purpose
        case "ec":
            return ec.generate_private_key(ec.SECP256R1())
        case "ec384":
            return ec.generate_private_key(ec.SECP384R1())
        case "ed":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            raise AssertionError(kind)


def pem(kind: str, number: int = 0, *, private: bool = False) -> bytes:
    """Returns a key in PEM."""
    key = private_key(kind, number)
    if private:
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return key.public_key().public_bytes(
        Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
    )


_FOR = {"rsa": "RS256", "weak": "RS256", "ec": "ES256", "ec384": "ES384", "ed": "EdDSA"}


def jwk(
    kind: str, number: int = 0, *, private: bool = False, **members: Any
) -> dict[str, Any]:
    """Returns a key, public as a rule, as a member of a key set."""
    algorithm: Any = jwt.get_algorithm_by_name(_FOR[kind])
    key = private_key(kind, number)
    made: dict[str, Any] = algorithm.to_jwk(
        key if private else key.public_key(), as_dict=True
    )
    made.pop("key_ops", None)
    return made | members


def key_set(*keys: dict[str, Any]) -> bytes:
    """Returns a document with the keys."""
    return orjson.dumps({"keys": keys})


def token(
    kind: str = "rsa",
    algorithm: str | None = None,
    *,
    number: int = 0,
    kid: str | None = None,
    key: Any = None,
    headers: dict[str, Any] | None = None,
    **claims: Any,
) -> str:
    """Returns a signed token; a claim that is None is left out."""
    body = {
        "sub": "ann",
        "aud": AUDIENCE,
        "iss": ISSUER,
        "exp": now() + 60,
        **claims,
    }
    if key is None:
        key = SECRET if kind == "hmac" else private_key(kind, number)
    return jwt.encode(
        {name: value for name, value in body.items() if value is not None},
        key,
        algorithm or ("HS256" if kind == "hmac" else _FOR[kind]),
        headers={**({} if kid is None else {"kid": kid}), **(headers or {})},
    )
