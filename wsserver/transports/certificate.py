"""The server's certificate: what new handshakes are given, until a renewed one is.

A context that serves handshakes is never changed: a certificate and a key that do
not belong together, read while both are written, would end all of them. A renewed
pair makes a context of its own, which was checked before it takes its place.
"""

import ssl
from pathlib import Path

from wsserver.small_files import read_small


class CertificateError(Exception):
    """A certificate can't be used; says which file, and why."""


class Certificate:
    """A certificate chain and its key.

    Attributes:
        context: What a listener takes; it serves the newest that was taken up.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        """Begins with what `read_certificate` has returned."""
        self.context = context
        self._newest = context
        context.sni_callback = self._choose

    def take(self, context: ssl.SSLContext) -> None:
        """Gives new handshakes what `read_certificate` has returned."""
        self._newest = context

    def _choose(
        self, handshake: ssl.SSLObject, name: str | None, context: ssl.SSLContext
    ) -> None:
        """Is called in each handshake, also where the client names no server."""
        del name, context
        handshake.context = self._newest


def read_certificate(certificate: str, key: str) -> ssl.SSLContext:
    """Returns a context with a certificate; blocks.

    Args:
        certificate: The path of the chain, in PEM.
        key: The path of its key.

    Raises:
        CertificateError: One of them can't be read, or they are no certificate and
            key that belong together.
    """
    for file in (certificate, key):
        if Path(file).is_fifo():
            raise CertificateError(
                f"{file} is a pipe; name a file, which can be read more than once"
            )
        try:
            read_small(Path(file))
        except OSError as error:
            raise CertificateError(
                f"{file}: {error.strerror}; name a file that this user can read"
            ) from None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # Else it would ask for a passphrase on the terminal, and wait.
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise CertificateError(
                f"{key} is not the key of {certificate}; name two that belong together"
            ) from None
        raise CertificateError(
            f"{certificate} and {key} are no certificate and key in PEM:"
            f" {error.strerror or error}; name two files that belong together, the key"
            " without a passphrase"
        ) from None
    except OSError as error:  # it went meanwhile
        raise CertificateError(
            f"{certificate} and {key}: {error.strerror}; name two files that this user"
            " can read"
        ) from None
    return context
