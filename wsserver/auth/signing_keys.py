"""The keys that signatures of tokens are checked with, by who names them.

A key is kept together with the one algorithm it serves, so that a token can't have
it used for another (a public key as the secret of an HMAC, say).
"""

import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import jwt
import msgspec
from jwt.algorithms import AllowedPublicKeys

from wsserver.small_files import read_small

Key = jwt.PyJWK | AllowedPublicKeys | bytes
"""What `jwt.decode` takes."""

KeyTable = Mapping[tuple[str | None, str], Key]
"""Keys by key id (None: it has none) and algorithm."""

MOST_KEYS: Final = 256
"""Of a key set; what comes behind is not looked at."""


class KeyFileError(Exception):
    """A key file is of no use; says where and why, and never what is in it."""


class KeySetError(Exception):
    """A document holds no keys of use."""


class _KeySet(msgspec.Struct):
    keys: list[dict[str, Any]]


_decode = msgspec.json.Decoder(_KeySet).decode


class SigningKeys(Protocol):
    """Finds keys."""

    async def find(self, key_id: str | None, algorithm: str) -> Key | None:
        """Returns the key that a token names, within a few seconds.

        Args:
            key_id: The token's `kid`; None if it has none.
            algorithm: The token's `alg`; one of those that are allowed.
        """
        ...

    async def run(self) -> None:
        """Keeps the keys up to date, until cancelled or there is nothing to."""
        ...


class KeyFile:
    """One key for all tokens.

    Attributes:
        keys: The same key, by the algorithms that it serves.
        warnings: What the operator should know about the file.
    """

    def __init__(self, keys: Mapping[str, Key], warnings: tuple[str, ...] = ()) -> None:
        self.keys = keys
        self.warnings = warnings

    @classmethod
    def load(cls, path: Path, algorithms: Iterable[str]) -> "KeyFile":
        """Reads a public key in PEM or, for HMAC, a secret.

        The line end behind a secret is not part of it.

        Raises:
            KeyFileError: The file can't be read, or its key can't serve one of the
                algorithms.
        """
        try:
            mode = path.stat().st_mode
            content = read_small(path)
        except OSError as error:
            raise KeyFileError(
                f"{path}: {error.strerror}; name a file that can be read"
            ) from None
        content = content.removesuffix(b"\n").removesuffix(b"\r")
        keys = {name: _prepare(content, name, path) for name in algorithms}
        warnings: list[str] = []
        secret = any(isinstance(key, bytes) for key in keys.values())
        if secret and mode & (stat.S_IRGRP | stat.S_IROTH):
            warnings.append(f"{path}: others can read the secret; chmod 600 stops that")
        return cls(keys, tuple(warnings))

    def take(self, renewed: "KeyFile") -> None:
        """Has from now on the key that another has."""
        self.keys, self.warnings = renewed.keys, renewed.warnings

    async def find(self, key_id: str | None, algorithm: str) -> Key | None:
        """Returns the key, whatever id the token names."""
        del key_id
        return self.keys.get(algorithm)

    async def run(self) -> None:
        """Has nothing to keep up to date."""


def read_key_set(document: bytes, algorithms: Iterable[str]) -> KeyTable:
    """Returns the keys of a JWK set (RFC 7517, section 5) for some algorithms.

    Keys for encryption, secrets, and keys that are not understood are left out. A
    key that does not say its algorithm serves each that fits its type and curve.

    Raises:
        KeySetError: The document is not one, or has no such key.
    """
    try:
        members = _decode(document).keys
    except (msgspec.DecodeError, RecursionError):
        raise KeySetError("it is not a JWK set") from None
    table: KeyTable = {
        (key.key_id, key.algorithm_name): key
        for member in members[:MOST_KEYS]
        for key in _usable(member, algorithms)
    }
    if not table:
        raise KeySetError("none of its keys is of use here")
    return table


def _usable(member: dict[str, Any], algorithms: Iterable[str]) -> Iterable[jwt.PyJWK]:
    if member.get("use", "sig") != "sig" or member.get("kty") == "oct":
        return
    if not isinstance(member.get("kid"), str | None) or "d" in member:
        return
    for name in algorithms:
        if member.get("alg", name) != name:
            continue
        try:
            key = jwt.PyJWK(member, name)
            key.Algorithm.prepare_key(key.key)  # checks the curve
        except (jwt.PyJWTError, TypeError, ValueError):
            continue
        if key.Algorithm.check_key_length(key.key) is None:
            yield key


def _prepare(content: bytes, algorithm: str, path: Path) -> Key:
    signing = jwt.get_algorithm_by_name(algorithm)
    try:
        key: Any = signing.prepare_key(content)
        too_short = signing.check_key_length(key)
    except (jwt.PyJWTError, TypeError, ValueError):
        wanted = "a secret" if algorithm.startswith("HS") else "a public key in PEM"
        raise KeyFileError(
            f"{path}: holds no key for {algorithm}, which needs {wanted}"
        ) from None
    if hasattr(key, "private_bytes"):
        raise KeyFileError(
            f"{path}: holds a private key, and this server checks tokens and makes none;"
            " give it the public key only"
        )
    if too_short:
        raise KeyFileError(
            f"{path}: the key is too short for {algorithm}; make another"
        )
    return key
