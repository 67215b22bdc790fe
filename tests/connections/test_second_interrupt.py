"""Two clients stop one turn: what the first one keeps, the second one has to get."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.connections.journal import settle, text
from tests.connections.wire import Client, connected
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider
from wsserver.engine.model import ModelEvent, ModelRequest, Text


class SlowToClose(ScriptedProvider):
    """Takes a second to close a model call."""

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncIterator[Sequence[ModelEvent]]]:
        async with super().stream(request) as stream:
            try:
                yield stream
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(1.0)


async def until_done(client: Client) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []
    while not frames or frames[-1]["type"] != "done":
        frames.append(await client.frame())
    return frames


@pytest.mark.parametrize("first", ["generated", None])
@pytest.mark.parametrize(
    "second",
    [
        {"type_": "interrupt", "id": "i2"},
        {"type_": "interrupt", "id": "i2", "keep": "generated"},
        {"type_": "send", "id": "i2", "content": "no", "policy": "interrupt"},
    ],
    ids=["interrupt", "generated", "send"],
)
async def test_who_is_behind_gets_what_another_keeps(
    first: str | None, second: dict[str, Any]
) -> None:
    gate, long = anyio.Event(), "1" * 2000
    script = [[Text(long)], gate, [Text("two ")], [Text("three")], anyio.Event()]
    async with (
        rig(SlowToClose(script)) as r,
        connected(r) as quick,
        connected(r, name="conn2") as slow,
    ):
        await quick.ask("open", conversation="c")
        await slow.ask("open", conversation="c", window_bytes=1024)
        await quick.ask("send", conversation="c", content="hi")
        assert (await slow.frame("delta"))["text"] == long
        gate.set()
        await settle()
        members = {} if first is None else {"keep": first}
        await quick.ask("interrupt", conversation="c", **members)
        type_, *rest = second
        slow.say(
            second[type_], **{name: second[name] for name in rest}, conversation="c"
        )
        await settle()
        slow.say("ack", conversation="c", seq=100)
        frames = await until_done(slow)
        at = [frame.get("re") for frame in frames].index("i2")
        assert text(frames) == "two three"
        assert text(frames[at:]) == "", "nothing of the turn after the reply"
