"""Does the steps of one conversation."""

from collections.abc import Sequence
from itertools import count
from random import Random
from typing import assert_never

import anyio

from client_demo.load.durations import draw
from client_demo.load.peer import Peer
from client_demo.load.scenario import Group, Prompt, PromptSet
from client_demo.load.script_error import ScriptError
from client_demo.load.steps import (
    AnyStep,
    DropStep,
    InterruptStep,
    LoopStep,
    OpenStep,
    ReadStep,
    ResumeStep,
    SendStep,
    ThinkStep,
    ToolsStep,
    WaitStep,
)
from client_demo.load.talk import Talk, refusal
from client_demo.load.talks import Talks
from client_demo.load.turn_watch import TurnWatch
from protocol.commands import Configure, Interrupt, Send
from protocol.content import Config

_ANSWER_SECONDS = 600.0
# These may come when no turn runs, or after its end.
_OF_NO_TURN = frozenset({"caught_up", "config", "cut", "message", "skip"})


class Script:
    """The steps of one conversation slot of one user.

    Attributes:
        talks: Its conversations: begins and ends them.
    """

    def __init__(
        self,
        group: Group,
        peer: Peer,
        talks: Talks,
        *,
        prompts: dict[str, PromptSet],
        random: Random,
        late_seconds: float,
    ) -> None:
        """Takes what the steps need.

        Args:
            group: Whose steps.
            peer: Whose socket.
            talks: Begins and ends conversations.
            prompts: The sets of prompts by name.
            random: For what is drawn.
            late_seconds: How much later than due it begins.
        """
        self.talks = talks
        self._group = group
        self._peer = peer
        self._prompts = prompts
        self._random = random
        self._late_seconds = late_seconds
        self._model = group.model
        self._sends = count(1)
        self._next_prompt = 0

    async def run(self) -> None:
        """Does all steps and ends the last conversation.

        Raises:
            ScriptError: It can't go on.
        """
        await self._steps(self._group.steps)
        await self.talks.end()

    async def give_up(self) -> None:
        """Ends the conversation after an error, without waiting for anything."""
        try:
            await self.talks.end(failed=True)
        except ScriptError as error:
            self._peer.tally.error(error.code, error.message)

    async def _steps(self, steps: Sequence[AnyStep]) -> None:
        for step in steps:
            match step:
                case DropStep() | ResumeStep() | ReadStep():
                    await self._network(step)
                case OpenStep():
                    self._model = self._group.model
                    await self.talks.begin(step)
                case SendStep():
                    await self._send(step)
                case WaitStep():
                    await self._wait(step)
                case InterruptStep():
                    await self._interrupt(step)
                case ToolsStep():
                    self.talks.tools.behave(step)
                case ThinkStep():
                    await anyio.sleep(draw(step.seconds, self._random))
                case LoopStep():
                    await self._loop(step)
                case _:
                    assert_never(step)

    async def _network(self, step: DropStep | ResumeStep | ReadStep) -> None:
        match step:
            case DropStep():
                await self._tokens(step.after_tokens, _ANSWER_SECONDS)
                await self._peer.drop()
            case ResumeStep():
                await self._resume()
            case ReadStep():
                self._read(step)

    @property
    def _talk(self) -> Talk:
        assert self.talks.talk is not None, "the rules ask for an `open` first"
        return self.talks.talk

    @property
    def _watch(self) -> TurnWatch:
        assert self._talk.watch is not None, "the rules ask for a `send` first"
        return self._talk.watch

    async def _send(self, step: SendStep) -> None:
        talk = self._talk
        if step.model is not None and step.model != self._model:
            self._model = step.model
            configure = Configure(
                id=talk.new_id(),
                conversation=talk.name,
                config=Config(model=self._model),
            )
            reply, _ = await talk.command(configure)
            if not reply.ok:
                raise refusal(reply)
        prompt = self._prompt(step)
        send = Send(
            id=talk.new_id(),
            conversation=talk.name,
            content=prompt.text if prompt else self._text(step),
            policy=step.policy,
        )
        watch = TurnWatch(
            send.id,
            self._peer.tally,
            sent_at=anyio.current_time(),
            late_seconds=self._late_seconds,
            measured=self._group.measured and step.policy != "steer",
            prompt=prompt,
        )
        self._late_seconds = 0.0
        talk.watched(watch)
        self._peer.tally.count("turns")
        reply, now = await talk.command(send)
        if not reply.ok:
            watch.end(now)
            raise refusal(reply)
        talk.oracle.accepted(send.id)

    def _text(self, step: SendStep) -> str:
        return (step.text or "").replace("{n}", str(next(self._sends)))

    def _prompt(self, step: SendStep) -> Prompt | None:
        if step.prompts is None:
            return None
        prompts = self._prompts[step.prompts].prompts
        if step.order == "random":
            return self._random.choice(prompts)
        self._next_prompt += 1
        return prompts[(self._next_prompt - 1) % len(prompts)]

    async def _wait(self, step: WaitStep) -> None:
        event = step.event
        if step.seconds is not None:
            await anyio.sleep(draw(step.seconds, self._random))
        elif step.tokens is not None:
            await self._tokens(step.tokens, step.within_seconds)
        elif event == "done":
            await self._talk.until(lambda: self._watch.over, step.within_seconds)
        elif event is not None:
            await self._event(event, step.within_seconds)

    async def _event(self, event: str, within_seconds: float) -> None:
        talk = self._talk
        watch = None if event in _OF_NO_TURN else talk.watch
        await talk.until(
            lambda: talk.seen[event] or (watch is not None and watch.over),
            within_seconds,
        )

    async def _tokens(self, tokens: int, within_seconds: float) -> None:
        if tokens:
            watch = self._watch
            await self._talk.until(
                lambda: watch.over or watch.tokens >= tokens, within_seconds
            )

    async def _interrupt(self, step: InterruptStep) -> None:
        await self._tokens(step.after_tokens, _ANSWER_SECONDS)
        talk, watch, tally = self._talk, self._watch, self._peer.tally
        frame = Interrupt(
            id=talk.new_id(),
            conversation=talk.name,
            turn=watch.turn,
            send=watch.send if watch.turn is None else None,
            seen_seq=_seen(watch, step.seen),
            keep=step.keep,
        )
        began = anyio.current_time()
        reply, replied_at = await talk.command(frame)
        if not reply.ok:
            raise refusal(reply)
        tally.count(f"interrupts.{reply.outcome}")
        self._peer.time("interrupt_reply", replied_at - began)
        if reply.outcome == "dequeued":
            watch.end(replied_at)
        await talk.until(lambda: watch.over, _ANSWER_SECONDS)
        if reply.outcome == "interrupted" and watch.ended_at is not None:
            self._peer.time("interrupt_done", watch.ended_at - began)

    async def _resume(self) -> None:
        await self._peer.resume()
        talk = self._talk
        await talk.attach(since=self._peer.began_at)
        await talk.until(lambda: talk.caught_up, _ANSWER_SECONDS)

    def _read(self, step: ReadStep) -> None:
        pace = self._peer.pace
        pace.bytes_per_second = step.bytes_per_second
        pause_seconds = draw(step.pause_seconds, self._random)
        pace.pause_until = anyio.current_time() + pause_seconds

    async def _loop(self, step: LoopStep) -> None:
        due = anyio.current_time()
        for _ in range(step.times):
            if step.every_seconds:
                await anyio.sleep_until(due)
                self._late_seconds = max(0.0, anyio.current_time() - due)
                self._peer.time("late", self._late_seconds)
                due += step.every_seconds
            await self._steps(step.steps)


def _seen(watch: TurnWatch, share: float | None) -> int | None:
    """Returns the last number that was seen; None to leave it to the server."""
    if share is None or watch.turn is None:
        return None
    place = round(len(watch.pieces) * share)
    return watch.pieces[place - 1] if place else watch.turn
