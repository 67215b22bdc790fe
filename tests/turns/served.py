"""Tools of the server that do as they are told, and turns that call them."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from protocol.commands import Configure, Send
from protocol.content import Config, Tool
from protocol.events import ToolResultEvent
from tests.fakes.rig import ALICE, FakeViewer, Rig, events
from wsserver.engine.model import Call, Finished
from wsserver.engine.server_tools import ToolContext
from wsserver.turns.conversation import Conversation

Run = Callable[[Any, ToolContext], Awaitable[Any]]

ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


class Panic(BaseException):
    """What libraries in Rust fail with derives from no `Exception`."""


class FakeTools:
    """Tools that are functions of a test."""

    def __init__(self, **tools: Run) -> None:
        self.runs = tools
        self.tools = {
            name: Tool(name=name, description=f"It is {name}.") for name in tools
        }
        self.defaults: list[str] = []
        self.calls: list[tuple[str, Any]] = []

    def find(self, name: str) -> Tool | None:
        return self.tools.get(name)

    def names(self) -> list[str]:
        return list(self.tools)

    def default(self) -> list[Tool]:
        return [self.tools[name] for name in self.defaults]

    async def run(self, name: str, arguments: Any, context: ToolContext) -> Any:
        self.calls.append((name, arguments))
        return await self.runs[name](arguments, context)


def gives(output: Any) -> Run:
    async def run(arguments: Any, context: ToolContext) -> Any:
        del arguments, context
        return output

    return run


def raises(error: BaseException) -> Run:
    async def run(arguments: Any, context: ToolContext) -> Any:
        raise error

    return run


async def hangs(arguments: Any, context: ToolContext) -> Any:
    await anyio.sleep_forever()


def calling(*names: str, arguments: str = "{}") -> list[Any]:
    made = [
        Call(upstream_id=f"up{n}", name=name, arguments=arguments, valid=True)
        for n, name in enumerate(names)
    ]
    return [[Finished(reason="tool_calls", calls=tuple(made))]]


async def begun(
    r: Rig, tools: FakeTools, *listed: Tool, handles: tuple[str, ...] = ()
) -> tuple[Conversation, FakeViewer]:
    """Has a conversation with these tools opened, and a message sent."""
    r.services.server_tools = tools
    conversation = await r.conversation()
    viewer = FakeViewer(conversation, "c1", *handles)
    conversation.attach(viewer)
    if listed:
        config = Config(tools=list(listed))
        change = Configure(id="k", conversation="c", config=config)
        conversation.apply(change, ALICE, viewer)
    conversation.apply(Send(id="s", conversation="c", content="hi"), ALICE, viewer)
    return conversation, viewer


async def results(conversation: Conversation) -> list[ToolResultEvent]:
    found = await events(conversation)
    return [event for event in found if isinstance(event, ToolResultEvent)]


def named(*names: str) -> list[Tool]:
    return [Tool(name=name) for name in names]
