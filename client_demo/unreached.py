"""Why a server could not be reached, and what to do, for a person."""

import errno
import socket
import ssl
from urllib.parse import urlsplit

from websockets.exceptions import InvalidMessage, InvalidStatus

_NO_SOCKET_THERE = {200, 404, 405}
"""What web servers answer where they have something else, or nothing."""

_NO_TLS_THERE = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"}
"""What OpenSSL makes of an answer that is none of TLS."""


def why_unreached(url: str, error: BaseException) -> str:
    """Says why there is no connection, and what to do where that is known.

    Args:
        url: Where it should have gone.
        error: What the attempt met.
    """
    host = urlsplit(url).hostname or url
    match error:
        case InvalidStatus() if error.response.status_code in _NO_SOCKET_THERE:
            says = f"{error}; the address of a wsserver ends with /v1/chat"
        case InvalidMessage():
            says = "what answers there speaks no HTTP; if it has TLS, use wss://"
        case ssl.SSLCertVerificationError():
            says = (
                f"the certificate of {host} is not to be trusted:"
                f" {error.verify_message}; let SSL_CERT_FILE name it, or the authority"
                " that signed it, if you trust that"
            )
        case ssl.SSLError() if error.reason in _NO_TLS_THERE:
            says = "what answers there has no TLS; use ws://"
        case socket.gaierror():
            says = f"{host}: {error.strerror}; is the name the right one?"
        case OSError() if _is_refusal(error):
            says = f"{error}; is the server running, and is the port the right one?"
        case TimeoutError():
            says = f"{host} gave no answer in time"
        case _:
            says = str(error) or type(error).__name__
    return says


def _is_refusal(error: OSError) -> bool:
    # Where a name has several addresses, asyncio joins what each of them said.
    refused = f"[Errno {errno.ECONNREFUSED}]"
    return isinstance(error, ConnectionRefusedError) or refused in str(error)
