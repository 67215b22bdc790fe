"""Begins conversations, and ends them: settled, read again, deleted."""

from pathlib import Path
from random import Random

import anyio
from msgspec import Struct
from msgspec.structs import replace

from client_demo.load.comparison import compare
from client_demo.load.connection import NotConnectedError, Site
from client_demo.load.oracle import Oracle
from client_demo.load.peer import Peer
from client_demo.load.recording import Origin, Recording
from client_demo.load.reread import reread
from client_demo.load.scenario import Group
from client_demo.load.script_error import ScriptError
from client_demo.load.steps import OpenStep
from client_demo.load.talk import Talk
from client_demo.load.tally import Tally
from client_demo.load.tool_answers import ToolAnswers
from client_demo.load.violations import Found, Kind, Violation
from protocol.commands import Delete, Open
from protocol.content import Config

_SETTLE_SECONDS = 120.0
_TAIL_SECONDS = 10.0
# It has waited already.
_FAILED_TAIL_SECONDS = 1.0
_READINGS = 5


class Ending(Struct, frozen=True, kw_only=True):
    """What is done with a conversation that is over.

    Attributes:
        site: Where it can be read again.
        reread: The part of them that is.
        delete: Whether it is deleted.
        recordings: The folder for frames around violations; None for none.
        origin: What is said of them.
    """

    site: Site
    reread: float
    delete: bool
    recordings: Path | None
    origin: Origin


class Talks:
    """The conversations of one slot, one after the other.

    Attributes:
        talk: The one that is open; None before the first.
        tools: Answers requests for tools.
    """

    def __init__(
        self, prefix: str, group: Group, peer: Peer, ending: Ending, random: Random
    ) -> None:
        """Begins no talk yet.

        Args:
            prefix: Begins their names.
            group: Whose settings and tools.
            peer: Whose socket.
            ending: What is done with those that are over.
            random: For what is drawn.
        """
        self.talk: Talk | None = None
        self.tools = ToolAnswers(peer, random)
        self._prefix = prefix
        self._group = group
        self._peer = peer
        self._ending = ending
        self._random = random
        self._number = 0

    async def begin(self, step: OpenStep) -> None:
        """Ends the one before and opens a new one.

        Raises:
            ScriptError: It did not work.
        """
        await self.end()
        self._number += 1
        name = f"{self._prefix}-{self._number}"
        recording = Recording()
        group = self._group
        config: Config | None = Config()
        if group.model is not None:
            config = replace(config, model=group.model)
        if group.instructions is not None:
            config = replace(config, instructions=group.instructions)
        if group.tools:
            config = replace(config, tools=group.tools)
        talk = self.talk = Talk(
            name,
            self._peer,
            open_frame=Open(
                id=name,
                conversation=name,
                config=config,
                handles=[tool.name for tool in group.tools],
                view=step.view,
                window_bytes=step.window_bytes,
                max_delay_ms=step.max_delay_ms,
            ),
            found=finder(name, self._peer.tally, recording, self._ending.recordings),
            recording=recording,
            on_tool=lambda request: self.tools.requested(talk, request),
        )
        self._peer.talks[name] = talk
        self._peer.tally.count("conversations")
        await talk.attach()

    async def end(self, *, failed: bool = False) -> None:
        """Settles, reads again, deletes.

        Args:
            failed: Its script could not go on: nothing is waited for.

        Raises:
            ScriptError: It did not work.
        """
        talk = self.talk
        if talk is None:
            return
        try:
            await self._finish(talk, failed=failed)
        finally:
            self.talk = None
            self._peer.left(talk.name, talk.owed)
            await self.keep(talk)

    async def keep(self, talk: Talk) -> None:
        """Writes the frames around violations, if there were any."""
        folder = self._ending.recordings
        if folder is not None and talk.recording.violated:
            path = recording_path(folder, talk.name)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(
                    talk.recording.write, path, self._ending.origin
                )

    async def _finish(self, talk: Talk, *, failed: bool) -> None:
        if talk.oracle.epoch is None:
            return  # It was never opened, so there is nothing to hold it to.
        if not failed:
            await talk.until(lambda: talk.settled, _SETTLE_SECONDS)
        if self._random.random() < self._ending.reread:
            await self._compare(talk, failed=failed)
        if not failed:
            talk.oracle.finish()
        if self._ending.delete:
            await _delete(talk)

    async def _compare(self, talk: Talk, *, failed: bool) -> None:
        self._peer.tally.count("reread")
        found, quiet, readings = _once(talk.found), not failed, 0
        while True:
            last = talk.oracle.last
            again = await self._reread(talk, found, failed=failed)
            readings += 1
            if failed or talk.oracle.last == last:
                break
            # A message that steered, and was left over, got its own turn only now:
            # nothing in the log tells it from one that joined.
            await talk.until(lambda: talk.settled, _SETTLE_SECONDS)
            if readings == _READINGS:
                what = f"it grew each of the {readings} times that it was read again"
                found("reread_differs", talk.oracle.last, what)
                quiet = False
                break
        compare(talk.oracle, again, found, quiet=quiet)

    async def _reread(self, talk: Talk, found: Found, *, failed: bool) -> Oracle:
        """Reads it again, and waits until all that is in the log came live too."""

        def note(data: bytes) -> None:
            talk.recording.came(self._peer.tally.clock(), "read again", data)

        try:
            again = await reread(self._ending.site, talk.name, found, note)
        except NotConnectedError as error:
            raise ScriptError(error.code, str(error)) from error
        try:
            tail_seconds = _FAILED_TAIL_SECONDS if failed else _TAIL_SECONDS
            await talk.until(lambda: talk.oracle.last >= again.last, tail_seconds)
        except ScriptError as error:
            if error.code != "wait_timeout":
                raise
        return again


async def _delete(talk: Talk) -> None:
    try:
        await talk.command(Delete(id=talk.new_id(), conversation=talk.name))
    except ScriptError as error:
        # The reply was lost, and the deletion was not.
        if error.code != "conversation_not_found":
            raise


def finder(name: str, tally: Tally, recording: Recording, folder: Path | None) -> Found:
    """Returns what counts the violations of a conversation."""
    path = None if folder is None else str(recording_path(folder, name))

    def found(kind: Kind, seq: int | None, what: str) -> None:
        recording.violation(tally.clock(), f"{kind}: {what}")
        tally.violation(
            Violation(kind=kind, conversation=name, seq=seq, what=what, recording=path)
        )

    return found


def _once(found: Found) -> Found:
    """Tells of the same violation once, however often it is read again."""
    told: set[tuple[Kind, int | None, str]] = set()

    def first(kind: Kind, seq: int | None, what: str) -> None:
        if (kind, seq, what) not in told:
            told.add((kind, seq, what))
            found(kind, seq, what)

    return first


def recording_path(folder: Path, name: str) -> Path:
    """Returns where the frames of a conversation are kept."""
    return folder / f"{name}.jsonl"
