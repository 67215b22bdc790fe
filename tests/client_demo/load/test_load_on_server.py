"""Whole runs against the real server: in front of a bad network, and spoilt on purpose."""

import signal
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from client_demo.load import command
from client_demo.load.command import Options, run
from client_demo.load.connection import NotConnectedError, Site
from client_demo.load.fleet import CHILD
from client_demo.load.recording import Origin
from client_demo.load.report import Report
from client_demo.load.scenario import Plan, PromptSet, Scenario
from client_demo.load.user import Run
from client_demo.load.worker import Assignment
from protocol.content import ServerInfo
from tests.client_demo.load.frame_proxy import spoilt
from tests.fakes.proxy import Fault, proxy
from tests.fakes.server import ServerProcess
from tests.fakes.server import server as serve
from wsserver.inspector.records import Act, decode_header, decode_record

FAST = "demo/fast:tokens=40,tokens_per_second=400"
LONG = "demo/fast:tokens=4000,tokens_per_second=400"
"""It is still running when it is interrupted, however busy the machine is."""
WEATHER = {"name": "get_weather", "parameters": {"type": "object"}}
CHAT = [
    {"do": "open"},
    {"do": "send", "text": "hi {n}"},
    {"do": "wait_for", "event": "done"},
]


@pytest.fixture(scope="module")
async def server(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[ServerProcess]:
    folder = tmp_path_factory.mktemp("load")
    async with serve("--store", "memory", folder=folder) as made:
        yield made


def plan(*groups: dict[str, Any], users: int = 3, **members: Any) -> Plan:
    scenario = {
        "title": "test",
        "runs": 1,
        "stages": [{"seconds": 0, "users": users}],
        "groups": [
            {"name": str(place), "model": FAST, **group}
            for place, group in enumerate(groups)
        ],
    }
    made = msgspec.convert(scenario | members, Scenario)
    prompts = {"two": {"prompts": [{"name": n, "text": n} for n in ("a", "b")]}}
    return Plan(scenario=made, prompts=msgspec.convert(prompts, dict[str, PromptSet]))


async def load(
    plan: Plan, url: str, folder: Path, **options: Any
) -> tuple[int, Report]:
    path = anyio.Path(folder / "report.json")
    with anyio.fail_after(19):
        code = await run(
            plan,
            Options(
                site=Site(url=url),
                json=str(path),
                recordings=folder / "recordings",
                **options,
            ),
        )
    return code, msgspec.json.decode(await path.read_bytes(), type=Report)


ALL_STEPS = [
    {"do": "open", "window_bytes": 2048},
    {"do": "loop", "times": 2, "every_seconds": 0.1, "steps": CHAT[1:]},
    {"do": "send", "text": "stop", "model": LONG},
    {"do": "interrupt", "after_tokens": 5, "seen": 0.5},
    {"do": "send", "text": "drop"},
    {"do": "drop", "after_tokens": 5},
    {"do": "think", "seconds": {"distribution": "uniform", "min": 0, "max": 0.02}},
    {"do": "resume"},
    {"do": "wait_for", "tokens": 20},
    {"do": "send", "text": "instead", "policy": "interrupt", "model": FAST + ",seed=1"},
    {"do": "send", "text": "also", "policy": "steer"},
    {"do": "wait_for", "event": "done"},
    {"do": "read", "bytes_per_second": 100_000, "pause_seconds": 0.01},
    {"do": "send", "prompts": "two"},
    {"do": "wait_for", "event": "done"},
]  # fmt: skip
TOOL_STEPS = [
    {"do": "open"},
    {"do": "tools", "copies": 2, "delay_seconds": 0.01},
    {"do": "send", "text": "get_weather"},
    {"do": "wait_for", "event": "done"},
    {"do": "tools", "answer": "error"},
    {"do": "send", "text": "get_weather"},
    {"do": "wait_for", "event": "done"},
    {"do": "tools", "answer": "never"},
    {"do": "send", "text": "get_weather"},
    {"do": "wait_for", "event": "tool_request"},
    {"do": "wait_for", "seconds": 0.01},
    {"do": "interrupt"},
]


async def test_every_step_does_what_it_says(
    server: ServerProcess, tmp_path: Path
) -> None:
    both = plan(
        {"steps": ALL_STEPS, "conversations": 2},
        {"steps": TOOL_STEPS, "model": "demo/tools", "tools": [WEATHER]},
        users=2,
    )
    code, report = await load(both, server.url, tmp_path, html=tmp_path / "r.html")
    figures, counted = report.overall.figures, report.overall.counted
    assert (code, report.verdict, report.violations) == (0, "fine", [])
    assert figures["users"] == 2
    assert figures["scripts"] == figures["conversations"] == figures["reread"] == 3
    assert figures["turns"] == 2 * 7 + 3
    assert figures["failed"] == figures["unfinished"] == figures["disconnects"] == 0
    assert 1 <= figures["drops"] <= 2
    assert counted["tools"] == {"accepted": 2, "duplicate": 1}
    assert counted["interrupts"]["interrupted"] == 3
    assert counted["errors"] == {}
    assert set(counted["resumes"]) == {"replay"}
    for measure in ("connect", "open", "ttft", "gap", "tpot", "turn", "late"):
        assert figures[f"{measure}_ms.count"] >= 2, measure
    for measure in ("interrupt_reply", "interrupt_done", "resume", "tool"):
        assert figures[f"{measure}_ms.p50"] > 0, measure
    assert [time.prompt for time in report.prompts[0]] == ["a", "a"]
    assert (tmp_path / "r.html").exists()


async def test_on_a_bad_network_nothing_is_wrong(
    server: ServerProcess, tmp_path: Path
) -> None:
    faults = [Fault(cut_down=3000, pieces=7), Fault(cut_up=700, pieces=1)]
    async with proxy(server.url) as bad:
        # The first connection only says hello and asks for the limits.
        bad.fault = lambda number: (
            faults[number % 2] if 0 < number < 3 else Fault(pieces=100)
        )
        code, report = await load(
            plan({"steps": CHAT + CHAT[1:]}, users=2), bad.url(server.url), tmp_path
        )
    assert (code, report.violations) == (0, [])
    assert report.overall.figures["disconnects"] == 2
    assert report.overall.counted["closes"] == {"none": 2}
    assert report.overall.counted["statuses"] == {"completed": 4}


def once(kind: bytes, number: int, spoil: Callable[[bytes], list[bytes]]) -> Any:
    """Spoils the n-th frame of a kind."""
    seen = 0

    def each(frame: bytes) -> list[bytes]:
        nonlocal seen
        if b'"type":"%s"' % kind not in frame:
            return [frame]
        seen += 1
        return spoil(frame) if seen == number else [frame]

    return each


@pytest.mark.parametrize(
    ("spoil", "kinds"),
    [
        pytest.param(
            once(b"delta", 5, lambda frame: []), {"gap", "wrong_text"}, id="lost delta"
        ),
        pytest.param(
            once(b"done", 1, lambda frame: [frame, frame]),
            {"second_done", "repeated"},
            id="doubled done",
        ),
        pytest.param(
            once(b"done", 1, lambda frame: []), {"tail_lost"}, id="lost done"
        ),
        pytest.param(
            lambda frame: [frame.replace(b'"replay"', b'"created"')],
            {"log_reset"},
            id="lost log",
        ),
        pytest.param(
            once(b"delta", 3, lambda frame: [frame.replace(b'"text":"', b'"text":"~')]),
            {"wrong_text"},
            id="wrong text",
        ),
        pytest.param(
            once(b"delta", 3, lambda frame: [b"{", frame]), {"bad_frame"}, id="no JSON"
        ),
        pytest.param(
            once(b"reply", 2, lambda frame: [frame, frame]),
            {"reply_twice"},
            id="doubled reply",
        ),
        pytest.param(
            once(b"delta", 3, lambda frame: [frame, frame.replace(b"load-", b"lord-")]),
            {"foreign_event"},
            id="another's event",
        ),
    ],
)  # fmt: skip
async def test_the_oracle_finds_what_was_planted(
    server: ServerProcess, tmp_path: Path, spoil: Any, kinds: set[str]
) -> None:
    # What never comes is not waited for longer than this.
    within = {"within_seconds": 1 if kinds == {"tail_lost"} else 10}
    steps = [*CHAT[:2], {"do": "wait_for", "event": "done", **within}]
    async with spoilt(server.url, spoil) as url:
        code, report = await load(plan({"steps": steps}, users=1), url, tmp_path)
    assert (code, report.verdict) == (3, "violations")
    assert kinds <= report.overall.counted["violations"].keys()
    recording = report.violations[0].recording
    assert recording is not None
    header, *lines = (await anyio.Path(recording).read_bytes()).splitlines()
    assert decode_header(header).content == "whole"
    said = [line.act for line in map(decode_record, lines) if isinstance(line, Act)]
    assert said[0].startswith(report.violations[0].kind)


async def test_a_broken_threshold_is_exit_code_1(
    server: ServerProcess, tmp_path: Path
) -> None:
    thresholds = ["ttft_ms.p50 > 0", "resume_ms.p99 < 9", "errors.busy == 0"]
    chat = plan({"steps": CHAT}, users=1, thresholds=thresholds)
    code, report = await load(chat, server.url, tmp_path)
    assert code == 1
    assert [one.held for one in report.thresholds] == [True, False, True]
    assert report.overall.figures["cpu.max"] > 0


async def test_refusals_are_errors_and_end_the_script(
    server: ServerProcess, tmp_path: Path
) -> None:
    steps = [
        *CHAT[:2],
        {"do": "send", "text": "too early", "policy": "reject"},
    ]
    code, report = await load(plan({"steps": steps}, users=1), server.url, tmp_path)
    assert code == 0
    assert report.overall.counted["errors"] == {"busy": 1}
    assert report.overall.figures["failed"] == 1


async def test_what_is_refused_before_it_begins_is_told_and_no_violation(
    server: ServerProcess, tmp_path: Path
) -> None:
    steps = plan({"steps": CHAT}, users=2)
    code, report = await load(steps, server.url, tmp_path, model="demo/nope")
    assert (code, report.verdict, report.violations) == (1, "unasked", [])
    assert report.overall.counted["errors"] == {"bad_model": 2}
    assert report.notes[0].startswith(
        "2 bad_model, the first of them: No upstream knows the"
    )


async def test_without_credentials_it_says_where_to_give_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def refuse(site: Site) -> None:
        raise NotConnectedError("unauthorized", "The credentials are missing.")

    monkeypatch.setattr(command, "dial", refuse)
    options = Options(site=Site(url="ws://h.invalid/v1/chat"))
    assert await run(plan({"steps": CHAT}), options) == 1
    assert capsys.readouterr().err == (
        "no load: The credentials are missing. Give them with --token or in"
        " WSSERVER_TOKEN.\n"
    )


async def test_many_processes_and_rounds_make_one_report(
    server: ServerProcess, tmp_path: Path
) -> None:
    scenario = plan({"steps": CHAT}, users=4, rounds=2)
    code, report = await load(scenario, server.url, tmp_path, processes=2, seed=7)
    assert (code, report.processes, len(report.rounds)) == (0, 2, 2)
    assert report.overall.figures["users"] == 8
    assert report.overall.times["ttft"].fields["count"] == 8
    assert [one.figures["turns"] for one in report.rounds] == [4, 4]
    assert report.scenario.seed == 7


async def test_people_arrive(server: ServerProcess, tmp_path: Path) -> None:
    stages = [{"seconds": 0.5, "arrivals_per_second": 20}]
    chat = plan({"steps": CHAT}, stages=stages, runs=None)
    _, report = await load(chat, server.url, tmp_path)
    assert 1 <= report.overall.figures["users"] <= 12
    assert report.overall.figures["users"] == report.overall.figures["scripts"]


async def test_without_a_server_there_is_no_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = Options(site=Site(url="ws://me:secret@127.0.0.1:1/v1/chat"))
    assert await run(plan({"steps": CHAT}), options) == 1
    assert "no load: ws://127.0.0.1:1/v1/chat: " in capsys.readouterr().err


async def test_a_message_that_waits_is_taken_back(
    server: ServerProcess, tmp_path: Path
) -> None:
    steps = [*CHAT[:2], {"do": "send", "text": "waits"}, {"do": "interrupt"}]
    code, report = await load(plan({"steps": steps}, users=1), server.url, tmp_path)
    assert (code, report.violations) == (0, [])
    assert report.overall.counted["interrupts"] == {"dequeued": 1}
    statuses = {"completed": 1, "interrupted/by_client": 1}
    assert report.overall.counted["statuses"] == statuses


@pytest.mark.parametrize(
    ("processes", "stop"), [(1, signal.SIGINT), (2, signal.SIGINT), (1, signal.SIGTERM)]
)
async def test_who_is_told_to_stop_lets_users_finish_and_reports(
    server: ServerProcess, tmp_path: Path, processes: int, stop: signal.Signals
) -> None:
    def interrupt(frame: bytes) -> list[bytes]:
        signal.raise_signal(stop)
        return [frame]

    stages = [{"seconds": 0, "users": 2}, {"seconds": 600, "users": 2}]
    async with spoilt(server.url, once(b"done", 3, interrupt)) as url:
        code, report = await load(
            plan({"steps": CHAT}, stages=stages, runs=None), url, tmp_path,
            processes=processes,
        )  # fmt: skip
    assert code == 0
    assert report.notes[0] == "It was stopped before its end."
    figures = report.overall.figures
    assert figures["scripts"] == figures["users"] >= 2
    assert figures["unfinished"] == 0


async def test_who_does_not_finish_in_time_is_counted(
    server: ServerProcess, tmp_path: Path
) -> None:
    steps = [*CHAT[:2], {"do": "wait_for", "seconds": 600}]
    stages = [{"seconds": 0.2, "users": 2}]
    _, report = await load(
        plan({"steps": steps}, stages=stages, runs=None, drain_seconds=1),
        server.url,
        tmp_path,
    )
    assert 1 <= report.overall.figures["unfinished"] <= 2
    assert report.notes[-1].startswith("Still running at the end: ")


async def test_a_process_whose_fleet_is_gone_ends_without_a_word(
    server: ServerProcess,
) -> None:
    stages = [{"seconds": 0, "users": 1}, {"seconds": 600, "users": 1}]
    endless = Run(
        plan=plan({"steps": [*CHAT[:2], {"do": "wait_for", "seconds": 600}]}, stages=stages, runs=None),
        site=Site(url=server.url),
        name="orphan",
        origin=Origin(server=ServerInfo(name="s", version="1"), started_at=""),
    )  # fmt: skip
    child = await anyio.open_process([sys.executable, *CHILD])
    async with child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        line = msgspec.json.encode(Assignment(run=endless))
        await child.stdin.send(line + b"\ngo\n")
        said = BufferedByteReceiveStream(child.stdout)
        for kind in (b"Ready", b"Tick"):
            assert kind in await said.receive_until(b"\n", 2**20)
        await child.stdout.aclose()
        await child.stdin.aclose()
        with anyio.fail_after(10):
            assert await child.wait() == 0
        with pytest.raises(anyio.EndOfStream):
            await child.stderr.receive()


async def test_a_process_that_dies_is_told(
    server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr("client_demo.load.fleet.CHILD", ["-c", "print('{')"])
    options = Options(site=Site(url=server.url), processes=2)
    assert await run(plan({"steps": CHAT}), options) == 1
    assert "no load: a process of the load tester died" in capsys.readouterr().err
