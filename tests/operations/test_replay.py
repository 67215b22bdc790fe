"""Recordings are played, and what comes out otherwise is told first."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.typing import Subprotocol

from tests.fakes.server import server
from wsserver.operations.replay.player import Outcome, Stage, replay
from wsserver.operations.replay.recording import (
    Recording,
    RecordingError,
    parse_recording,
    read_recording,
)

RECORDINGS = sorted((Path(__file__).parents[1] / "recordings").glob("*.jsonl"))
SUBPROTOCOLS = [Subprotocol("wsserver.v1")]
FAST = Stage(fast=True)
KEY = "k-123456"
Line = dict[str, Any]


def play(recording: Recording, stage: Stage = FAST) -> Outcome:
    """Plays to a server of its own, which reads files when it starts."""
    return anyio.run(replay, recording, stage)


def named(name: str) -> list[Line]:
    (path,) = [path for path in RECORDINGS if path.stem == name]
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def written(lines: list[Line]) -> Recording:
    return parse_recording(b"".join(orjson.dumps(line) + b"\n" for line in lines))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_it_comes_out_as_recorded(path: Path) -> None:
    outcome = play(written(named(path.stem)))
    (line,) = outcome.lines()
    assert line.startswith("as recorded; ")
    assert outcome.milestones >= 2


def test_at_its_pace_it_takes_as_long() -> None:
    lines = named("tool-call")
    started, at_ms = lines[0], [line["at_ms"] for line in lines[1:]]
    assert started["recording"] == 1
    outcome = play(written(lines), Stage())
    assert outcome.difference is None
    assert max(at_ms) - min(at_ms) < 5_000, "this test waits for so long"


async def test_a_server_that_runs_is_played_to_as_often_as_one_likes(
    tmp_path: Path,
) -> None:
    recordings = [written(named(name)) for name in ("mistakes", "busy")]
    async with server("--store", "memory", folder=tmp_path) as there:
        for recording in [*recordings, *recordings]:
            outcome = await replay(recording, Stage(url=there.url, fast=True))
            assert outcome.difference is None, outcome


def change(kind: str, **members: Any) -> Callable[[list[Line]], None]:
    """Changes the last frame to a client of a type."""

    def changed(lines: list[Line]) -> None:
        frame = next(
            line["frame"]
            for line in reversed(lines)
            if line.get("kind") == "out" and line["frame"]["type"] == kind
        )
        frame |= members

    return changed


def lose(kind: str) -> Callable[[list[Line]], None]:
    """Leaves out the last frame from a client of a type."""

    def changed(lines: list[Line]) -> None:
        numbers = [
            number
            for number, line in enumerate(lines)
            if line.get("kind") == "in" and line["frame"]["type"] == kind
        ]
        del lines[numbers[-1]]

    return changed


@pytest.mark.parametrize(
    ("name", "planted", "told"),
    [
        (
            "stop-and-resume",
            change("done", status="failed", reason=None),
            "`done` of turn 2: was {'status': 'failed', 'reason': None}, is {'status': ",
        ),
        (
            "mistakes",
            change("reply", ok=True, outcome="started", error=None),
            "the reply to `x4`, number 3: was {'ok': True, 'outcome': 'started'",
        ),
        ("mistakes", change("error", code="bad_frame"), "`error` number"),
        ("tool-call", change("tool_result", status="error"), "was error, is ok"),
        ("tool-call", change("start", model="demo/other"), "`start` of turn 1: was"),
    ],
)
def test_what_comes_out_otherwise_is_told(
    name: str, planted: Callable[[list[Line]], None], told: str
) -> None:
    lines = named(name)
    planted(lines)
    outcome = play(written(lines))
    assert outcome.difference is not None
    assert told in outcome.difference
    assert list(outcome.lines())[-1] == f"differs: {outcome.difference}"


def test_what_does_not_come_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wsserver.operations.replay.player.PATIENCE_SECONDS", 0.2)
    lines = named("tool-call")
    lose("tool_result")(lines)
    outcome = play(written(lines))
    assert outcome.difference is not None
    number = int(outcome.difference.split()[1].rstrip(":"))
    assert lines[number - 1]["frame"]["type"] in ("reply", "tool_result")
    assert "did not come" in outcome.difference


def test_a_recording_that_breaks_the_rules_says_so() -> None:
    lines = named("mistakes")
    (index,) = [
        number
        for number, line in enumerate(lines)
        if line.get("kind") == "out" and line["frame"]["type"] == "start"
    ]
    del lines[index]
    outcome = play(written(lines))
    assert any("does not fit after" in fault for fault in outcome.recorded_faults)
    assert any("the recording breaks a rule" in line for line in outcome.lines())


def test_connections_from_before_are_left_out() -> None:
    lines = named("busy")
    first = lines[1]["connection"]
    del lines[1]
    outcome = play(written(lines))
    assert (outcome.connections, outcome.skipped) == (1, 1)
    assert first not in str(outcome)


async def test_a_closed_door_is_told(tmp_path: Path) -> None:
    recording = written(named("tool-call"))
    keys = tmp_path / "keys"
    keys.write_text(f"alice:{KEY}\n")
    flags = ["--store", "memory", "--auth-keys-file", str(keys)]
    async with server(*flags, folder=tmp_path) as there:
        outcome = await replay(recording, Stage(url=there.url, fast=True))
        assert "welcome did not come" in (outcome.difference or "")
        assert "4401" in (outcome.difference or "")
        stage = Stage(url=there.url, fast=True, token=KEY)
        with_token = await replay(written(named("mistakes")), stage)
        assert with_token.difference is None
        elsewhere = Stage(url=there.url.replace("/chat", "/no"), fast=True)
        refused = await replay(recording, elsewhere)
        assert "is not let in" in (refused.difference or "")


async def test_what_answers_but_sends_no_frames_is_told() -> None:
    async def babble(connection: ServerConnection) -> None:
        await connection.send("[]")
        await connection.wait_closed()

    recording = written(named("busy"))
    async with serve(babble, "127.0.0.1", 0, subprotocols=SUBPROTOCOLS) as made:
        url = f"ws://127.0.0.1:{made.sockets[0].getsockname()[1]}/"
        outcome = await replay(recording, Stage(url=url, fast=True))
    assert outcome.difference is not None
    assert outcome.difference.startswith("a rule is broken: ")
    assert "was sent no frame: A frame must be one JSON object" in outcome.difference


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "line 1 is no recording's header"),
        (b"\xff\xfe", "line 1 is no recording's header"),
        (b'{"type":"hello"}', "line 1 is no recording's header"),
        (b'{"a":' + b"[" * 9000, "line 1 is no recording's header"),
        (b'{"recording":2,"server":{"name":"x","version":"0"},"started_at":"","content":"whole"}', "version 2"),
        (b'{"recording":1,"server":{"name":"x","version":"0"},"started_at":"","content":"whole"}\n\n{"kind":"no"}', "line 3"),
    ],
)  # fmt: skip
def test_what_is_no_recording_is_told(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "r"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=why):
        read_recording(path)
    with pytest.raises(RecordingError, match="No such file"):
        read_recording(tmp_path / "no")


def test_what_the_inspector_spoiled_is_no_fault_of_the_server() -> None:
    lines = named("names")
    deltas = [
        number
        for number, line in enumerate(lines)
        if line.get("kind") == "out" and line["frame"]["type"] == "delta"
    ]
    lines[deltas[0]]["fault"] = "lost"
    lines.insert(deltas[1] + 1, lines[deltas[1]] | {"fault": "repeated"})
    outcome = play(written(lines))
    assert (outcome.difference, outcome.recorded_faults) == (None, ())
