"""Keys that others edit, taken up by a server that goes on, on SIGHUP."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from signal import SIGHUP, SIGTERM
from threading import Event
from time import monotonic
from typing import Any, NoReturn

import anyio
import orjson
import pytest
from structlog.testing import capture_logs

from tests.lifecycle.renewed import (
    WAIT_SECONDS,
    a_folder,
    ask,
    clients,
    close_code,
    is_welcome,
    until,
    until_logged,
)
from wsserver.lifecycle import reload
from wsserver.lifecycle.reload import Reload, Renewable

HANGS_SECONDS = 0.5
"""So long a reading that hangs is waited for; all others come within that."""

ANN, EVE, BOB = "key-of-ann-0123456", "key-of-eve-0123456", "key-of-bob-0123456"


@pytest.fixture
def connected() -> Iterator[Any]:
    with clients() as connecting:
        yield connecting


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(f"ann:{ANN}\neve:{EVE}\n")
    file.chmod(0o600)
    return file


@pytest.fixture
def served(start: Any, keys: Path) -> Any:
    return start(f"--auth-keys-file={keys}", "--log-format=json")


def test_keys_are_given_and_taken_back_and_nobody_else_notices(
    served: Any, keys: Path, connected: Any
) -> None:
    ann, eve = connected(served, ANN), connected(served, EVE)
    assert is_welcome(ann)
    assert is_welcome(eve)
    ask(ann, "demo/fast:tokens=300,tokens_per_second=300")
    ask(eve, "demo/fast:tokens=300,tokens_per_second=300")
    until(ann, "delta")
    until(eve, "delta")
    assert close_code(connected(served, BOB)) == 4401

    keys.write_text(f"ann:{ANN}\nbob:{BOB}\n")
    served.tell(SIGHUP)

    assert close_code(eve) == 4401
    told = until_logged(served, "reloaded")
    assert (told["setting"], told["file"]) == ("auth_keys_file", str(keys))
    assert (told["keys"], told["added"], told["gone"]) == (2, 1, 1)
    assert is_welcome(connected(served, BOB))
    assert close_code(connected(served, EVE)) == 4401
    assert until(ann, "done")["status"] == "completed"

    keys.write_text(f"ann:{ANN}\nbob:{BOB}\neve:{EVE}\n")
    served.tell(SIGHUP)
    until_logged(served, "reloaded", 2)
    back = connected(served, EVE)
    assert is_welcome(back)
    resume = {"type": "open", "id": "o", "conversation": "c", "after": 0}
    back.send(orjson.dumps(resume), text=True)
    assert until(back, "done")["status"] == "completed", "her turn has gone on"
    for key in (ANN, BOB, EVE):
        assert key not in served.log


def test_a_key_that_is_somebody_elses_now_ends_what_it_began(
    served: Any, keys: Path, connected: Any
) -> None:
    eve = connected(served, EVE)
    assert is_welcome(eve)
    keys.write_text(f"ann:{ANN}\nteam/eve:{EVE}\n")
    served.tell(SIGHUP)
    assert close_code(eve) == 4401
    assert is_welcome(connected(served, EVE))


# Each on top of the one before.


def wrong(keys: Path) -> None:
    keys.write_text(f"ann {ANN}\n")


def emptied(keys: Path) -> None:
    keys.write_text("")


def binary(keys: Path) -> None:
    keys.write_bytes(b"\xff\xfe\x00")


def a_link_to_nothing(keys: Path) -> None:
    keys.symlink_to(keys.with_name("nothing"))


def without_end(keys: Path) -> None:
    keys.unlink()
    keys.symlink_to("/dev/zero")


def a_pipe_without_a_writer(keys: Path) -> None:
    keys.unlink()
    os.mkfifo(keys)


KEYS_HARMED = (
    (wrong, ":1: expected principal:key"),
    (emptied, ": no line holds a principal:key"),
    (binary, ": the file is not UTF-8"),
    (Path.unlink, ": No such file or directory"),
    (a_link_to_nothing, ": No such file or directory"),
    (without_end, ": longer than 16777216 bytes"),
    (a_pipe_without_a_writer, ": a pipe that nobody writes to"),
    (a_folder, ": Is a directory"),
)


def test_a_broken_file_of_keys_leaves_the_old_in_force(
    served: Any, keys: Path, connected: Any
) -> None:
    ann = connected(served, ANN)
    assert is_welcome(ann)
    for times, (harm, fault) in enumerate(KEYS_HARMED, 1):
        harm(keys)
        served.tell(SIGHUP)
        about = until_logged(served, "reload_refused", times)["about"]
        assert about.startswith(f"auth_keys_file: {keys}{fault}")
        assert about.endswith("; what was read before stays in force")
        assert is_welcome(connected(served, EVE))
    ann.send(orjson.dumps({"type": "refresh", "id": "r", "token": ANN}), text=True)
    assert until(ann, "reply")["outcome"] == "refreshed"


def test_a_file_that_nobody_writes_holds_up_nothing(
    served: Any, keys: Path, connected: Any
) -> None:
    keys.unlink()
    os.mkfifo(keys)
    with keys.open("r+b", buffering=0) as silent:
        served.tell(SIGHUP)
        until_logged(served, "signal")
        assert is_welcome(connected(served, ANN))
        served.tell(SIGTERM)
        assert served.process.poll() is None
        silent.close()  # else its thread waits on
        assert served.wait()[0] == 0


def test_without_files_nothing_happens(start: Any, connected: Any) -> None:
    server = start("--log-format=json")
    client = connected(server, "")
    assert is_welcome(client)
    for times in range(1, 4):
        server.tell(SIGHUP)
        until_logged(server, "signal", times)
    ask(client, "demo/fast:tokens=3")
    assert until(client, "done")["status"] == "completed"
    server.tell(SIGTERM)
    deadline, pause = monotonic() + WAIT_SECONDS, Event()
    while server.process.poll() is None:  # to its very end
        assert monotonic() < deadline
        server.tell(SIGHUP)
        pause.wait(0.001)
    assert server.wait()[0] == 0


def test_the_token_for_metrics_is_taken_up(start: Any, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("before")
    server = start(
        f"--metrics-token-file={token}", "--metrics-access=token", "--log-format=json"
    )
    token.write_text("after")
    server.tell(SIGHUP)
    until_logged(server, "reloaded")
    assert server.get("/metrics", Authorization="Bearer before")[0] == 401
    assert server.get("/metrics", Authorization="Bearer after")[0] == 200


def test_the_key_for_tokens_is_taken_up(
    start: Any, tmp_path: Path, connected: Any
) -> None:
    jwt = pytest.importorskip("jwt")
    before, after = "b" * 32, "a" * 32

    def token(secret: str) -> str:
        claims = {"sub": "ann", "aud": "wsserver", "exp": 9_999_999_999}
        return jwt.encode(claims, secret, "HS256")

    file = tmp_path / "secret"
    file.write_text(before)
    server = start(
        "--auth-jwt-algorithms=HS256",
        f"--auth-jwt-key-file={file}",
        "--auth-jwt-audience=wsserver",
        "--log-format=json",
    )
    old = connected(server, token(before))
    assert is_welcome(old)
    file.write_text(after)
    server.tell(SIGHUP)
    until_logged(server, "reloaded")
    assert is_welcome(connected(server, token(after)))
    assert close_code(connected(server, token(before))) == 4401
    ask(old, "demo/fast:tokens=3")
    assert until(old, "done")["status"] == "completed", "its token has not ended"


def returned(value: str) -> str:
    return value


async def test_a_file_that_hangs_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reload, "READ_SECONDS", HANGS_SECONDS)
    hangs, took = Event(), list[str]()
    files = Reload()
    for name, read in (("a", hangs.wait), ("b", partial(returned, "new"))):
        files.add(Renewable(setting=name, file=name, read=read, take=took.append))
    try:
        with capture_logs() as lines:
            for _ in range(3):
                await files.run(lambda: took.append("taken"))
    finally:
        hangs.set()
    assert took == ["new", "taken"] * 3
    late, *again = [
        line["about"] for line in lines if line["event"] == "reload_refused"
    ]
    assert late.startswith("a: a can't be read within 0.5 s")
    assert len(again) == 2
    assert all(about.startswith("a: a is not read again while") for about in again)


async def test_a_file_that_hung_is_read_again_when_it_hangs_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reload, "READ_SECONDS", HANGS_SECONDS)
    hangs, over, reads, took = Event(), Event(), list[str](), list[str]()

    def read() -> str:
        reads.append("new")
        if len(reads) == 1:
            hangs.wait()
            over.set()
        return reads[-1]

    files = Reload()
    files.add(Renewable(setting="a", file="a", read=read, take=took.append))
    with capture_logs() as lines:
        try:
            for _ in range(3):
                await files.run(lambda: took.append("taken"))
            assert len(reads) == 1, "one thread hangs, not three"
        finally:
            hangs.set()
        assert over.wait(5)
        with anyio.fail_after(5):
            while "taken" not in took:
                await files.run(lambda: took.append("taken"))
    assert took == ["new", "taken"]
    assert lines[-1]["event"] == "reloaded"


@pytest.mark.parametrize("replaced", ["file", "beside"])
async def test_a_file_that_takes_the_place_of_one_that_hangs_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced: str
) -> None:
    monkeypatch.setattr(reload, "READ_SECONDS", HANGS_SECONDS)
    hangs, took = Event(), list[str]()
    paths = {name: tmp_path / name for name in ("file", "beside")}
    for path in paths.values():
        path.write_text("old")

    def read() -> str:
        text = paths[replaced].read_text()
        if text == "old":
            hangs.wait()
        return text

    files = Reload()
    files.add(
        Renewable(
            setting="a", file=str(paths["file"]), beside=(str(paths["beside"]),),
            read=read, take=took.append,
        )
    )  # fmt: skip
    try:
        await files.run(lambda: took.append("taken"))
        (tmp_path / "new").write_text("new")
        (tmp_path / "new").rename(paths[replaced])
        monkeypatch.setattr(reload, "READ_SECONDS", WAIT_SECONDS)
        await files.run(lambda: took.append("taken"))
    finally:
        hangs.set()
    assert took == ["new", "taken"]


async def test_where_even_looking_for_a_file_hangs_one_thread_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reload, "READ_SECONDS", HANGS_SECONDS)
    hangs, looks = Event(), list[str]()

    def look(path: str) -> None:
        looks.append(path)
        hangs.wait()

    monkeypatch.setattr(reload, "_identity", look)
    files = Reload()
    files.add(Renewable(setting="a", file="a", read=str, take=looks.append))
    with capture_logs() as lines:
        try:
            for _ in range(3):
                await files.run(lambda: looks.append("taken"))
        finally:
            hangs.set()
    assert looks == ["a"]
    assert [line["event"] for line in lines] == ["reload_refused"] * 3


@pytest.mark.parametrize("where", ["read", "take"])
async def test_a_defect_with_a_file_holds_up_no_other(where: str) -> None:
    def broken(*_: object) -> NoReturn:
        raise RuntimeError("a defect")

    files, took = Reload(), list[str]()
    read = partial(returned, "new")
    bad: dict[str, Any] = {"read": read, "take": took.append, where: broken}
    files.add(Renewable(setting="a", file="a", **bad))
    files.add(Renewable(setting="b", file="b", read=read, take=took.append))
    with capture_logs() as lines:
        await files.run(lambda: took.append("taken"))
    assert took == ["new", "taken"]
    told = [(line["event"], line["setting"]) for line in lines]
    assert sorted(told) == [("reload_defective", "a"), ("reloaded", "b")]
