"""`agent`: the worked agent on a terminal, where a person sees and approves."""

import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from client_demo.agent import NOTE, Approve, agent
from client_demo.complaints import complaint
from client_demo.errors import ClientError, IncompleteAnswerError, NotConnectedError
from client_demo.exit_codes import COMPLETE, FAILED, INCOMPLETE, NO_CONNECTION
from client_demo.keyboard import lines
from protocol.control_characters import without_controls
from protocol.events import (
    DeltaEvent,
    DoneEvent,
    LogEvent,
    ToolCallEvent,
    ToolResultEvent,
)

_LONGEST_OUTPUT = 200
_YES = {"y", "yes"}


async def run(
    task: str,
    *,
    folder: Path,
    url: str,
    token: str | None,
    model: str | None,
    descriptor: int | None = None,
) -> int:
    """Does one task; answers go to standard output, all else to standard error.

    Args:
        task: What to do.
        folder: Where.
        url: The server's.
        token: Credentials.
        model: None takes the server's.
        descriptor: Where a person types; None for standard input.

    Returns:
        The exit code, as of `ask`.
    """
    source = sys.stdin.fileno() if descriptor is None else descriptor
    async with aclosing(lines(source)) as typed:
        try:
            await agent(
                task, url=url, folder=folder, approve=_asking(typed), show=_show,
                token=token, model=model,
            )  # fmt: skip
        except IncompleteAnswerError as error:
            _tell(str(error))
            return INCOMPLETE
        except NotConnectedError as error:
            _tell(str(error))
            return NO_CONNECTION
        except ClientError as error:
            _tell(complaint(error, token=token))
            return FAILED
    return COMPLETE


def _asking(typed: AsyncGenerator[str]) -> Approve:
    async def approve(text: str) -> bool:
        _tell(f"--- {NOTE}\n{text}\n---\nWrite this note? [y/N] ", end="")
        answer = await anext(typed, "")
        return answer.strip().lower() in _YES

    return approve


def _show(event: LogEvent) -> None:
    match event:
        case DeltaEvent():
            sys.stdout.write(without_controls(event.text))
        case ToolCallEvent():
            _tell(f"[{event.name} {event.arguments}]")
        case ToolResultEvent():
            _tell(f"[{event.status}: {str(event.output)[:_LONGEST_OUTPUT]}]")
        case DoneEvent():
            sys.stdout.write("\n")
        case _:
            pass
    sys.stdout.flush()


def _tell(message: str, end: str = "\n") -> None:
    sys.stderr.write(without_controls(message) + end)
    sys.stderr.flush()
