"""The request that a conversation's settings and prompt make."""

from typing import Any

from protocol.content import Config, NamedTool
from wsserver.engine.model import ModelRequest
from wsserver.engine.prompt import PromptFold
from wsserver.turns.services import Target

_ANY_OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


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
        params=target.params | (config.params or {}),
        response_schema=config.response_schema or None,
        request_id=request_id,
    )
