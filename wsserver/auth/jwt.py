"""JSON Web Tokens (RFC 7519) as credentials. Needs PyJWT: the extra `jwt`.

What a token has to fulfil is set, never taken from the token: its algorithm is one
of a list, its key one of ours, `exp` and `aud` are there. Nothing of a token gets
into an error or a log line.
"""

from collections.abc import Callable
from typing import Any, Final, cast

import jwt
import msgspec
from msgspec import Struct

from wsserver.auth.principal import (
    LONGEST_NAME,
    VERBS,
    ForbiddenError,
    Principal,
    UnauthorizedError,
    Verb,
    check,
    is_name,
)
from wsserver.auth.scopes import allowed
from wsserver.auth.signing_keys import SigningKeys

LONGEST_TOKEN: Final = 16_384

_REASONS: Final[dict[type[jwt.PyJWTError], str]] = {
    jwt.ExpiredSignatureError: "the token has expired",
    jwt.ImmatureSignatureError: "the token is not valid yet",
    jwt.InvalidAudienceError: "the token is for another audience",
    jwt.InvalidIssuerError: "the token is of another issuer",
    jwt.InvalidSignatureError: "the token's signature is wrong",
    jwt.MissingRequiredClaimError: "the token lacks a claim that is required",
}


class Claims(Struct, frozen=True, kw_only=True):
    """Which claims of a token say what. A name with dots may mean a member within.

    Attributes:
        principal: Who it is.
        space: Whose conversations it sees; a token without it sees its
            principal's own.
        scope: What it may do; None lets every token do everything.
    """

    principal: str = "sub"
    space: str = "wsserver.space"
    scope: str | None = None


class JwtAuthority:
    """Believes tokens that somebody else has signed."""

    def __init__(
        self,
        keys: SigningKeys,
        *,
        algorithms: frozenset[str],
        audience: str,
        issuer: str | None = None,
        leeway_seconds: float = 0.0,
        claims: Claims,
        wall: Callable[[], float],
    ) -> None:
        """Takes the rules.

        Args:
            keys: Where keys come from.
            algorithms: Those that are allowed.
            audience: What `aud` has to be, or to have in its list.
            issuer: What `iss` has to be; None for anything.
            leeway_seconds: By how much clocks may differ.
            claims: Which claims say what.
            wall: Returns seconds since the epoch.
        """
        self._keys = keys
        self._algorithms = algorithms
        self._audience = audience
        self._issuer = issuer
        self._leeway_seconds = leeway_seconds
        self._claims = claims
        self._wall = wall

    async def authenticate(self, token: str | None) -> Principal:
        """Returns whom the token speaks of.

        A token that is taken for the leeway only ends with that.

        Raises:
            UnauthorizedError: There is no token, or it is not to be believed.
            ForbiddenError: It is, and none of its scopes is for this server.
        """
        if token is None:
            raise UnauthorizedError("credentials are required")
        claims = await self._verify(token)
        name = _name(claims, self._claims.principal)
        space = _find(claims, self._claims.space)
        try:
            expires_at = float(claims["exp"])
        except (TypeError, ValueError, OverflowError):
            raise UnauthorizedError("the token's end is no time") from None
        if expires_at <= self._wall():
            expires_at += self._leeway_seconds
        return Principal(
            name=name,
            space=name if space is None else _name(claims, self._claims.space),
            verbs=self._verbs(claims),
            expires_at=expires_at,
        )

    def authorize(self, principal: Principal, verb: Verb, conversation: str) -> None:
        """Allows what the scopes allow, within the principal's space.

        Raises:
            ForbiddenError: They do not, or the conversation's key lies in another.
        """
        check(principal, verb, conversation)

    def stands(self, principal: Principal) -> bool:
        """Takes no token back: each ends by its time."""
        del principal
        return True

    async def run(self) -> None:
        """Keeps the keys up to date."""
        await self._keys.run()

    async def _verify(self, token: str) -> dict[str, Any]:
        if len(token) > LONGEST_TOKEN:
            raise UnauthorizedError("the token is too long")
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError):
            raise UnauthorizedError("the token is no JWT") from None
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in self._algorithms:
            raise UnauthorizedError("the token's algorithm is not allowed")
        key = await self._keys.find(header.get("kid"), algorithm)
        if key is None:
            raise UnauthorizedError("the token's key is not known")
        try:
            return jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._audience,
                issuer=self._issuer,
                leeway=self._leeway_seconds,
                options={"require": ["exp", "aud"]},
            )
        except jwt.PyJWTError as error:
            reason = _REASONS.get(type(error), "the token can't be believed")
            raise UnauthorizedError(reason) from None
        except (TypeError, ValueError):
            raise UnauthorizedError("the token can't be believed") from None

    def _verbs(self, claims: dict[str, Any]) -> frozenset[Verb]:
        if self._claims.scope is None:
            return VERBS
        try:
            scopes = msgspec.convert(_find(claims, self._claims.scope), str | list[str])
        except msgspec.ValidationError:
            scopes = ""
        verbs = allowed(scopes.split() if isinstance(scopes, str) else scopes)
        if not verbs:
            raise ForbiddenError("none of the token's scopes is for this server")
        return verbs


def _find(claims: dict[str, Any], name: str) -> Any:
    """Returns a claim, None if it is absent: by its whole name, else step by step."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for step in name.split("."):
        if not isinstance(found, dict):
            return None
        found = cast("dict[str, Any]", found).get(step)
    return found


def _name(claims: dict[str, Any], claim: str) -> str:
    name = _find(claims, claim)
    if not isinstance(name, str) or not is_name(name):
        raise UnauthorizedError(
            f"the token's claim {claim} is absent, or no text of 1 to {LONGEST_NAME}"
            " printable characters"
        )
    return name
