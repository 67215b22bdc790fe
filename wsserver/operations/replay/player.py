"""Plays a recording to a server, and says the first thing that comes out otherwise.

Every client waits for what its model had seen before it spoke: a reply, the end of a
turn, so many bytes of an answer. So the order of things is that of the recording,
whether at its pace or as fast as it goes. Acknowledgements are the player's own.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import orjson
from msgspec import Struct
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidHandshake
from websockets.typing import Subprotocol

from protocol.frame_error import FrameError
from protocol.ids import SUBPROTOCOL
from wsserver.operations.counted import counted
from wsserver.operations.replay.client import Client
from wsserver.operations.replay.milestones import in_words
from wsserver.operations.replay.model import RecordedProvider
from wsserver.operations.replay.names import Names
from wsserver.operations.replay.recording import Recording
from wsserver.operations.replay.script import (
    Connect,
    Leave,
    Need,
    Say,
    Script,
    Step,
    script,
)
from wsserver.operations.replay.sight import Frame, Sight
from wsserver.operations.replay.verdict import first_difference, unproven
from wsserver.server import Parts, serving
from wsserver.settings import Settings
from wsserver.turns.services import Target

PATIENCE_SECONDS = 10.0
"""How much later than in the recording something may come."""


class Stage(Struct, frozen=True, kw_only=True):
    """Where and how to play.

    Attributes:
        url: The server's WebSocket; None for a fresh server whose models say what
            the recorded ones said.
        token: Credentials; None for none.
        fast: Whether to wait for nothing but what clients had seen.
        texts: Whether to compare texts; those of a redacted recording never are.
    """

    url: str | None = None
    token: str | None = None
    fast: bool = False
    texts: bool = True


class Outcome(Struct, frozen=True, kw_only=True):
    """How it went.

    Attributes:
        difference: The first thing that came out otherwise; None for none.
        recorded_faults: Rules of the protocol that the recording itself breaks.
        connections: How many were played.
        skipped: How many were open before the recording began.
        milestones: How many were compared.
    """

    difference: str | None
    recorded_faults: tuple[str, ...]
    connections: int
    skipped: int
    milestones: int

    def lines(self) -> Iterator[str]:
        """Yields what a person is told."""
        if self.skipped:
            yield f"left out: {counted(self.skipped, 'connection')}, open before"
        for fault in self.recorded_faults:
            yield f"the recording breaks a rule: {fault}"
        if self.difference is not None:
            yield f"differs: {self.difference}"
        else:
            played = f"connections: {self.connections}, milestones: {self.milestones}"
            yield f"as recorded; {played}"


class _DifferenceError(Exception):
    """The replay has come out otherwise; says how."""


async def replay(recording: Recording, stage: Stage) -> Outcome:
    """Plays a recording.

    Raises:
        RecordingError: A frame of the server's in it is none.
    """
    play = script(recording)
    if stage.url is not None:
        return await _replay(recording, play, stage, stage.url)
    settings = Settings(port=0, store="memory", drain_seconds=0)
    model = RecordedProvider(play.heard, redacted=recording.redacted, fast=stage.fast)
    models = {name: Target(provider=model, model=name) for name in model.models}
    async with serving(settings, Parts(models=models)) as server:
        return await _replay(recording, play, stage, server.url)


async def _replay(
    recording: Recording, play: Script, stage: Stage, url: str
) -> Outcome:
    live = Sight()
    fresh = stage.url is None
    names = Names(play, live, fresh=fresh, redacted=recording.redacted)
    difference: str | None = None
    async with _company(stage, url, live, names) as company:
        try:
            at_ms = play.steps[0].at_ms if play.steps else 0.0
            for step in play.steps:
                await company.play(step, step.at_ms - at_ms)
                at_ms = step.at_ms
            await company.see(play.last, 0.0)
        except _DifferenceError as error:
            difference = str(error)
    if difference is None:
        texts = stage.texts and not recording.redacted
        difference = unproven(live) or first_difference(play.sight, live, texts=texts)
    return Outcome(
        difference=difference,
        recorded_faults=tuple(play.sight.faults),
        connections=sum(isinstance(step, Connect) for step in play.steps),
        skipped=len(play.skipped),
        milestones=len(play.sight.reached),
    )


@asynccontextmanager
async def _company(
    stage: Stage, url: str, live: Sight, names: Names
) -> AsyncGenerator["_Company"]:
    async with anyio.create_task_group() as tasks:
        company = _Company(stage, url, live, names, tasks)
        try:
            yield company
        finally:
            company.leave()
            tasks.cancel_scope.cancel()


class _Company:
    """All clients of the play."""

    def __init__(
        self,
        stage: Stage,
        url: str,
        live: Sight,
        names: Names,
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        self._stage = stage
        self._url = url
        self._live = live
        self._names = names
        self._tasks = tasks
        self._clients: dict[str, Client] = {}
        self._moved = anyio.Event()

    def leave(self) -> None:
        for client in self._clients.values():
            client.drop()

    async def play(self, step: Step, gap_ms: float) -> None:
        if not self._stage.fast:
            await anyio.sleep(gap_ms / 1000)
        await self.see(step.needs, gap_ms)
        match step:
            case Connect():
                await self._connect(step.connection)
            case Say():
                await self._say(step)
            case Leave():
                await self._end(step)
            case _:
                raise AssertionError(f"{step} is no step")

    async def see(self, needs: tuple[Need, ...], gap_ms: float) -> None:
        """Waits for what clients had seen, and compares it.

        Raises:
            _DifferenceError: It does not come, is otherwise, or breaks a rule.
        """
        for need in needs:
            with anyio.move_on_after(PATIENCE_SECONDS + gap_ms / 1000):
                while not self._has(need):
                    self._check_faults()
                    self._check_end(need)
                    await self._moved.wait()
            self._compare(need)
        self._check_faults()

    def _has(self, need: Need) -> bool:
        milestone, reached = need.milestone, self._live.reached
        if not milestone.is_text:
            return milestone.key in reached
        _, name, turn, _ = milestone.key
        over = any(key[0] == "done" and key[2:] == (name, turn) for key in reached)
        return over or reached.get(milestone.key, 0) >= milestone.value

    def _compare(self, need: Need) -> None:
        milestone = need.milestone
        where = f"line {need.line}: {in_words(milestone)}"
        if not self._has(need):
            raise _DifferenceError(f"{where} did not come")
        if milestone.is_text:
            return
        value = self._live.reached[milestone.key]
        if value != milestone.value:
            raise _DifferenceError(f"{where}: was {milestone.value}, is {value}")

    def _check_faults(self) -> None:
        if self._live.faults:
            raise _DifferenceError(f"a rule is broken: {self._live.faults[0]}")

    def _check_end(self, need: Need) -> None:
        """An end that was not recorded is what is to be told, not what it cost."""
        key = need.milestone.key
        for client in self._clients.values():
            if client.code is not None and key[0] != "closed" and client.name in key:
                raise _DifferenceError(
                    f"line {need.line}: {in_words(need.milestone)} did not come:"
                    f" the server ended {client.name} with {client.code}"
                )

    async def _connect(self, name: str) -> None:
        try:
            socket = await connect(
                self._url,
                subprotocols=[Subprotocol(SUBPROTOCOL)],
                compression=None,
                ping_interval=None,
                max_size=None,
                open_timeout=PATIENCE_SECONDS,
            )
        except InvalidHandshake as error:
            raise _DifferenceError(f"{name} is not let in: {error}") from None
        except OSError as error:
            raise _DifferenceError(f"{self._url} does not answer: {error}") from None
        client = self._clients[name] = Client(name, socket)
        self._tasks.start_soon(self._listen, client)

    async def _listen(self, client: Client) -> None:
        try:
            await client.listen(self._shown)
        except FrameError as error:
            self._live.faults.append(
                f"{client.name} was sent no frame: {error.message}"
            )
            self._move()
            return
        if self._clients.get(client.name) is client:
            self._live.closed(client.name, client.code)
            self._move()

    def _shown(self, client: Client, frame: Frame) -> None:
        self._live.shown(client.name, self._names.to_recorded(client.name, frame))
        self._move()

    def _move(self) -> None:
        moved, self._moved = self._moved, anyio.Event()
        moved.set()

    async def _say(self, step: Say) -> None:
        client = self._clients.get(step.connection)
        if client is None:
            return
        if step.frame is None:
            await client.say("x" * step.bytes)
            return
        frame = self._names.to_live(step.frame, step.title, self._stage.token)
        self._live.said(step.connection, frame)
        await client.say(orjson.dumps(frame).decode())

    async def _end(self, step: Leave) -> None:
        client = self._clients.pop(step.connection, None)
        if client is None or step.awaited:
            return
        await client.end(step.code)
