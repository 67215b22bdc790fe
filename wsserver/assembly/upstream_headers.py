"""The headers that a configured model's requests have besides the server's own.

Gateways are told by them where to go, and who asks.
"""

import re
from collections.abc import Mapping
from typing import Final

from wsserver.settings import Model, SettingsError

_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+").fullmatch
_VALUE: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?").fullmatch
_SERVERS_OWN: Final = frozenset(
    {
        "accept-encoding", "connection", "content-encoding", "content-length",
        "content-type", "expect", "host", "keep-alive", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        "x-request-id",
    }
)  # fmt: skip
# With it llama.cpp goes on generating after a disconnect.
_HARMFUL: Final = "x-conversation-id"


def upstream_headers(
    name: str, model: Model, environ: Mapping[str, str]
) -> dict[str, str]:
    """Returns the headers, their names in lower case.

    Args:
        name: The model's name, for messages.
        model: How it is configured.
        environ: Holds the values of `headers_env`.

    Raises:
        SettingsError: A header can't be sent, or its variable is not set.
    """
    headers: dict[str, str] = {}
    for header, value in model.headers.items():
        where = f"models.{name}.headers.{header}"
        lower = _checked(where, header, model)
        if lower in headers:
            raise SettingsError(f"{where}: it is there twice; leave one out")
        headers[lower] = _value(where, value)
    for header, variable in model.headers_env.items():
        where = f"models.{name}.headers_env.{header}"
        lower = _checked(where, header, model)
        if lower in headers:
            raise SettingsError(f"{where}: it is there twice; leave one out")
        value = environ.get(variable)
        if not value:
            raise SettingsError(
                f"{where}: {variable} is not set; set it to the header's value, or"
                " leave the header out"
            )
        headers[lower] = _value(where, value)
    return headers


def _checked(where: str, header: str, model: Model) -> str:
    """Returns the name in lower case."""
    lower = header.lower()
    if not _NAME(header):
        why = "this is no name of a header; write one such as x-team"
    elif lower in _SERVERS_OWN:
        why = "the server sets this header itself; leave it out"
    elif lower == _HARMFUL:
        why = "llama.cpp would go on after an interrupt; leave it out"
    elif lower == "authorization" and model.api_key_env is not None:
        why = "api_key_env makes this header; leave one of them out"
    else:
        return lower
    raise SettingsError(f"{where}: {why}")


def _value(where: str, value: str) -> str:
    if not _VALUE(value):
        # Not shown: it may be a secret.
        raise SettingsError(
            f"{where}: the value can't be sent; it has to be ASCII, without line ends"
            " and without spaces around it"
        )
    return value
