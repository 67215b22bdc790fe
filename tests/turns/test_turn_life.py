"""A turn from its message to its one `done`, as the log tells it."""

import asyncio
from typing import Any

import anyio
import pytest

from protocol.commands import Configure, Send
from protocol.content import Config, Detach
from protocol.events import DoneEvent, UsageEvent
from tests.fakes.rig import ALICE, FakeViewer, Rig, done, events, rig
from tests.fakes.scripted import ScriptedProvider, says
from tests.turns.served import Panic
from wsserver.engine.deadlines import Patience
from wsserver.engine.limits import TurnLimits
from wsserver.engine.model import Failure, Finished, Reasoning, Text
from wsserver.turns.conversation import Conversation
from wsserver.turns.errors import CommandError
from wsserver.turns.services import ConversationLimits

OVERLOADED = Failure(code="upstream_unavailable", message="full", retryable=True)


def kinds(log: list[Any]) -> list[str]:
    return [str(type(event).__struct_config__.tag) for event in log]


def send(conversation: Conversation, viewer: FakeViewer | None, **members: Any) -> Any:
    command = Send(**{"id": "s1", "conversation": "c", "content": "hi", **members})
    return conversation.apply(command, ALICE, viewer).reply


async def opened(r: Rig, *handles: str) -> tuple[Conversation, FakeViewer]:
    conversation = await r.conversation()
    viewer = FakeViewer(conversation, "c1", *handles)
    conversation.attach(viewer)
    return conversation, viewer


async def test_a_plain_answer() -> None:
    provider = ScriptedProvider(says("Hello", " world"))
    async with rig(provider) as r:
        conversation, viewer = await opened(r)
        reply = send(conversation, viewer)
        assert (reply.outcome, reply.seq, reply.turn) == ("started", 1, 2)
        end = await done(conversation)
        assert (end.status, end.text.bytes) == ("completed", len("Hello world"))
        log = await events(conversation)
        told = list(dict.fromkeys(kinds(log)))
        assert told == ["message", "start", "delta", "usage", "done"]
        assert provider.requests[0].messages == [{"role": "user", "content": "hi"}]
        await anyio.wait_all_tasks_blocked()
        assert provider.open_calls == 0


async def test_reasoning_stays_out_of_answer_and_prompt() -> None:
    script = [[Reasoning("hm"), Text("Yes")], [Finished(reason="stop")]]
    provider = ScriptedProvider(script)
    async with rig(provider) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        assert (await done(conversation)).text.bytes == 3
        send(conversation, viewer, id="s2", content="why")
        await done(conversation)
        said = [message["content"] for message in provider.requests[1].messages]
        assert said == ["hi", "Yes", "why"]


@pytest.mark.parametrize(
    ("reason", "status", "why"),
    [
        ("stop", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
        ("incomplete", "incomplete", "upstream_truncated"),
        ("tool_calls", "completed", None),
    ],
)
async def test_how_the_upstream_ends_is_how_the_turn_ends(
    reason: Any, status: str, why: str | None
) -> None:
    provider = ScriptedProvider([[Text("some")], [Finished(reason=reason)]])
    async with rig(provider) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        end = await done(conversation)
        assert (end.status, end.reason) == (status, why)


async def test_a_stream_that_just_ends_is_incomplete() -> None:
    provider = ScriptedProvider([[Text("some")]])
    async with rig(provider) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        assert (await done(conversation)).reason == "upstream_truncated"


async def test_retries_only_before_anything_was_shown() -> None:
    provider = ScriptedProvider([OVERLOADED], [OVERLOADED], says("at last"))
    async with rig(provider) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        assert (await done(conversation)).status == "completed"
        assert len(provider.requests) == 3
    late = [[Text("half")], [Finished(reason="error", failure=OVERLOADED)]]
    provider = ScriptedProvider(late, says("never"))
    async with rig(provider) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        end = await done(conversation)
        assert end.status == "failed"
        assert len(provider.requests) == 1
        assert kinds(await events(conversation))[-3:] == ["usage", "error", "done"]


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("secret"),
        SystemExit("secret"),
        Panic("secret"),
        BaseExceptionGroup("secret", [Panic()]),
    ],
)
async def test_a_provider_that_raises_ends_the_turn_as_internal(
    error: BaseException,
) -> None:
    class Broken(ScriptedProvider):
        def stream(self, request: Any) -> Any:
            raise error

    async with rig(Broken([])) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        assert (await done(conversation)).status == "failed"
        error = (await events(conversation))[-2]
        assert error.code == "internal"
        assert "secret" not in error.message


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_provider_that_cancels_itself_ends_the_turn_as_internal() -> None:
    class Broken(ScriptedProvider):
        def stream(self, request: Any) -> Any:
            raise asyncio.CancelledError

    async with rig(Broken([])) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        with anyio.fail_after(1.0):
            assert (await done(conversation)).status == "failed"
        assert (await events(conversation))[-2].code == "internal"


@pytest.mark.parametrize(
    ("script", "status", "reason", "code"),
    [
        ([[Text("a")], 1000.0], "incomplete", "upstream_stalled", None),
        ([1000.0, [Text("a")]], "failed", None, "upstream_timeout"),
    ],
)
async def test_silence_has_an_end(
    script: Any, status: str, reason: str | None, code: str | None
) -> None:
    patience = Patience(first_token_seconds=0.05, idle_seconds=0.05)
    limits = ConversationLimits(turn=TurnLimits(patience=patience))
    provider = ScriptedProvider(script)
    async with rig(provider, limits=limits) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        end = await done(conversation)
        assert (end.status, end.reason) == (status, reason)
        found = [getattr(event, "code", None) for event in await events(conversation)]
        assert code is None or code in found
        assert provider.open_calls == 0
        assert len(provider.requests) == 1


async def test_an_empty_batch_is_a_sign_of_life_but_no_token() -> None:
    patience = Patience(first_token_seconds=0.2, idle_seconds=0.2)
    limits = ConversationLimits(turn=TurnLimits(patience=patience))
    alive: list[Any] = [step for _ in range(6) for step in (0.1, [])]
    provider = ScriptedProvider([*alive[1:], *says("late")])
    async with rig(provider, limits=limits) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        end = await done(conversation)
        assert end.status == "completed"
        assert end.timing.ttft_ms is not None
        assert end.timing.ttft_ms >= 400


async def test_the_whole_turn_has_an_end() -> None:
    patience = Patience(turn_seconds=0.3, idle_seconds=0.2)
    limits = ConversationLimits(turn=TurnLimits(patience=patience))
    drops: list[Any] = [step for _ in range(99) for step in ([Text("a")], 0.02)]
    async with rig(ScriptedProvider(drops), limits=limits) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        assert (await done(conversation)).reason == "turn_timeout"


async def test_nobody_watching_for_too_long_abandons_the_turn() -> None:
    provider = ScriptedProvider([[Text("a")], 1000.0])
    limits = ConversationLimits(detach_grace_seconds=0.2)
    async with rig(provider, limits=limits) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        await anyio.sleep(0.01)
        conversation.detach(viewer)
        end = await done(conversation)
        assert (end.status, end.reason) == ("interrupted", "abandoned")
        assert end.text.bytes == 1


@pytest.mark.parametrize(
    ("on_disconnect", "detach", "reason"),
    [
        ("cancel", None, "abandoned"),
        ("continue", None, None),
        (None, Detach(grace_s=0), "abandoned"),
        (None, Detach(grace_s=None), None),
        ("continue", Detach(grace_s=0), None),
    ],
)
async def test_who_says_what_becomes_of_an_unwatched_turn(
    on_disconnect: Any, detach: Detach | None, reason: str | None
) -> None:
    provider = ScriptedProvider([[Text("a")], 0.3, *says("b")])
    limits = ConversationLimits(detach_grace_seconds=0.1)
    async with rig(provider, limits=limits) as r:
        conversation, viewer = await opened(r)
        if detach is not None:
            change = Configure(id="k", conversation="c", config=Config(detach=detach))
            conversation.apply(change, ALICE, viewer)
        send(conversation, viewer, on_disconnect=on_disconnect)
        await anyio.sleep(0.01)
        conversation.detach(viewer)
        assert (await done(conversation)).reason == reason


async def test_coming_back_in_time_saves_the_turn() -> None:
    provider = ScriptedProvider([[Text("a")], 0.4, *says("b")])
    limits = ConversationLimits(detach_grace_seconds=0.2)
    async with rig(provider, limits=limits) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        await anyio.sleep(0.05)
        conversation.detach(viewer)
        await anyio.sleep(0.05)
        conversation.attach(viewer)
        assert (await done(conversation)).status == "completed"


async def test_queued_messages_get_their_turns_in_order() -> None:
    provider = ScriptedProvider([0.05, *says("1")], says("2"), says("3"))
    async with rig(provider) as r:
        conversation, viewer = await opened(r)
        outcomes = [
            send(conversation, viewer, id=f"s{n}", content=f"m{n}").outcome
            for n in (1, 2, 3)
        ]
        assert outcomes == ["started", "queued", "queued"]
        await done(conversation)
        said = [message["content"] for message in provider.requests[2].messages]
        assert said == ["m1", "1", "m2", "2", "m3"]
        log = await events(conversation)
        assert kinds(log).count("start") == kinds(log).count("done") == 3


async def test_limits_of_turns_and_queue_and_size() -> None:
    provider = ScriptedProvider([0.1, *says("1")])
    limits = ConversationLimits(active_turns=1, queued=1, content_bytes=100)
    async with rig(provider, limits=limits) as r:
        conversation, viewer = await opened(r)
        other = await r.conversation("other")
        send(conversation, viewer)
        with pytest.raises(CommandError) as refused:
            send(conversation, viewer, id="s2", policy="reject")
        assert refused.value.body.code == "busy"
        with pytest.raises(CommandError) as refused:
            send(other, None, id="s1")
        assert refused.value.body.code == "too_many_turns"
        assert refused.value.body.retry_after_ms
        send(conversation, viewer, id="s3")
        with pytest.raises(CommandError) as refused:
            send(conversation, viewer, id="s4")
        assert refused.value.body.code == "queue_full"
        with pytest.raises(CommandError) as refused:
            send(conversation, viewer, id="s5", content="x" * 200)
        assert refused.value.body.code == "too_large"
        await done(conversation)
        log = await events(conversation)
        assert [event.id for event in log if hasattr(event, "role")] == ["s1", "s3"]


async def test_a_turn_may_not_grow_without_end() -> None:
    limits = ConversationLimits(turn=TurnLimits(turn_bytes=1000))
    provider = ScriptedProvider([[Text("x" * 100)] for _ in range(50)])
    async with rig(provider, limits=limits) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        end = await done(conversation)
        assert end.status == "failed"
        assert (await events(conversation))[-2].code == "response_too_large"
        assert end.text.bytes <= 1100


async def test_reported_usage_counts_and_missing_usage_is_estimated() -> None:
    from wsserver.engine.model import Usage

    known = Usage(input_tokens=7, output_tokens=3)
    provider = ScriptedProvider(
        [[Text("a"), Text("b")], [Finished(reason="stop", usage=known)]], says("c", "d")
    )
    async with rig(provider) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        await done(conversation)
        send(conversation, viewer, id="s2")
        await done(conversation)
        usages = [e for e in await events(conversation) if isinstance(e, UsageEvent)]
        assert (usages[0].input_tokens, usages[0].output_tokens) == (7, 3)
        assert [usage.estimated for usage in usages] == [False, True]
        assert usages[1].output_tokens == 2
        assert [usage.model_calls for usage in usages] == [1, 1]


async def test_nothing_shown_leaves_the_message_alone() -> None:
    provider = ScriptedProvider([[Finished(reason="stop")]], says("b"))
    async with rig(provider) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer, content="one")
        end = await done(conversation)
        assert end.status == "completed"
        assert end.timing.ttft_ms is None
        send(conversation, viewer, id="s2", content="two")
        await done(conversation)
        said = [(m["role"], m["content"]) for m in provider.requests[1].messages]
        assert said == [("user", "one"), ("user", "two")]


async def test_a_huge_delta_is_cut_between_characters() -> None:
    text = "日本語🎌" * 30_000
    provider = ScriptedProvider([[Text(text)], [Finished(reason="stop")]])
    async with rig(provider) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        end = await done(conversation)
        log = await events(conversation)
        deltas = [event for event in log if type(event).__name__ == "DeltaEvent"]
        assert "".join(event.text for event in deltas) == text
        assert max(len(event.text.encode()) for event in deltas) <= 131_072
        assert end.text.bytes == len(text.encode())


async def test_one_start_one_done_whatever_happens() -> None:
    provider = ScriptedProvider([OVERLOADED], [[Text("a")], 5.0], says("b"))
    async with rig(provider) as r:
        conversation, viewer = await opened(r)
        send(conversation, viewer)
        await anyio.sleep(0.001)
        conversation.shut_down()
        end = await done(conversation)
        assert isinstance(end, DoneEvent)
        assert end.reason == "server_shutdown"
        assert kinds(await events(conversation)).count("done") == 1
