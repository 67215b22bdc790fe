"""One user: a socket, the scripts of a group on it, and the goodbye."""

from pathlib import Path
from random import Random

import anyio
from msgspec import Struct

from client_demo.load.connection import NotConnectedError, Site
from client_demo.load.peer import Peer
from client_demo.load.recording import Origin, Recording
from client_demo.load.rules import every_step
from client_demo.load.scenario import Group, Plan
from client_demo.load.script import Script
from client_demo.load.script_error import ScriptError
from client_demo.load.steps import ReadStep
from client_demo.load.talks import Ending, Talks, finder
from client_demo.load.tally import Tally

_GIVE_UP_SECONDS = 30.0


class Run(Struct, frozen=True, kw_only=True):
    """What all users of one run have in common.

    Attributes:
        plan: What they do.
        site: Where.
        name: Begins the names of their conversations.
        origin: What is said of recordings.
        recordings: The folder for frames around violations; None for none.
    """

    plan: Plan
    site: Site
    name: str
    origin: Origin
    recordings: str | None = None


async def be_user(
    run: Run, group: Group, tally: Tally, *, number: int, time: int, late_seconds: float
) -> float:
    """Connects, does all steps of all its conversations, and leaves.

    Args:
        run: What all have in common.
        group: Whose steps.
        tally: Where to count.
        number: Of this user.
        time: How often it was here before.
        late_seconds: How much later than due it begins.

    Returns:
        How long to wait before the next time, in seconds, as the server asked.
    """
    name = f"{run.name}-{number}-{time}"
    random = Random(f"{run.plan.scenario.seed}-{number}-{time}")  # noqa: S311
    tally.count("users")
    tally.user(1)
    wait_seconds = 0.0
    try:
        async with anyio.create_task_group() as tasks:
            peer = Peer(
                run.site,
                tally,
                tasks,
                random=random,
                slow=any(isinstance(s, ReadStep) for s in every_step(group.steps)),
                measured=group.measured,
                found=finder(name, tally, Recording(), None),
            )
            if group.measured:
                tally.time("late", late_seconds)
            wait_seconds = await _converse(run, group, peer, random, name, late_seconds)
            tasks.cancel_scope.cancel()
    finally:
        tally.user(-1)
    return wait_seconds


async def _converse(
    run: Run, group: Group, peer: Peer, random: Random, name: str, late_seconds: float
) -> float:
    tally = peer.tally
    try:
        await peer.connect()
    except NotConnectedError as error:
        tally.error(error.code, str(error))
        tally.count("failed", group.conversations)
        return 1.0
    waits: list[float] = [0.0]
    scenario = run.plan.scenario
    ending = Ending(
        site=run.site,
        reread=scenario.reread,
        delete=scenario.delete,
        origin=run.origin,
        recordings=Path(run.recordings) if run.recordings else None,
    )

    async def one(slot: int) -> None:
        own = Random(random.random())  # noqa: S311
        talks = Talks(f"{name}-{slot}", group, peer, ending, own)
        script = Script(
            group,
            peer,
            talks,
            prompts=run.plan.prompts,
            random=own,
            late_seconds=late_seconds,
        )
        tally.count("unfinished")
        try:
            await script.run()
        except ScriptError as error:
            tally.error(error.code, error.message)
            tally.count("failed")
            with anyio.move_on_after(_GIVE_UP_SECONDS):
                await script.give_up()
            waits.append(max(1.0, error.retry_after_seconds))
        else:
            tally.count("scripts")
        tally.count("unfinished", -1)

    async with anyio.create_task_group() as slots:
        for slot in range(group.conversations):
            slots.start_soon(one, slot)
    await peer.leave()
    return max(waits)
