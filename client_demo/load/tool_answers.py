"""Answers requests for tools as the scenario says."""

from random import Random

import anyio

from client_demo.load.durations import draw
from client_demo.load.peer import Peer
from client_demo.load.script_error import ScriptError
from client_demo.load.steps import ToolsStep
from client_demo.load.talk import Talk
from protocol.commands import ToolFault, ToolResult
from protocol.control import ToolRequest


class ToolAnswers:
    """The tools of one user's conversation slot."""

    def __init__(self, peer: Peer, random: Random) -> None:
        """Answers at once with an output, until told otherwise.

        Args:
            peer: Whose tools.
            random: For the delays.
        """
        self._peer = peer
        self._random = random
        self._step = ToolsStep()

    def behave(self, step: ToolsStep) -> None:
        """Says how requests are answered from here on."""
        self._step = step

    def requested(self, talk: Talk, request: ToolRequest) -> None:
        """Answers one request, in its own time."""
        if self._step.answer != "never":
            self._peer.tasks.start_soon(self._answer, talk, request, self._step)

    async def _answer(self, talk: Talk, request: ToolRequest, step: ToolsStep) -> None:
        await anyio.sleep(draw(step.delay_seconds, self._random))
        talk.answered_at[request.call] = anyio.current_time()
        tally = self._peer.tally
        for _ in range(step.copies):
            try:
                reply, _ = await talk.command(_result(talk.new_id(), request, step))
            except ScriptError as error:
                tally.error(error.code, error.message)
                return
            if reply.error is not None:
                tally.error(reply.error.code, reply.error.message)
            else:
                tally.count(f"tools.{reply.outcome}")


def _result(command: str, request: ToolRequest, step: ToolsStep) -> ToolResult:
    if step.answer == "error":
        return ToolResult(
            id=command,
            conversation=request.conversation,
            call=request.call,
            error=ToolFault(message="as the scenario says"),
        )
    return ToolResult(
        id=command,
        conversation=request.conversation,
        call=request.call,
        output=step.output,
    )
