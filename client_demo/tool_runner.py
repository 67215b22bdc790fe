"""Runs the tools that the server asks this client for, each in a task of its own."""

from collections.abc import Callable
from functools import partial

import anyio
from anyio.abc import TaskGroup

from client_demo.tools import ClientTool, Fault, Output, ToolContext
from protocol.control import ToolRequest
from protocol.events import ToolResultEvent

Answer = Callable[[ToolRequest, Output | Fault], None]
Progress = Callable[[ToolRequest], None]


class ToolRunner:
    """Starts a tool on a request and stops it when its call is settled elsewhere."""

    def __init__(
        self, task_group: TaskGroup, answer: Answer, progress: Progress
    ) -> None:
        """Takes what outlives it.

        Args:
            task_group: Where the tools run.
            answer: Told what a tool gave; not called for one that was stopped.
            progress: Told that a tool still works.
        """
        self._task_group = task_group
        self._answer = answer
        self._progress = progress
        self._tools: dict[str, dict[str, ClientTool]] = {}
        self._scopes: dict[tuple[str, str], anyio.CancelScope] = {}

    def handle(self, conversation: str, tools: dict[str, ClientTool]) -> None:
        """Says which tools a conversation's requests may ask for."""
        self._tools[conversation] = tools

    def let_go(self, conversation: str) -> None:
        """Forgets the tools of a conversation; those that run go on."""
        self._tools.pop(conversation, None)

    def start(self, request: ToolRequest) -> None:
        """Starts the tool that is asked for, or answers that there is none."""
        tool = self._tools.get(request.conversation, {}).get(request.name)
        if tool is None:
            self._answer(request, Fault(message=f"no tool {request.name!r} here"))
            return
        self.settled(request)  # an older call of this name, which nobody waits for
        scope = anyio.CancelScope()
        self._scopes[request.conversation, request.call] = scope
        self._task_group.start_soon(
            self._run, tool, request, scope, name=f"tool {request.name}"
        )

    def settled(self, call: ToolResultEvent | ToolRequest) -> None:
        """Stops a tool whose result is not awaited any more."""
        scope = self._scopes.pop((call.conversation, call.call), None)
        if scope is not None:
            scope.cancel()

    def stop(self, conversation: str) -> None:
        """Stops all tools of a conversation whose calls are gone."""
        for key in [key for key in self._scopes if key[0] == conversation]:
            self._scopes.pop(key).cancel()

    async def _run(
        self, tool: ClientTool, request: ToolRequest, scope: anyio.CancelScope
    ) -> None:
        outcome: Output | Fault | None = None
        context = ToolContext(request, partial(self._progress, request))
        with scope:
            outcome = await tool.run(request.arguments, context)
        key = (request.conversation, request.call)
        if self._scopes.get(key) is scope:
            del self._scopes[key]
            assert outcome is not None, "only what was taken off is cancelled"
            self._answer(request, outcome)
