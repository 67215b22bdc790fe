"""What the programs tell a person about an error: of wire and code as little as can be."""

import re
from collections.abc import Sequence

from client_demo.errors import BadModelError, ClientError, UnauthorizedError


def complaint(
    error: ClientError, *, token: str | None, models: Sequence[str] = ()
) -> str:
    """Says what went wrong, and what to do about it here.

    Args:
        error: What was raised.
        token: The credentials that were given; None for none.
        models: What the server offers, as far as is known.
    """
    if isinstance(error, UnauthorizedError):
        return f"{error} {about_credentials(token)}"
    if isinstance(error, BadModelError):
        named = set(re.split(r"[\s,;]+", error.message.rstrip(".")))
        others = [model for model in models if model not in named]
        if f" and {len(others)} more" in error.message:
            return f"{error} The others: {', '.join(others)}."
    return str(error)


def about_credentials(token: str | None) -> str:
    """Says what to do about credentials that were refused; None: none were given."""
    if token is None:
        return "Give them with --token or in WSSERVER_TOKEN."
    return "The server's log says what is wrong with these."
