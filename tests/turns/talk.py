"""One conversation over a rig, in few words."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import anyio

from protocol.commands import (
    Configure,
    Fork,
    Interrupt,
    Send,
    ToolFault,
    ToolProgress,
    ToolResult,
)
from protocol.content import Config, Tool
from protocol.control import Reply
from protocol.events import CutEvent, DoneEvent, LogEvent
from tests.fakes.faulty import FaultyStore
from tests.fakes.rig import ALICE, FakeViewer, LoopClock, Rig, events, rig
from tests.fakes.scripted import ScriptedProvider, Step
from wsserver.auth.principal import Principal
from wsserver.engine.model import Call, Finished, ModelEvent, Text
from wsserver.engine.provider import Provider
from wsserver.engine.tools import EPOCH_CHARACTERS
from wsserver.log.store import Store
from wsserver.turns.applied import Applied
from wsserver.turns.conversation import Conversation
from wsserver.turns.services import ConversationLimits

EPOCH = 1_800_000_000.0
STREAM: list[Step] = [[Text("one ")], [Text("two ")], [Text("three")], 1000.0]
_ids = count(1)


class VirtualClock(LoopClock):
    """The wall clock goes with the event loop too."""

    def wall(self) -> float:
        return EPOCH + anyio.current_time()


class Talk:
    """A conversation, and a viewer of it named `c1`."""

    def __init__(self, r: Rig, conversation: Conversation, provider: Any) -> None:
        self.rig = r
        self.conversation = conversation
        self.provider: ScriptedProvider = provider
        self.viewer = FakeViewer(conversation, "c1")

    async def another(self, name: str) -> "Talk":
        """Opens another conversation."""
        other = Talk(self.rig, await self.rig.conversation(name), self.provider)
        other.conversation.attach(other.viewer)
        return other

    def join(self, connection: str, *handles: str) -> FakeViewer:
        viewer = FakeViewer(self.conversation, connection, *handles)
        self.conversation.attach(viewer)
        return viewer

    def apply(
        self, command: Any, viewer: FakeViewer | None = None, by: Principal = ALICE
    ) -> Reply:
        return self.conversation.apply(command, by, viewer).reply

    def send(
        self, content: str = "hi", viewer: FakeViewer | None = None, **members: Any
    ) -> Reply:
        made = {"id": f"s{next(_ids)}", "conversation": "c", "content": content}
        return self.apply(Send(**{**made, **members}), viewer or self.viewer)

    def interrupt(self, viewer: FakeViewer | None = None, **members: Any) -> Reply:
        made = {"id": f"i{next(_ids)}", "conversation": "c"}
        return self.apply(Interrupt(**{**made, **members}), viewer or self.viewer)

    def configure(self, **members: Any) -> Reply:
        made = {"id": f"k{next(_ids)}", "conversation": "c"}
        return self.apply(Configure(**made, config=Config(**members)), self.viewer)

    def result(self, call: str, output: Any = "done", **members: Any) -> str | None:
        made: dict[str, Any] = {"id": f"t{next(_ids)}", "conversation": "c"}
        if "error" in members:
            made["error"] = ToolFault(message=members.pop("error"))
        else:
            made["output"] = output
        made["call"] = self.call_id(call)
        return self.apply(ToolResult(**{**made, **members})).outcome

    def progress(self, call: str) -> None:
        frame = ToolProgress(conversation="c", call=self.call_id(call))
        self.conversation.tool_progress(frame.call)

    def call_id(self, call: str) -> str:
        """The id of a call that is named without the end that tells the epoch."""
        if call.count(".") != 1:
            return call
        return f"{call}.{self.conversation.log.epoch[:EPOCH_CHARACTERS]}"

    async def streaming(self) -> int:
        """Starts a turn of `STREAM`, and waits until it has said all of it."""
        turn = self.send().turn or 0
        await until(lambda: self.conversation.log.stored >= turn + 3)
        return turn

    async def left(self) -> None:
        """The only viewer leaves, and all is stored."""
        self.conversation.detach(self.viewer)
        await self.rig.committer.flush()
        await settled()

    async def cut(self) -> CutEvent:
        """Returns the only cut."""
        [found] = [event for event in await self.log() if isinstance(event, CutEvent)]
        return found

    async def fork(self, through: int, **members: Any) -> Reply:
        made = {"id": f"f{next(_ids)}", "conversation": "c", "through": through}
        command = Fork(**{**made, **members})
        return (await self.fork_as(command)).reply

    async def fork_as(self, command: Fork) -> Applied:
        name = command.new or f"conv_{next(_ids)}"
        return await self.rig.directory.fork(self.conversation, command, name, ALICE)

    async def log(self) -> list[Any]:
        return await events(self.conversation)

    async def kinds(self) -> list[str]:
        return [kind(event) for event in await self.log()]

    async def done(self) -> DoneEvent:
        """Waits until no turn runs and none waits; returns the last `done`."""
        await until(lambda: not self.conversation.state.live)
        return next(e for e in reversed(await self.log()) if isinstance(e, DoneEvent))

    async def dones(self) -> list[str]:
        return [
            f"{event.status}/{event.reason}" if event.reason else event.status
            for event in await self.log()
            if isinstance(event, DoneEvent)
        ]

    def said(self, number: int = -1) -> list[str]:
        """Returns what the model was told in a request: `role: content`."""
        return [
            f"{message['role']}: {message['content'] or ''}"
            for message in self.provider.requests[number].messages
        ]


def kind(event: LogEvent) -> str:
    return str(type(event).__struct_config__.tag)


async def until(holds: Callable[[], bool]) -> None:
    """Waits until something holds; virtual time passes meanwhile, ever faster."""
    pause = 0.001
    with anyio.fail_after(100_000):
        while not holds():
            await anyio.sleep(pause)
            pause = min(1.01 * pause, 1.0)


async def settled() -> None:
    """Lets all that can happen now happen, but no time pass that is worth it."""
    for _ in range(30):
        await anyio.sleep(0.0001)


@asynccontextmanager
async def talking(
    *scripts: list[Step],
    tools: list[Tool] | None = None,
    handles: tuple[str, ...] = (),
    limits: ConversationLimits | None = None,
    store: Store | None = None,
    provider: Provider | None = None,
    **members: Any,
) -> AsyncGenerator[Talk]:
    """Opens a conversation over a store that is durable as far as a log can tell."""
    provider = provider or ScriptedProvider(*scripts)
    store = store or FaultyStore()
    clock = VirtualClock()
    async with rig(provider, store, limits, clock=clock, **members) as r:
        talk = Talk(r, await r.conversation(), provider)
        talk.viewer.handles = frozenset(handles)
        talk.conversation.attach(talk.viewer)
        if tools is not None:
            talk.configure(tools=tools)
        yield talk


def asks(*calls: Call) -> list[ModelEvent]:
    """The end of a model call that asks for tools."""
    return [Finished(reason="tool_calls", calls=calls)]


def call(number: int, name: str = "weather", arguments: str = "{}") -> Call:
    valid = arguments != "{"
    made = {"name": name, "arguments": arguments, "valid": valid}
    return Call(upstream_id=f"up{number}", **made)
