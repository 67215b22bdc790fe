"""Commands: answered once each, in order for their conversation, never held up."""

from typing import Any

import anyio
import msgspec
import pytest
import structlog

from tests.connections.journal import Disk, GatedDisk, settle, text
from tests.connections.wire import SETTINGS, Tokens, connected
from tests.fakes.rig import ALICE, Rig, rig
from tests.fakes.scripted import ScriptedProvider, says
from wsserver.auth.open import LOCAL
from wsserver.auth.principal import ForbiddenError, Principal
from wsserver.connections.transport import Handshake
from wsserver.log.store import Meta, StoreError
from wsserver.turns.conversation import Conversation

CAROL = Principal(name="carol", space="alice")
ALICE_KEY, NEW_KEY, CAROL_KEY, WRONG_KEY = "alice-key", "new", "carol", "wrong"
AS_ALICE = Handshake(peer="test", token=ALICE_KEY)


def server(*texts: str, **members: Any) -> Any:
    return rig(ScriptedProvider(says(*(texts or ("Hello",)))), **members)


def waiting(gate: anyio.Event) -> ScriptedProvider:
    """Says a word, waits for the gate, says another one."""
    return ScriptedProvider([*says("Hello")[:1], gate, *says(" world")])


def loaded(r: Rig, name: str) -> Conversation:
    conversation = r.directory.loaded(LOCAL.key(name))
    assert conversation is not None
    return conversation


class SlowDisk(Disk):
    """Finds no conversation before the gate opens."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: dict[str, anyio.Event] = {}
        self.broken = False

    async def meta(self, key: str) -> Meta | None:
        if key in self.gates:
            await self.gates[key].wait()
        if self.broken:
            raise StoreError("the disk is on fire")
        return await super().meta(key)


async def test_ping() -> None:
    async with server() as r, connected(r, wall=lambda: 1.5) as client:
        client.say("ping", t={"a": [1]})
        assert await client.frame() == {
            "type": "pong",
            "t": {"a": [1]},
            "server_time": "1970-01-01T00:00:01.500Z",
        }
        client.say("ping")
        assert "t" not in await client.frame()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "bad_json"),
        (b"[]", "bad_json"),
        (b"3", "bad_json"),
        (b'"x"', "bad_json"),
        (b"{", "bad_json"),
        (b"\xff", "bad_json"),
        (b"{}", None),
        (b'{"type":"nonsense"}', "unknown_type"),
        (b'{"type":"open","id":7}', "bad_frame"),
        (b'{"type":"send","id":"x"}', "bad_frame"),
        (b'{"type":"send","id":"x","conversation":"c","content":3}', "bad_frame"),
        (b'{"type":"ping","t":' + b"[" * 100 + b"]" * 100 + b"}", "bad_frame"),
        (b'{"type":"send","id":"x","conversation":"c","content":"'
         + b"x" * 300_000 + b'"}', "too_large"),
    ],
)  # fmt: skip
async def test_a_bad_frame_is_answered_and_nothing_else_happens(
    data: bytes, code: str | None
) -> None:
    gate = anyio.Event()
    async with rig(waiting(gate)) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        await client.ask("send", conversation="c", content="hi")
        await client.frame("delta")
        client.wire.say(data)
        answer = await client.frame()
        error = answer.get("error", answer)
        assert answer["type"] in ("reply", "error")
        assert error["code"] == (code or error["code"])
        assert error["retryable"] is False
        assert (answer["type"] == "reply") == (b'"id":"x"' in data)
        if answer["type"] == "reply":
            assert (answer["re"], answer["ok"]) == ("x", False)
        gate.set()
        assert (await client.frame("delta"))["text"] == " world"


@pytest.mark.parametrize(
    "command",
    [
        {"type": "configure", "config": {}},
        {"type": "send", "content": "hi"},
        {"type": "interrupt"},
        {"type": "tool_result", "call": "k", "output": 1},
        {"type": "fork", "through": 1},
        {"type": "delete"},
        {"type": "open", "after": 1},
    ],
)
async def test_foreign_and_unknown_conversations_answer_alike(
    command: dict[str, Any],
) -> None:
    async with server() as r, connected(r) as client:
        theirs, _ = await r.directory.create(ALICE.key("theirs"), None, ALICE)
        theirs.log.append_text("delta", 1, "secret")
        answers = []
        for name in ("theirs", "unknown"):
            reply = await client.ask(
                command["type"],
                id="same",
                conversation=name,
                **{k: v for k, v in command.items() if k != "type"},
            )
            answers.append(reply)
        assert answers[0] == answers[1]
        assert answers[0]["error"]["code"] == "conversation_not_found"


async def test_each_verb_is_asked_for_once_with_the_key() -> None:
    tokens = Tokens(**{"alice-key": ALICE})
    async with (
        server() as r,
        connected(r, authority=tokens, handshake=AS_ALICE) as client,
    ):
        await client.ask("open", conversation="c")
        await client.ask("configure", conversation="c", config={})
        await client.ask("send", conversation="c", content="hi")
        await client.frame("done")
        await client.ask("interrupt", conversation="c")
        await client.ask("tool_result", conversation="c", call="k", output=1)
        client.say("tool_progress", conversation="c", call="k")
        client.say("ack", conversation="c", seq=1)
        await client.ask("fork", conversation="c", through=2, new="d")
        await client.ask("close", conversation="c")
        await client.ask("delete", conversation="c")
        verbs = [verb for verb, _ in tokens.asked]
        assert verbs == [
            "open", "create", "configure", "send", "interrupt", "tool_result",
            "tool_progress", "ack", "fork", "create", "close", "delete",
        ]  # fmt: skip
        elsewhere = [asked for asked in tokens.asked if asked[1] != "alice/c"]
        assert elsewhere == [("create", "alice/d")]
        tokens.forbidden = ForbiddenError("because")
        for verb in ("open", "close", "delete"):
            reply = await client.ask(verb, conversation="c")
            assert reply["error"]["code"] == "forbidden"
        client.say("ack", conversation="c", seq=1)
        assert (await client.frame())["code"] == "forbidden"


async def test_new_credentials_of_the_same_principal() -> None:
    tokens = Tokens(
        **{"alice-key": ALICE, "new": msgspec.structs.replace(ALICE, expires_at=1e12)},
        carol=CAROL,
    )
    async with (
        server() as r,
        connected(r, authority=tokens, handshake=AS_ALICE) as client,
    ):
        assert (await client.ask("refresh", token=NEW_KEY))["outcome"] == "refreshed"
        reply = await client.ask("refresh", token=CAROL_KEY)
        assert reply["error"]["code"] == "forbidden"
        reply = await client.ask("refresh", token=WRONG_KEY)
        assert reply["error"]["code"] == "unauthorized"
        assert (await client.ask("open", conversation="c"))["ok"], "the old ones stay"


async def test_a_reply_waits_for_the_store_and_a_pong_does_not() -> None:
    disk = GatedDisk()
    async with server(store=disk) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        await client.frame("caught_up")
        gate = disk.hold()
        client.say("send", id="s1", conversation="c", content="hi")
        client.say("ping")
        assert (await client.frame())["type"] == "pong"
        gate.set()
        frame = await client.frame()
        assert (frame["type"], frame["re"]) == ("reply", "s1")
        assert (await client.frame())["type"] == "message"


async def test_the_same_command_again_gets_the_first_reply() -> None:
    async with server() as r, connected(r) as client:
        await client.ask("open", conversation="c")
        first = await client.ask("send", id="s1", conversation="c", content="hi")
        again = await client.ask("send", id="s1", conversation="c", content="hi")
        assert again == {**first, "duplicate": True}
        other = await client.ask("send", id="s1", conversation="c", content="ho")
        assert other["error"]["code"] == "idempotency_conflict"


async def test_a_conversation_need_not_be_open_to_be_talked_to() -> None:
    async with server(store=Disk()) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        await client.ask("close", conversation="c")
        assert (await client.ask("send", conversation="c", content="hi"))["ok"]
        await settle()
        assert not client.wire.frames, "nor does it say anything then"
        await client.ask("open", conversation="c")
        await client.frame("done")


async def test_an_interrupt_does_not_wait_for_a_slow_store() -> None:
    disk = SlowDisk()
    gate = anyio.Event()
    async with rig(waiting(gate), store=disk) as r, connected(r) as client:
        await client.ask("open", conversation="live")
        await client.ask("send", conversation="live", content="hi")
        await client.frame("delta")
        disk.gates[LOCAL.key("slow")] = anyio.Event()
        client.say("open", id="o", conversation="slow")
        client.say("ack", conversation="slow", seq=1)
        reply = await client.ask("interrupt", conversation="live")
        assert reply["outcome"] == "interrupted"
        assert (await client.frame("done"))["status"] == "interrupted"
        disk.gates[LOCAL.key("slow")].set()
        assert (await client.frame("reply"))["re"] == "o"


async def test_commands_of_one_conversation_keep_their_order() -> None:
    disk = SlowDisk()
    async with server(store=disk) as r, connected(r) as client:
        disk.gates[LOCAL.key("c")] = anyio.Event()
        client.say("open", id="1", conversation="c")
        client.say("configure", id="2", conversation="c", config={"params": {}})
        client.say("send", id="3", conversation="c", content="hi")
        client.say("close", id="4", conversation="c")
        client.say("open", id="5", conversation="c")
        client.say("ping")
        assert (await client.frame())["type"] == "pong"
        disk.gates[LOCAL.key("c")].set()
        seen = [(await client.frame("reply")) for _ in range(5)]
        assert {frame["re"]: frame.get("outcome") for frame in seen} == {
            "1": "created",
            "2": "configured",
            "3": "started",
            "4": "closed",
            "5": "replay",
        }
        assert (await client.frame("done"))["status"] == "completed"


async def test_too_many_commands_wait_for_the_store() -> None:
    disk = SlowDisk()
    settings = msgspec.structs.replace(SETTINGS, waiting_commands=3)
    async with server(store=disk) as r, connected(r, settings=settings) as client:
        disk.gates[LOCAL.key("c")] = anyio.Event()
        for n in range(5):
            client.say("open", id=f"{n}", conversation="c")
        refused = [await client.frame(), await client.frame()]
        assert [(f["re"], f["error"]["code"]) for f in refused] == [
            ("3", "rate_limited"),
            ("4", "rate_limited"),
        ]
        assert refused[0]["error"]["retryable"]
        disk.gates[LOCAL.key("c")].set()
        for n in range(3):
            assert (await client.frame("reply"))["re"] == f"{n}"
        disk.gates[LOCAL.key("d")] = anyio.Event()
        for n in range(4):
            client.say("open", id=f"d{n}", conversation="d")
        assert (await client.frame("reply"))["re"] == "d3", "there was room for three"
        disk.gates[LOCAL.key("d")].set()


async def test_a_store_that_fails() -> None:
    disk = SlowDisk()
    async with server(store=disk) as r, connected(r) as client:
        await client.ask("open", conversation="live")
        disk.broken = True
        reply = await client.ask("open", conversation="other")
        assert reply["error"]["code"] == "store_unavailable"
        assert reply["error"]["retryable"]
        assert "fire" not in str(reply)
        client.say("ping")
        assert (await client.frame("pong"))["type"] == "pong"
        disk.broken = False
        assert (await client.ask("open", conversation="other"))["ok"]


async def test_a_defect_reveals_nothing_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def defect(*_: Any) -> None:
        raise ZeroDivisionError("the user said: secret")

    async with server() as r, connected(r) as client:
        await client.ask("open", conversation="c")
        monkeypatch.setattr(loaded(r, "c"), "apply", defect)
        with structlog.testing.capture_logs() as lines:
            reply = await client.ask("send", conversation="c", content="secret")
        assert reply["error"]["code"] == "internal"
        assert "secret" not in str(reply)
        (line,) = [line for line in lines if line["event"] == "unforeseen"]
        assert line["error"] == "ZeroDivisionError"
        assert "defect" in str(line["at"])
        assert "secret" not in str(line)
        assert (await client.ask("close", conversation="c"))["ok"]


async def test_what_needs_no_answer_gets_none() -> None:
    async with server() as r, connected(r) as client:
        for conversation in ("open", "unknown"):
            client.say("ack", conversation=conversation, seq=3)
            client.say("tool_progress", conversation=conversation, call="k")
            if conversation == "open":
                await client.ask("open", conversation="open")
                await client.frame("caught_up")
        client.say("ping")
        assert (await client.frame())["type"] == "pong"


async def test_close_stops_the_events_and_not_the_turn() -> None:
    gate = anyio.Event()
    async with rig(waiting(gate)) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        await client.ask("send", conversation="c", content="hi")
        await client.frame("delta")
        assert (await client.ask("close", conversation="c"))["outcome"] == "closed"
        gate.set()
        await settle()
        assert not client.wire.frames
        await client.ask("open", conversation="c", after=3)
        assert (await client.frame("delta"))["text"] == " world"
        assert (await client.ask("close", conversation="nobody"))["ok"]


async def test_delete_tells_the_others_and_only_them() -> None:
    async with server(store=Disk()) as r, connected(r) as client:
        async with connected(r, name="conn2") as other:
            await client.ask("open", conversation="c")
            await other.ask("open", conversation="c")
            await client.ask("send", conversation="c", content="hi")
            await client.frame("done")
            await other.frame("done")
            client.say("delete", id="d", conversation="c")
            reply = await client.frame()
            assert (reply["re"], reply["outcome"]) == ("d", "deleted")
            told = await other.frame("error")
            assert told["code"] == "conversation_not_found"
            assert "c" in told["message"]
            assert told["gone"] == "c"
            assert "conversation" not in told, "it would look like an event"
            await settle()
            assert not client.wire.frames
            reply = await other.ask("send", conversation="c", content="hi")
            assert reply["error"]["code"] == "conversation_not_found"
        reply = await client.ask("open", conversation="c", after=2)
        assert reply["error"]["code"] == "conversation_not_found"
        assert (await client.ask("open", conversation="c"))["outcome"] == "created"


async def test_fork() -> None:
    async with server(store=Disk()) as r, connected(r) as client:
        await client.ask("open", conversation="c")
        await client.ask("send", conversation="c", content="hi")
        end = await client.frame("done")
        reply = await client.ask("fork", conversation="c", through=end["seq"], new="d")
        assert (reply["outcome"], reply["conversation"]) == ("created", "d")
        await client.ask("open", conversation="d")
        assert text(await client.frames_through(end["seq"]), "d") == "Hello"


async def test_nothing_new_while_the_server_drains() -> None:
    async with server() as r, connected(r) as client:
        await client.ask("open", conversation="c")
        r.services.draining = True
        reply = await client.ask("send", conversation="c", content="hi")
        assert (reply["error"]["code"], reply["error"]["retryable"]) == (
            "draining",
            True,
        )
        reply = await client.ask("open", conversation="new")
        assert reply["error"]["code"] == "draining"
