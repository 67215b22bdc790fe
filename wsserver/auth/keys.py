"""Static bearer keys from a file: one `principal:key` a line, `#` comments.

A principal is `NAME`, alone in a space of that name, or `SPACE/NAME`: principals
of one space share its conversations. A principal may have several keys, so that
keys can be changed one after the other.
"""

import hashlib
import hmac
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from wsserver.auth.principal import Principal, UnauthorizedError, Verb, check
from wsserver.small_files import read_small

SHORTEST_GOOD_KEY = 16
"""Shorter ones are taken, but the operator hears of it."""

_COMMENT = re.compile(r"(^|\s)\s*#.*")
_NAME = re.compile(r"(?:(?P<space>[\w.-]{1,64})/)?(?P<name>[\w.-]{1,64})", re.ASCII)


class KeysError(Exception):
    """The keys can't be used; says where and why, and never what the key is."""


class KeyAuthority:
    """Knows principals by their keys; each may do everything in its space.

    Attributes:
        principals: Who, by the digest of their key.
        warnings: What the operator should know about the keys.
    """

    def __init__(
        self, principals: dict[bytes, Principal], warnings: tuple[str, ...] = ()
    ) -> None:
        self.principals = principals
        self.warnings = warnings

    @classmethod
    def parse(cls, lines: Iterable[str], source: str) -> "KeyAuthority":
        """Returns the authority that the lines describe.

        Args:
            lines: The file's lines.
            source: The file's name, for messages.

        Raises:
            KeysError: A line is not understood, a key stands for two principals,
                or there is none.
        """
        principals: dict[bytes, Principal] = {}
        warnings: list[str] = []
        for number, line in enumerate(lines, 1):
            entry = _COMMENT.sub("", line).strip()
            if not entry:
                continue
            where = f"{source}:{number}"
            name, colon, key = (part.strip() for part in entry.partition(":"))
            matched = _NAME.fullmatch(name)
            if not colon or not key or matched is None:
                raise KeysError(
                    f"{where}: expected principal:key, where principal is NAME or"
                    " SPACE/NAME of letters, digits, '_', '.' and '-'"
                )
            if not key.isascii() or not key.isprintable() or " " in key:
                raise KeysError(
                    f"{where}: a key has visible ASCII characters only; make another"
                )
            if len(key) < SHORTEST_GOOD_KEY:
                warnings.append(
                    f"{where}: the key is shorter than {SHORTEST_GOOD_KEY} characters"
                )
            digest = _digest(key)
            principal = Principal(
                name=matched["name"],
                space=matched["space"] or matched["name"],
                credential=digest,
            )
            if principals.setdefault(digest, principal) != principal:
                raise KeysError(
                    f"{where}: the key stands for another principal too; give each"
                    " its own"
                )
        if not principals:
            raise KeysError(f"{source}: no line holds a principal:key; add one")
        return cls(principals, tuple(warnings))

    @classmethod
    def load(cls, path: Path) -> "KeyAuthority":
        """Returns the authority that a file describes.

        Raises:
            KeysError: The file can't be read or is not understood.
        """
        try:
            mode = path.stat().st_mode
            text = read_small(path).decode("utf-8-sig")  # editors on Windows begin so
        except OSError as error:
            raise KeysError(
                f"{path}: {error.strerror}; name a file that can be read"
            ) from None
        except UnicodeDecodeError:
            raise KeysError(f"{path}: the file is not UTF-8; save it as such") from None
        authority = cls.parse(text.splitlines(), str(path))
        if mode & (stat.S_IRGRP | stat.S_IROTH):
            authority.warnings += (
                f"{path}: others can read the keys; chmod 600 would stop that",
            )
        return authority

    def take(self, renewed: "KeyAuthority") -> Mapping[str, int]:
        """Knows from now on what another knows; returns how many keys that changes."""
        before = set(self.principals.items())
        self.principals, self.warnings = renewed.principals, renewed.warnings
        after = set(self.principals.items())
        return {
            "keys": len(after),
            "added": len(after - before),
            "gone": len(before - after),
        }

    async def authenticate(self, token: str | None) -> Principal:
        """Returns whose key the token is.

        Compares with every key, and digests rather than keys, so that the time
        it takes says nothing about them.

        Raises:
            UnauthorizedError: It is nobody's.
        """
        if token is None:
            raise UnauthorizedError("credentials are required")
        digest = _digest(token)
        found = None
        for known, principal in self.principals.items():
            if hmac.compare_digest(known, digest):
                found = principal
        if found is None:
            raise UnauthorizedError("the credentials are not known")
        return found

    def authorize(self, principal: Principal, verb: Verb, conversation: str) -> None:
        """Allows everything within the principal's space.

        Raises:
            ForbiddenError: The conversation's key lies in another space.
        """
        check(principal, verb, conversation)

    def stands(self, principal: Principal) -> bool:
        """Whether the key is there, and still that principal's."""
        credential = principal.credential
        return credential is None or self.principals.get(credential) == principal

    async def run(self) -> None:
        """Has nothing to keep up to date."""


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
