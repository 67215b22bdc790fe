"""The guide's hook for certbot: it hands over the server's certificate and no other."""

import re
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/how-to/deploy.md"
OWN = "chat.example.org"

# Only root can give a file away, and only systemd has units.
STAND_INS = """
install() {
    [ "$1" != -o ] || { echo "for $2"; shift 2; }
    command install "$@"
}
systemctl() { echo "systemctl $*"; }
"""


@pytest.fixture
def live(tmp_path: Path) -> Path:
    """As certbot keeps them: links to the newest of each certificate's files."""
    for name in (OWN, "mail.example.org"):
        (tmp_path / "archive" / name).mkdir(parents=True)
        (tmp_path / "live" / name).mkdir(parents=True)
        for file in ("fullchain", "privkey"):
            kept = tmp_path / "archive" / name / f"{file}2.pem"
            kept.write_text(f"{file} of {name}")
            (tmp_path / "live" / name / f"{file}.pem").symlink_to(kept)
    return tmp_path / "live"


def run(lineage: Path, folder: Path) -> list[str]:
    """Returns what the hook asked for."""
    (hook,) = re.findall(r"```sh\n#!/bin/sh -e\n(.*?)```", PAGE.read_text(), re.DOTALL)
    ran = subprocess.run(  # noqa: S603 - our own lines
        ["/bin/sh", "-ec", STAND_INS + hook.replace("/etc/wsserver", str(folder))],
        env={"PATH": "/usr/bin:/bin", "RENEWED_LINEAGE": str(lineage)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_the_servers_own_is_handed_over(live: Path, tmp_path: Path) -> None:
    folder = tmp_path / "etc"

    asked = run(live / OWN, folder)

    # A server that does not run yet is no failure, and is not started.
    assert asked == ["for wsserver", "systemctl try-reload-or-restart wsserver"]
    for file in ("fullchain", "privkey"):
        copy = folder / "tls" / f"{file}.pem"
        assert copy.read_text() == f"{file} of {OWN}"
        assert not copy.is_symlink()
        assert copy.stat().st_mode & 0o777 == 0o400


def test_another_ones_is_left_alone(live: Path, tmp_path: Path) -> None:
    folder = tmp_path / "etc"
    assert run(live / "mail.example.org", folder) == []
    assert not folder.exists()


def test_the_settings_name_what_it_writes() -> None:
    text = PAGE.read_text()
    assert 'tls_cert_file = "/etc/wsserver/tls/fullchain.pem"' in text
    assert 'tls_key_file = "/etc/wsserver/tls/privkey.pem"' in text
