"""Whatever a command is given: one clear line of what was wrong and what to do."""

import os
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

import wsserver as wsserver_package
from tests.operations.conftest import Command

LOOKS = [("list",), ("show", "x"), ("export", "x"), ("delete", "--yes", "x")]
COMMANDS = [
    *(("conversations", *look) for look in (*LOOKS, ("renew-epochs",))),
    ("serve", "--port", "0"),
    ("config", "check"),
    ("doctor", "--no-upstreams"),
]
ROOT = Path(wsserver_package.__file__).parents[1]
NOT_HERE = "can't listen on 192.0.2.7:0: Cannot assign requested address"
METRICS = (
    "--port", "0", "--metrics-access", "token", "--metrics-token-file"
)  # fmt: skip
HOLDS_NONE = "something else than a token; write one of visible ASCII characters there"
OTHER = "name another with `--store sqlite:PATH`"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Works in a folder of things that are no stores."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "words").write_text("hello\n" * 100)
    os.mkfifo("pipe")
    with closing(sqlite3.connect("other.db")) as other:
        other.execute("CREATE TABLE a (b)")
    return tmp_path


def said(ran: object) -> str:
    """Returns the one line of what was wrong, wherever it was said."""
    out, err = str(ran.out), str(ran.err)  # type: ignore[attr-defined]
    lines = [line for line in out.splitlines() if line.startswith("fail")]
    (line,) = lines or err.splitlines()
    assert "Traceback" not in err
    return line.replace(" -> ", "; ")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("folder", "is a folder; name a file in it with `--store sqlite:PATH`"),
        ("pipe", f"is no file; {OTHER}"),
        ("other.db", "belongs to another program; name another file with"),
        ("words", "file is not a database"),
        ("x" * 300, f"File name too long; run this as the server's user, or {OTHER}"),
        ("~nobody-has-this-name/x", "nobody knows whose home that is; write it in"),
    ],
    ids=["folder", "pipe", "other", "words", "long", "home"],
)
def test_a_store_that_is_none(
    wsserver: Command, files: Path, command: tuple[str, ...], path: str, says: str
) -> None:
    ran = wsserver(*command, "--store", f"sqlite:{path}")
    assert ran.code in (1, 2)
    assert says in said(ran)
    assert Path(path).name in said(ran)
    assert (ran.code == 2) >= (command[0] in ("serve", "config"))
    assert set(os.listdir(files)) >= {"folder", "words", "pipe", "other.db"}


@pytest.mark.parametrize("command", COMMANDS[:5], ids=" ".join)
def test_a_store_that_nobody_wrote_to(
    wsserver: Command, files: Path, command: tuple[str, ...]
) -> None:
    (files / "empty").touch()
    ran = wsserver(*command, "--store", "sqlite:empty")
    assert ran.code == 1
    assert "is empty, as no server has written to it yet; name the" in said(ran)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_working_folder_that_is_gone(
    wsserver: Command, files: Path, command: tuple[str, ...]
) -> None:
    gone = files / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    try:
        ran = wsserver(*command, "--store", "sqlite:x.db")
    finally:
        os.chdir(files)
    assert ran.code in (1, 2)
    assert "x.db: the working folder is gone; change into another, or" in said(ran)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file or directory; name a file that can be read with --config"),
        (b"\xff\xfep\0", "the file is not UTF-8; save it as such"),
        (b"port = ", "not valid TOML: Invalid value (at end of document); correct it"),
        (b'auth_keys_file = "a\\u0000b"', "there is a zero byte in it; take it out"),
    ],
)
def test_a_file_of_settings_that_is_none(
    wsserver: Command, files: Path, content: bytes | None, says: str
) -> None:
    name = "two\nlines  of\x1b[2J"
    if content is not None:
        (files / name).write_bytes(content)
    for command in (("config", "show"), ("config", "env"), ("serve",), COMMANDS[0]):
        ran = wsserver(*command, "--config", name)
        assert ran.code == 2
        assert says in said(ran)
        assert "\x1b" not in ran.err


def test_a_byte_order_mark_is_passed_over(wsserver: Command, files: Path) -> None:
    (files / "w.toml").write_bytes(b"\xef\xbb\xbfport = 7\n")
    shown = wsserver("config", "show", "--config", "w.toml")
    assert tomllib.loads(shown.out)["port"] == 7


@pytest.mark.parametrize("show", [(), ("--show",)])
@pytest.mark.parametrize(
    ("name", "says"),
    [("no\nsuch", "No such file"), ("words", "line 1 is no"), ("folder", "Is a dir")],
)
def test_a_recording_that_is_none(
    wsserver: Command, files: Path, show: tuple[str, ...], name: str, says: str
) -> None:
    ran = wsserver("replay", *show, name)
    assert ran.code == 2
    assert says in said(ran)
    assert said(ran).endswith("; name what `wsserver serve --record FILE` wrote")


HEADER = {
    "recording": 1,
    "server": {"name": "s", "version": "0"},
    "started_at": "2026-01-01T00:00:00Z",
    "content": "whole",
}


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        ({"type": "welcome"}, "`protocol` is missing; it must be a whole number"),
        ({"type": "delta", "conversation": "c", "seq": "a"}, "`seq` must be a whole"),
        ({"type": "reply", "re": ["a"]}, "`re` must be a string"),
    ],
)
def test_a_recording_with_frames_that_no_server_sends(
    wsserver: Command, files: Path, frame: dict[str, Any], says: str
) -> None:
    opened = {"n": 1, "at_ms": 0, "kind": "opened", "connection": "c"}
    shown = opened | {"n": 2, "kind": "out", "bytes": 9, "frame": frame}
    lines = map(orjson.dumps, (HEADER, opened, shown))
    (files / "recording").write_bytes(b"\n".join(lines))
    ran = wsserver("replay", "recording")
    assert ran.code == 2
    assert f"recording: line 3: this frame is none that a server sends: {says}" in (
        said(ran).replace("bad_frame: ", "")
    )
    assert said(ran).endswith("; record anew, with a server of this version")


@pytest.mark.parametrize(
    "url", ["http://h", "ws://", "ws://[::1", "ws://h:99999/", "ws://h/#x", "words"]
)
def test_a_url_that_is_none(wsserver: Command, files: Path, url: str) -> None:
    (files / "recording").write_bytes(orjson.dumps(HEADER))
    ran = wsserver("replay", "recording", "--url", url)
    assert ran.code == 2
    assert f"{url} is no URL such as ws://127.0.0.1:8765/v1/chat; see" in said(ran)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (
            (
                "--port=0",
                "--host=192.0.2.7",
                "--auth-keys-file=keys",
                "--trusted-proxies=192.0.2.8",
            ),
            f"host: {NOT_HERE}; bind an address that this machine has",
        ),
        (
            ("--port", "0", "--auth-keys-file", "folder"),
            "auth_keys_file: folder: Is a directory; name a file that can be read",
        ),
        (
            (*METRICS, "no keys"),
            f"metrics_token_file: no keys holds {HOLDS_NONE}",
        ),
        (
            (*METRICS, "folder"),
            "metrics_token_file: folder: Is a directory; name a file with one token",
        ),
        (
            ("--port", "0", "--auth-keys-file", "no keys"),
            "auth_keys_file: no keys: no line holds a principal:key; add one",
        ),
    ],
)
def test_what_a_server_can_not_serve_with(
    wsserver: Command, files: Path, flags: tuple[str, ...], says: str
) -> None:
    (files / "keys").write_text("ann:0123456789abcdef\n")
    (files / "keys").chmod(0o600)
    (files / "no keys").write_text("# none\n")
    ran = wsserver("serve", "--store", "memory", *flags)
    assert (ran.code, said(ran)) == (2, f"wsserver: {says}")


def test_a_name_that_is_not_utf_8(wsserver: Command, store: Path) -> None:
    ran = wsserver("conversations", "show", "\udcff", "--store", f"sqlite:{store}")
    assert (ran.code, said(ran)) == (1, "wsserver: a name is not UTF-8; see `list`")


@pytest.fixture
def store(wsserver: Command, files: Path) -> Path:
    """Makes a store, without anything in it."""
    from wsserver.stores.sqlite.file import SqliteFile

    file = SqliteFile(files / "s.db")
    file.connect("process").close()
    file.release()
    return file.path


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", [("config", "show"), ("conversations", "list")])
def test_an_output_that_takes_no_more(store: Path, command: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(  # noqa: S603 - it is ours
            [sys.executable, "-m", "wsserver", *command, "--store", f"sqlite:{store}"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=20,
            check=False,
        )
    assert done.returncode == 1
    expected = b"wsserver: can't write the output: No space left on device\n"
    assert done.stderr == expected


def test_a_terminal_without_all_of_unicode() -> None:
    environ = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(
        [sys.executable, "-m", "wsserver", "config", "show", "--store", "sqlite:模"],
        capture_output=True,
        cwd=ROOT,
        env=environ,
        timeout=20,
        check=True,
    )
    assert b"sqlite:\\u6a21" in done.stdout
