"""The calls of one turn that the server runs itself.

Each runs in a task of its own, which the server owns and not the turn: a tool that
takes its time to stop holds up nothing. It is cancelled as soon as its call is
settled by anything else: an interrupt, its deadline, the end of the turn. It never
runs again: after a restart its call settles as `cancelled`.
"""

import json  # noqa: TID251 - tells NaN from null
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

import anyio
import anyio.lowlevel
import msgspec
import structlog

from wsserver.engine.arguments import MOST_DEPTH, deeper_than
from wsserver.engine.server_tools import ToolContext, ToolError
from wsserver.engine.tools import SILENT_FAILURE, Batch, OpenCall
from wsserver.foreign_code import stops
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.waiting import until_stored
from wsserver.turns.services import Services

Status = Literal["ok", "error"]

log = structlog.get_logger(__name__)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class ServedCalls:
    """Runs calls, and settles them with what comes out."""

    def __init__(
        self,
        names: Collection[str],
        *,
        batch: Batch,
        principal: str,
        conversation: ConversationLog,
        services: Services,
        ids: Mapping[str, Any],
        settle: Callable[[str, Status, Any, str], object],
    ) -> None:
        """Runs nothing before `run`.

        Args:
            names: The tools that the server runs in this turn.
            batch: The turn's calls.
            principal: Who sent the message that the turn answers.
            conversation: Its log.
            services: What conversations share.
            ids: What lines of the log about the turn have.
            settle: Takes a result: the call, status, output and whose it is.
        """
        self._names = names
        self._batch = batch
        self._principal = principal
        self._conversation = conversation
        self._services = services
        self._ids = ids
        self._settle = settle
        self._scopes: dict[str, anyio.CancelScope] = {}

    def run(self, opened: OpenCall) -> bool:
        """Begins to run a call; False when its tool is not the server's."""
        if opened.name not in self._names:
            return False
        scope = self._scopes[opened.call] = anyio.CancelScope()
        self._services.tasks.start_soon(
            self._run, opened, scope, name=f"tool {opened.name} of {opened.call}"
        )
        return True

    def settled(self, call: str) -> None:
        """Cancels a call that was settled by something else."""
        scope = self._scopes.pop(call, None)
        if scope is not None:
            scope.cancel()

    def let_go(self) -> None:
        """Forgets who takes results, once the turn has ended, and stops what runs."""
        for call in list(self._scopes):
            self.settled(call)
        del self._settle

    async def _run(self, opened: OpenCall, scope: anyio.CancelScope) -> None:
        # Its task begins wherever the call came up: in another turn's task, or in nobody's.
        structlog.contextvars.bind_contextvars(**self._ids)
        with scope:
            try:
                # A tool acts on the world: that it was called is stored before.
                await until_stored(self._conversation, self._conversation.head)
                # What ended the wait may have been too late to be stopped by `settled`.
                await anyio.lowlevel.checkpoint_if_cancelled()
                status, output = await self._result(opened)
            except Exception:
                # The boundary of a call: it pays for a defect of ours, and no other.
                log.exception("served_call_defective", tool=opened.name)
                status, output = "error", SILENT_FAILURE
            if self._scopes.pop(opened.call, None) is not None:
                self._settle(opened.call, status, output, "server")

    async def _result(self, opened: OpenCall) -> tuple[Status, Any]:
        context = ToolContext(
            conversation=self._conversation.conversation,
            principal=self._principal,
            call=opened.call,
            progress=lambda: self._progress(opened.call),
        )
        limit = self._services.limits.tool_output_bytes
        try:
            output = await self._services.server_tools.run(
                opened.name, _decode(opened.arguments), context
            )
            return fitted(output, limit)  # what it gave is the tool's code, too
        except ToolError as error:
            return "error", fitted(_said(error), limit)[1]
        except BaseException as error:
            # The one boundary around tools, which may be anybody's code.
            if not stops(error):
                raise
            log.exception("server_tool_failed", tool=opened.name)
            return "error", fitted(_said(error), limit)[1]

    def _progress(self, call: str) -> None:
        self._batch.progress(call, self._services.clock.now())


def _said(error: BaseException) -> str:
    """Returns what a tool's exception says; to say it is the tool's code, too."""
    if isinstance(error, anyio.get_cancelled_exc_class()):
        return "The tool cancelled itself."
    try:
        return str(error) or SILENT_FAILURE
    except Exception:  # noqa: BLE001 - of the same boundary
        return SILENT_FAILURE


def fitted(output: Any, max_bytes: int) -> tuple[Status, Any]:
    """Makes an output fit into an event: plain JSON, within the limit.

    What is too long is cut and becomes text, with a notice at the end; what is not
    JSON becomes an error.
    """
    if isinstance(output, str):
        head = output[:max_bytes].encode(errors="replace").decode()
        if len(output) > max_bytes or len(_encode(head)) > max_bytes:
            return "ok", _cut(head, len(output), max_bytes)
        return "ok", head
    try:
        encoded = _encode(output)
        if b"null" in encoded:
            _refuse_no_number(output)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return "error", f"The tool's output can't be written as JSON: {error}"
    if len(encoded) > max_bytes:
        text = encoded.decode()
        return "ok", _cut(text, len(text), max_bytes)
    plain = _decode(encoded)
    if deeper_than(plain, MOST_DEPTH):
        return "error", f"The tool's output is nested more than {MOST_DEPTH} deep."
    return "ok", plain


def _refuse_no_number(output: Any) -> None:
    """Raises `ValueError` where NaN or an infinity was written as null."""
    plain = msgspec.to_builtins(output, str_keys=True, enc_hook=_raw)
    try:
        json.dumps(plain, allow_nan=False)
    except ValueError:
        raise ValueError("there is a NaN or an infinity in it") from None


def _raw(value: Any) -> Any:
    """Returns what is JSON already; it is all that `_encode` knows beyond the built in."""
    assert isinstance(value, msgspec.Raw), "what can't be written was refused before"
    return _decode(value)


def _cut(text: str, characters: int, max_bytes: int) -> str:
    """Returns as much of a text as fits as JSON, and a notice that this is all."""
    notice = "\n[The output was cut here: these are {} of its {} characters.]"
    room = max_bytes - len(_encode(notice.format(characters, characters)))
    low, high = 0, max(0, min(len(text), room))
    while low < high:
        middle = (low + high + 1) // 2
        if len(_encode(text[:middle])) <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low] + notice.format(low, characters)
