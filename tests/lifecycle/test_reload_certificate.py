"""A certificate that others renew, taken up by a server that goes on, on SIGHUP."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGHUP
from typing import Any

import pytest

from tests.lifecycle.renewed import (
    Pair,
    a_folder,
    ask,
    clients,
    is_welcome,
    presented,
    trusting,
    until,
    until_logged,
)


@pytest.fixture
def connected() -> Iterator[Any]:
    with clients() as connecting:
        yield connecting


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


@pytest.fixture
def secure(start: Any, pair: Pair) -> Any:
    pair.renew()
    return start(
        f"--tls-cert-file={pair.certificate}",
        f"--tls-key-file={pair.key}",
        "--log-format=json",
    )


def test_a_renewed_certificate_is_taken_up_and_no_connection_ends(
    secure: Any, pair: Pair, connected: Any
) -> None:
    client = connected(secure, "", ssl=trusting())
    assert is_welcome(client)
    ask(client, "demo/fast:tokens=300,tokens_per_second=300")
    until(client, "delta")
    renewed = pair.renew()
    assert presented(secure) != renewed

    secure.tell(SIGHUP)
    told = until_logged(secure, "reloaded")

    assert (told["setting"], told["file"]) == ("tls_cert_file", str(pair.certificate))
    assert presented(secure) == renewed
    assert presented(secure, "localhost") == renewed
    assert until(client, "done")["status"] == "completed"
    assert is_welcome(connected(secure, "", ssl=trusting()))


def a_key_of_another(pair: Pair) -> None:
    certificate = pair.certificate.read_bytes()
    pair.renew()
    pair.certificate.write_bytes(certificate)


def half_a_certificate(pair: Pair) -> None:
    pair.renew()
    pair.certificate.write_bytes(pair.certificate.read_bytes()[:200])


def a_key_with_a_passphrase(pair: Pair) -> None:
    pair.renew()
    subprocess.run(  # noqa: S603 - our own command
        [
            *(shutil.which("openssl") or "", "ec", "-aes256", "-passout", "pass:word"),
            *("-in", str(pair.key), "-out", str(pair.key)),
        ],
        check=True,
        capture_output=True,
    )


def a_pipe(pair: Pair) -> None:
    pair.key.unlink()
    os.mkfifo(pair.key)


def without_end(pair: Pair) -> None:
    pair.certificate.unlink()
    pair.certificate.symlink_to("/dev/zero")


CERTIFICATE_HARMED: tuple[tuple[Callable[[Pair], None], str], ...] = (
    (a_key_of_another, "{key} is not the key of {certificate}"),
    (half_a_certificate, "{certificate} and {key} are no certificate and key"),
    (a_key_with_a_passphrase, "{certificate} and {key} are no certificate and key"),
    (a_pipe, "{key} is a pipe; name a file"),
    (lambda pair: pair.key.unlink(), "{key}: No such file or directory"),
    (without_end, "{certificate}: longer than 16777216 bytes"),
    (lambda pair: a_folder(pair.certificate), "{certificate}: Is a directory"),
)


def test_a_broken_certificate_leaves_the_old_in_force(secure: Any, pair: Pair) -> None:
    before = presented(secure)
    for times, (harm, fault) in enumerate(CERTIFICATE_HARMED, 1):
        harm(pair)
        secure.tell(SIGHUP)
        about = until_logged(secure, "reload_refused", times)["about"]
        named = fault.format(key=pair.key, certificate=pair.certificate)
        assert about.startswith(f"tls_cert_file: {named}")
        assert presented(secure) == before
