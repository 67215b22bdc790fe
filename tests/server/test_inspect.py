"""`wsserver serve --inspect` and `--record`, with real servers and sockets."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from wsserver.settings import SettingsError, load

HELLO = b'{"type":"hello","protocol":1,"token":"k-123456"}'
COMMANDS: list[dict[str, Any]] = [
    {"type": "open", "id": "o", "conversation": "c", "config": {"model": "demo/fast"}},
    {"type": "send", "id": "s", "conversation": "c", "content": "A secret question"},
]


@contextmanager
def chat(server: Any) -> Iterator[ClientConnection]:
    """Has a short conversation."""
    url = f"ws://127.0.0.1:{server.port}/v1/chat"
    with connect(url, compression=None) as client:
        client.send(HELLO, text=True)
        for command in COMMANDS:
            client.send(orjson.dumps(command), text=True)
        while orjson.loads(client.recv(timeout=10))["type"] != "done":
            pass
        yield client


def feed(server: Any, **options: Any) -> ClientConnection:
    return connect(
        f"ws://127.0.0.1:{server.port}/inspect/feed", compression=None, **options
    )


def lines(page: ClientConnection, last: str) -> list[dict[str, Any]]:
    """Returns lines up to one of that kind, or that type of frame."""
    found: list[dict[str, Any]] = []
    while True:
        for line in orjson.loads(page.recv(timeout=10))["lines"]:
            found.append(line)
            if last in (line["kind"], line.get("frame", {}).get("type")):
                return found


def test_a_page_sees_and_cuts_a_connection(start: Any) -> None:
    server = start("--inspect")
    status, html = server.get("/inspect")
    assert status == 200
    assert "/inspect/page.js" in html
    for asset in ("page.js", "page.css"):
        assert server.get(f"/inspect/{asset}")[0] == 200, asset
    with feed(server) as page, chat(server) as client:
        first = orjson.loads(page.recv(timeout=10))
        assert first["header"]["content"] == "redacted"
        seen = lines(page, "done")
        types = [line["frame"]["type"] for line in seen if "frame" in line]
        for wanted in ("hello", "welcome", "open", "send", "message", "start", "delta"):
            assert wanted in types, wanted
        assert b"A secret" not in orjson.dumps(seen)
        assert b"k-123456" not in orjson.dumps(seen)
        (opened,) = [line for line in seen if line["kind"] == "opened"]
        drop = {"act": "drop", "connection": opened["connection"]}
        page.send(orjson.dumps(drop), text=True)
        with pytest.raises(ConnectionClosed) as ended:
            client.recv(timeout=10)
        assert ended.value.rcvd is None, "cut, not closed"
        assert lines(page, "closed")[-1]["by"] == "inspector"
        server.process.terminate()
        code, seconds = server.wait()
        assert code == 0
        assert seconds < 5, "an open page holds nobody up"


def test_a_duplicated_command_is_applied_once(start: Any) -> None:
    server = start("--inspect", "--inspect-content")
    with feed(server) as page, chat(server) as client:
        assert orjson.loads(page.recv(timeout=10))["type"] == "recording"
        seen = lines(page, "done")
        name = next(line["connection"] for line in seen if line["kind"] == "opened")
        order = {"act": "duplicate", "connection": name}
        page.send(orjson.dumps(order), text=True)
        lines(page, "act")
        again = COMMANDS[1] | {"id": "s2", "content": "Twice"}
        client.send(orjson.dumps(again), text=True)
        replies, events = [], []
        while len(replies) < 2 or events[-1]["type"] != "done":
            frame = orjson.loads(client.recv(timeout=10))
            (replies if frame["type"] == "reply" else events).append(frame)
        assert [reply.get("duplicate", False) for reply in replies] == [False, True]
        assert [e["content"] for e in events if e["type"] == "message"] == ["Twice"]


def test_strangers_get_no_feed(start: Any) -> None:
    allowed = "https://chat.example"
    server = start("--inspect", f"--allowed-origins={allowed}")
    for origin in ("https://evil.example", allowed):
        with pytest.raises(InvalidStatus) as refused:
            feed(server, origin=origin)
        assert refused.value.response.status_code == 403
    host = {"Host": "chat.example"}
    assert server.get("/", **host)[0] == 200, "a proxy may show the chat"
    assert server.get("/inspect", **host)[0] == 421
    assert server.get("/inspect/feed", **host)[0] == 421
    assert server.get("/inspect/feed")[0] == 426


def test_without_the_flag_there_is_no_inspector(start: Any) -> None:
    server = start()
    for path in ("/inspect", "/inspect/page.js", "/inspect/feed"):
        assert server.get(path)[0] == 404
    with pytest.raises(InvalidStatus):
        feed(server)
    assert "inspecting" not in server.log


def test_without_the_flag_it_is_not_even_loaded() -> None:
    program = (
        "import sys; from wsserver.assembly.inspection import Inspection;"
        "from wsserver.server import serving; from wsserver.settings import Settings;"
        "from wsserver.turns.clock import Clock; wire = object();"
        "tapped = Inspection(Settings(), Clock()).tapped('c', wire);"
        "assert tapped.__enter__() is wire;"
        "print([name for name in sys.modules if 'inspector' in name])"
    )
    run = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout == "[]\n"


def test_a_recording_survives_a_drain(start: Any, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    server = start("--record", str(path))
    assert server.get("/inspect")[0] == 404
    with chat(server):
        server.process.terminate()
        assert server.wait()[0] == 0
    header, *found = map(orjson.loads, path.read_bytes().splitlines())
    assert header["content"] == "redacted"
    assert [line["n"] for line in found] == list(range(1, len(found) + 1))
    assert found[0]["kind"] == "opened"
    assert {"kind": "closed", "by": "server", "code": 1012}.items() <= found[-1].items()
    assert b"A secret" not in path.read_bytes()


def test_a_recording_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("precious")
    run = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "wsserver", "serve", "--port=0", f"--record={path}"],
        capture_output=True,
        text=True,
        timeout=15,
        check=False,
    )
    assert run.returncode == 2
    assert "record: can't make" in run.stderr
    assert path.read_text() == "precious"


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"host": "192.0.2.1", "auth_keys_file": "keys"}, "bind 127.0.0.1"),
        ({"auth_keys_file": "keys"}, "asks nobody who they are"),
    ],
)
def test_it_is_for_this_machine_alone(flags: dict[str, str], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        load(flags={"inspect": "true", **flags}, environ={})
    assert load(flags={"record": "r", **flags}, environ={}).settings.inspected
