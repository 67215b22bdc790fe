"""The guide's lines that make a backup and restore it, with and without a container."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from tests.stores.samples import ALL, KEY, NOW, appending, meta, tokens
from tests.stores.sqlite_rig import begin, crash, open_file, opened

ROOT = Path(__file__).parents[2]

# What has to be stood in for: a container's commands run beside it.
STAND_INS = f"""
systemctl() {{ :; }}
wsserver() {{ {sys.executable} -m wsserver "$@"; }}
python() {{ {sys.executable} "$@"; }}
sqlite3() {{ python -c "import sys, sqlite3
_, source, command = sys.argv
sqlite3.connect(source).backup(sqlite3.connect(command.split(chr(39))[1]))" "$@"; }}
docker() {{
    case $1 in
    exec) shift 2; "$@" ;;
    run) while [ "$1" != -ec ]; do shift; done; (set -e; eval "$2") ;;
    esac
}}
"""


def lines(number: int, folder: Path) -> str:
    """Returns a block of the chapter, for folders of its own."""
    page = (ROOT / "docs/how-to/deploy.md").read_text()
    chapter = page.partition("## Back up and restore")[2].partition("\n## ")[0]
    block = re.findall(r"```sh\n(.*?)```", chapter, re.DOTALL)[number]
    for place in ("/var/lib/wsserver", "/var/backups"):
        block = block.replace(place, f"{folder}{place}")
    return block.replace("/opt/wsserver/.venv/bin/wsserver", "wsserver")


async def run(block: str, store: Path) -> str:
    def shell() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(  # noqa: S603 - our own lines
            ["/bin/sh", "-c", STAND_INS + block],
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", "WSSERVER_STORE": f"sqlite:{store}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    ran = await run_sync(shell)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize(
    ("back_up", "restore"), [(0, 2), (1, 3)], ids=["unit", "container"]
)
async def test_a_backup_is_made_while_the_server_runs_and_restored(
    tmp_path: Path, back_up: int, restore: int
) -> None:
    backups = tmp_path / "var/backups"
    await run_sync(backups.mkdir, 0o700, True)
    path = tmp_path / "var/lib/wsserver/wsserver.db"
    store = await open_file(path)
    await store.commit([appending(tokens(1, 3))], NOW)
    await run(lines(back_up, tmp_path), path)
    await store.commit([appending(tokens(4, 6))], NOW)
    await begin(store, "somebody/else")
    await crash(store)

    said = await run(lines(restore, tmp_path), path)

    assert said == "conversations with a new epoch: 1\n"
    assert (backups / "wsserver.db").stat().st_mode & 0o777 == 0o600
    async with opened(path) as store:
        found = await store.meta(KEY)
        assert found is not None
        assert (found.head, found.epoch != meta(3).epoch) == (3, True)
        assert await store.read(KEY, 0, ALL) == tokens(1, 3)
        assert await store.meta("somebody/else") is None
