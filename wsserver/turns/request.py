"""The request that a conversation's settings and log make."""

from typing import Any

import anyio.lowlevel

from protocol.content import Config, NamedTool
from wsserver.engine.model import ModelRequest
from wsserver.engine.prompt import PromptFold
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.reading import read_whole
from wsserver.turns.services import Target

_FOLDED_AT_ONCE = 256
"""Entries of the log: some 2 ms, then others have the loop."""

_ANY_OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


async def fold_log(log: ConversationLog) -> tuple[PromptFold, int]:
    """Folds a log; returns the prompt, and up to which number the store had it.

    Raises:
        StoreError: The store can't be read.
    """
    entries = await read_whole(log)
    through = log.stored
    fold = PromptFold()
    for at in range(0, len(entries), _FOLDED_AT_ONCE):
        if at:
            await anyio.lowlevel.checkpoint()
        fold.add(entries[at : at + _FOLDED_AT_ONCE])
    return fold, through


def model_request(
    config: Config, target: Target, fold: PromptFold, request_id: str
) -> ModelRequest:
    """Makes the request for the next model call."""
    choice: Any = config.tool_choice or None
    if isinstance(choice, NamedTool):
        choice = {"type": "function", "function": {"name": choice.name}}
    tools: list[dict[str, Any]] = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters or _ANY_OBJECT,
            },
        }
        for tool in config.tools or ()
    ]
    return ModelRequest(
        model=target.model,
        messages=fold.messages(config.instructions or None, target.context_tokens),
        tools=tools,
        tool_choice=choice if tools else None,
        params=target.members(config.params or {}),
        response_schema=config.response_schema or None,
        request_id=request_id,
    )
