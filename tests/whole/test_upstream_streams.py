"""Every stream of the catalogue through the whole server: HTTP in, frames out."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.fakes.replies import streamed, text_events
from tests.fakes.server import server
from tests.fakes.upstream import FakeUpstream, Reply
from tests.fakes.wire import Copy, Wire, wire
from tests.upstreams.catalogue import CASES, Case, LongText

ENDS = {
    "stop": ("completed", None),
    "length": ("incomplete", "max_output_tokens"),
    "content_filter": ("incomplete", "content_filter"),
    "incomplete": ("incomplete", "upstream_truncated"),
    "error": ("failed", None),
    # After the calls the model is called again, and says something.
    "tool_calls": ("completed", None),
}
AFTERWARDS = "Said after the calls."


def cut_at_its_splits(case: Case) -> list[Reply]:
    return case.replies()


def whole(case: Case) -> list[Reply]:
    *first, served = case.replies()
    return [*first, dataclasses.replace(served, splits=())]


def in_single_bytes(case: Case) -> list[Reply]:
    """Byte by byte; long bodies in 1,000 pieces."""
    *first, served = case.replies()
    size = max(1, len(served.body) // 1000)
    return [*first, dataclasses.replace(served, splits=(), write_bytes=size)]


async def play(client: Wire, upstream: FakeUpstream, case: Case, cut: Any) -> None:
    """Plays one case in a conversation of its own and compares what comes out."""
    names = sorted({call.name for call in case.expect.calls})
    tools = [{"name": name, "parameters": {"type": "object"}} for name in names]
    replies = cut(case)
    if case.expect.finish == "tool_calls":
        replies = [*replies, streamed(text_events(AFTERWARDS))]
    upstream.script(*replies)
    name = f"{cut.__name__}-{case.name}"[:128]
    config = {"tools": tools, "model": "toy"}
    await client.open(name, config=config, handles=names)
    reply = await client.command("send", conversation=name, content="hi")
    copy = client.copies[name]
    answered: set[str] = set()
    while not copy.dones:
        await client.until(
            lambda: (
                copy.dones
                or any(
                    request["call"] not in answered for request in _asked(client, name)
                )
            ),
            20,
        )
        for request in _asked(client, name):
            if request["call"] not in answered:
                answered.add(request["call"])
                await client.command(
                    "tool_result",
                    conversation=name,
                    call=request["call"],
                    output="done",
                )
    check(case, copy, reply["turn"])
    await client.command("close", conversation=name)


def _asked(client: Wire, name: str) -> list[dict[str, Any]]:
    return [
        frame
        for frame in client.controls
        if frame["type"] == "tool_request" and frame["conversation"] == name
    ]


def check(case: Case, copy: Copy, turn: int) -> None:
    """Compares the events of a turn with the case's outcome."""
    expect = case.expect
    done = copy.dones[turn]
    copy.prove()
    status, reason = ENDS[expect.finish]
    if case.answer.end == "stall":
        reason = "upstream_stalled"
    assert (done["status"], done.get("reason")) == (status, reason)
    afterwards = AFTERWARDS if expect.finish == "tool_calls" else ""
    _same_text(copy.texts[turn].removesuffix(afterwards), expect.text)
    for kind, wanted in (("reasoning", expect.reasoning), ("refusal", expect.refusal)):
        _same_text("".join(e["text"] for e in copy.events if e["type"] == kind), wanted)
    runnable = [call for call in expect.calls if call.valid]
    if expect.finish != "tool_calls":
        runnable = []
    calls = [e for e in copy.events if e["type"] == "tool_call"]
    assert [(c["name"], c["arguments"]) for c in calls] == [
        (call.name, orjson.loads(call.arguments)) for call in runnable
    ]
    assert len({call["call"] for call in calls}) == len(calls)
    errors = [e for e in copy.events if e["type"] == "error"]
    assert len(errors) == (1 if expect.error else 0)
    if expect.error is not None:
        assert errors[0]["code"] == expect.error.code
        assert expect.error.says in errors[0]["message"]
    (usage,) = [e for e in copy.events if e["type"] == "usage"]
    if expect.usage is not None and expect.finish != "tool_calls":
        assert usage["estimated"] is False
        assert usage["input_tokens"] == expect.usage.input
        assert usage["output_tokens"] == expect.usage.output
    shown = {"delta", "reasoning", "refusal", "tool_delta"} & {
        e["type"] for e in copy.events
    }
    if not shown and not expect.calls:
        assert "ttft_ms" not in done["timing"]


def _same_text(text: str, wanted: str | LongText) -> None:
    if isinstance(wanted, LongText):
        digest = hashlib.sha256(text.encode()).hexdigest()
        assert LongText(chars=len(text), sha256=digest) == wanted
    else:
        assert text == wanted


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.timeout(240)
@pytest.mark.parametrize("cut", [cut_at_its_splits, whole, in_single_bytes])
async def test_all_streams_come_out_right(cut: Any, tmp_path: Path) -> None:
    wrong: dict[str, AssertionError] = {}
    async with FakeUpstream() as upstream:
        env = {
            "OPENAI_BASE_URL": upstream.base_url,
            "WSSERVER_UPSTREAM_IDLE_TIMEOUT_SECONDS": "1",
        }
        async with (
            server("--store", "sqlite", folder=tmp_path, env=env) as running,
            wire(running.url) as client,
        ):
            for case in CASES:
                try:
                    await play(client, upstream, case, cut)
                except AssertionError as error:
                    wrong[case.name] = error
    assert len(CASES) == 148
    assert not wrong, "\n".join(f"{name}: {error}" for name, error in wrong.items())
