"""No credentials: everyone who can connect is the same local principal.

Only for servers that other machines can't reach; `wsserver.settings.checks` sees to that.
"""

from wsserver.auth.principal import Principal, Verb

LOCAL = Principal(name="local", space="local")


class OpenAuthority:
    """Knows one principal and lets it do everything."""

    async def authenticate(self, token: str | None) -> Principal:
        """Returns the local principal; a token makes no difference."""
        del token
        return LOCAL

    def authorize(self, principal: Principal, verb: Verb, conversation: str) -> None:
        """Allows everything."""
        del principal, verb, conversation

    def stands(self, principal: Principal) -> bool:
        """Takes nothing back."""
        del principal
        return True

    async def run(self) -> None:
        """Has nothing to keep up to date."""
