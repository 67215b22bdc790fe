"""What a command has to fulfil before anything of it is applied."""

from typing import Any

import msgspec

from protocol.commands import Policy, Send, ToolResult
from protocol.content import Config
from protocol.rules import member_step
from wsserver.engine.conversation import ConversationState
from wsserver.engine.json_values import parts
from wsserver.engine.param_bounds import BeyondBoundsError
from wsserver.engine.schema_cost import Allowance
from wsserver.engine.schemas import schema_fault
from wsserver.log.conversation_log import ConversationLog
from wsserver.turns.errors import refusal
from wsserver.turns.services import Services

_MOST_NAMES = 12
"""So many models are named to whoever asks for one that is not there."""

MOST_WITHDRAWN = 256
"""Messages that were taken back have no place in the queue, but are in it: each commit
writes them until their turns have come."""

MAX_PARTS = 5_000
"""Lists and objects in `params`: each model call may look at all of them."""

_encode = msgspec.json.Encoder().encode


def check_open(services: Services, log: ConversationLog | None = None) -> None:
    """Refuses what would change a log that can't be written.

    Args:
        services: What conversations share.
        log: The log; None for one that is not there yet.

    Raises:
        CommandError: `draining` or `store_unavailable`.
    """
    if services.draining:
        raise refusal(
            "draining",
            "The server is about to stop; reconnect and send this again.",
            retry_after_ms=1000,
        )
    check_store(services, log)


def check_store(services: Services, log: ConversationLog | None = None) -> None:
    """Refuses what the store would have to take, while it takes nothing.

    Raises:
        CommandError: `store_unavailable`.
    """
    if services.failing() or (log is not None and log.stalled):
        raise refusal(
            "store_unavailable",
            "The log can't be written at the moment; send this again later.",
            retry_after_ms=1000,
        )


def check_config(config: Config, services: Services) -> None:
    """Refuses settings whose model is not, or no longer, there.

    Raises:
        CommandError: `bad_model`.
    """
    if config.model and services.models.resolve(config.model) is None:
        names = list(services.models.names())
        known = ", ".join(names[:_MOST_NAMES])
        if len(names) > _MOST_NAMES:
            known += f" and {len(names) - _MOST_NAMES} more"
        fault = f"No upstream knows the model {config.model!r}; there are: {known}."
        name, colon, options = config.model.partition(":")
        if colon and services.models.resolve(name) is not None:
            fault = f"The model {name} can't have the options {options!r}."
        raise refusal("bad_model", fault, param="$.config.model")


def check_params(config: Config, services: Services) -> None:
    """Refuses request members that the model's clients may not set.

    Raises:
        CommandError: `bad_frame`, with the member's path.
    """
    name = config.model or services.models.default
    target = services.models.resolve(name)
    assert target is not None, "the settings were checked"
    try:
        target.check(config.params or {})
    except BeyondBoundsError as error:
        steps = (
            member_step(step) if isinstance(step, str) else f"[{step}]"
            for step in error.steps
        )
        raise refusal(
            "bad_frame",
            f"With the model {name} {error}.",
            param=f"$.config.params{''.join(steps)}",
        ) from None


def check_change(config: Config, services: Services) -> None:
    """Refuses new settings that no turn could run with.

    Raises:
        CommandError: `bad_model`, `bad_frame` or `too_large`.
    """
    check_config(config, services)
    limit = services.limits.content_bytes
    size = len(_encode(config))
    if size > limit:
        raise refusal(
            "too_large",
            f"The settings take {size} bytes; {limit} are allowed.",
            param="$.config",
        )
    if parts(config.params, MAX_PARTS + 1) > MAX_PARTS:
        raise refusal(
            "bad_frame",
            f"There are more than {MAX_PARTS} lists and objects in `params`; send fewer.",
            param="$.config.params",
        )
    allowance = Allowance()
    for index, tool in enumerate(config.tools or ()):
        param = f"$.config.tools[{index}].parameters"
        _check_schema(tool.parameters, allowance, param)
    response_schema = config.response_schema or None
    _check_schema(response_schema, allowance, "$.config.response_schema")


def _check_schema(
    schema: dict[str, Any] | None, allowance: Allowance, param: str
) -> None:
    fault = None if schema is None else schema_fault(schema, allowance)
    if fault is not None:
        raise refusal(
            "bad_frame",
            f"This is no JSON Schema that can be used: {fault}",
            param=param,
        )


def check_queue(
    policy: Policy, state: ConversationState, services: Services, space: str
) -> None:
    """Refuses a message that can't get a turn.

    Raises:
        CommandError: `busy`, `queue_full` or `too_many_turns`.
    """
    queue = [waiting for waiting in state.queue if not waiting.withdrawn]
    waits, withdrawn = len(queue), len(state.queue) - len(queue)
    # What ends the running turn makes place for itself; a second such message ends none.
    ends_turn = state.running and not any(waiting.first for waiting in queue)
    makes_place = policy == "interrupt" and ends_turn
    full = waits >= services.limits.queued and not makes_place
    if not state.running and not waits:
        active = services.running.of(space)
        if active >= services.limits.active_turns:
            raise refusal(
                "too_many_turns",
                f"{active} turns are running, and the limit is"
                f" {services.limits.active_turns}; wait for the end of one and send"
                " this again under the same id.",
                retry_after_ms=1000,
            )
    elif policy == "reject":
        raise refusal("busy", "A turn is running and the policy is `reject`.")
    elif full or withdrawn >= MOST_WITHDRAWN:
        limit, which = services.limits.queued, "are waiting"
        if not full:
            waits, limit = withdrawn, MOST_WITHDRAWN
            which = "that were taken back wait to be ended"
        raise refusal(
            "queue_full",
            f"{waits} messages {which}, and the limit is {limit}; wait for the end of a"
            " turn and send this again under the same id.",
            retry_after_ms=1000,
        )


def check_send(command: Send, services: Services) -> None:
    """Refuses a message that is too long.

    Raises:
        CommandError: `too_large`.
    """
    limit = services.limits.content_bytes
    size = len(_encode(command.content)) + len(_encode(command.metadata))
    if size > limit:
        raise refusal(
            "too_large",
            f"Content and metadata take {size} bytes; {limit} are allowed.",
            param="$.content",
        )


def check_output(command: ToolResult, limit: int) -> None:
    """Refuses a tool's output that is too long; the call stays open.

    Raises:
        CommandError: `too_large`.
    """
    output = command.output if command.error is None else command.error.message
    size = len(_encode(output))
    if size > limit:
        raise refusal(
            "too_large",
            f"The output takes {size} bytes; {limit} are allowed. The call is"
            " still open: send a shorter output under a new id.",
            param="$.output",
        )
