"""One simulated session, from its plan to the list of what went wrong in it."""

import random
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import anyio
import structlog
import trio.testing

from tests.simulation.app import App
from tests.simulation.disk import Disk
from tests.simulation.host import SPACE, Host
from tests.simulation.log_oracle import Log, check_log
from tests.simulation.model import Model
from tests.simulation.oracle import check_commands, check_tools, check_view, tally
from tests.simulation.plan import OF_THE_SERVER, Plan, Step
from tests.simulation.virtual_time import VirtualLoop
from wsserver.log.entry import Entry
from wsserver.turns.retention import Retention

REST_SECONDS = 3000.0
CALM_SECONDS = 15.0
"""Less than two heartbeats: no heartbeat helps who was not woken."""

MOST_REPORTS = 20


class World:
    """A host, its clients, and what is wrong with them."""

    def __init__(self, plan: Plan) -> None:
        chance = random.Random(plan.seed)
        self.plan = plan
        self.wrong: list[str] = []
        self.tally: Counter[str] = Counter()
        self.model = Model(chance, plan.asks, self.report)
        self.disk = Disk(chance, plan.durable)
        self.host = Host(chance, self.disk, self.model, plan.pings, self.report)
        if plan.severed is not None:
            client, frame = plan.severed
            self.host.severed = (f"p{client}", frame)
        names = [f"c{number}" for number in range(plan.conversations)]
        self.apps: list[App] = []
        for number in range(plan.clients):
            some = names if number == 0 else [n for n in names if chance.random() < 0.7]
            app = App(number, some or names[:1], self.host, chance, self.report)
            self.apps.append(app)
        self.names = names

    def report(self, what: str) -> None:
        """Takes note of something wrong."""
        if len(self.wrong) < MOST_REPORTS:
            self.wrong.append(f"{anyio.current_time():.3f} {what}")

    async def run(self) -> None:
        """Runs it to its end."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.host.run)
            began = anyio.current_time()
            for app in self.apps:
                app.begin()
                for step in self.plan.steps:
                    if self.apps[step.client] is app and step.do not in OF_THE_SERVER:
                        app.at(began + step.at, lambda a=app, s=step: a.step(s))
                tasks.start_soon(app.run)
            for step in self.plan.steps:
                if step.do in OF_THE_SERVER:
                    await anyio.sleep_until(began + step.at)
                    await self._befall(step)
            if self.plan.steps:
                await anyio.sleep_until(began + self.plan.steps[-1].at)
            await self._settle()
            if not self.wrong:
                await self._calm()
            if not self.wrong:
                await self._judge()
            tasks.cancel_scope.cancel()

    async def _befall(self, step: Step) -> None:
        chance = random.Random(step.chance)
        if step.do == "restart":
            self.host.restart(chance)
        elif step.do == "trim":
            await self._trim(self.names[step.conversation], chance)
        else:
            self.disk.broken_until = anyio.current_time() + chance.choice(
                [0.5, 5.0, 40.0]
            )

    async def _trim(self, name: str, chance: random.Random) -> None:
        """Does what the server's retention does; some turns may stay."""
        key = f"{SPACE}/{name}"
        found = self.host.directory and self.host.directory.loaded(key)
        if found is None:
            return
        retention = Retention(bytes=chance.choice([0, 0, 300, 2000]))
        with found.held():
            found.trim(await retention.trim_point(self.disk, key, 0.0))
            trimmed = found.log.oldest - 1
            self.disk.trimmed[key] = max(self.disk.trimmed[key], trimmed)

    async def _settle(self) -> None:
        """Everything holds from here on: all comes to rest."""
        self.disk.broken_until = 0.0
        for app in self.apps:
            app.hold()
        with anyio.move_on_after(REST_SECONDS):
            while not self.wrong and not self._at_rest():
                await anyio.sleep(0.5)
            return
        self.report(f"it does not come to rest: {self._unrest()}")

    async def _calm(self) -> None:
        """What is said now reaches everyone soon, without any repair."""
        self.model.brief = True
        chance = random.Random(self.plan.seed)
        for app in self.apps:
            name = chance.choice(list(app.views))
            app.send(name, chance)
        with anyio.move_on_after(CALM_SECONDS):
            while True:
                await anyio.sleep(0.5)
                if self._at_rest():
                    return
        self.report(f"what was said does not arrive: {self._unrest()}")

    def _at_rest(self) -> bool:
        directory = self.host.directory
        if directory is None or not self.host.steady:
            return False
        if not all(app.at_rest for app in self.apps):
            return False
        for name in self.names:
            key = f"{SPACE}/{name}"
            conversation = directory.loaded(key)
            if conversation is not None and (
                conversation.state.live or not conversation.log.clean
            ):
                return False
            head = self.disk.head(key)
            for app in self.apps:
                if name in app.views and app.views[name].last != head:
                    return False
        return True

    def _unrest(self) -> dict[str, Any]:
        directory = self.host.directory
        logs = {
            name: (
                found.log.head,
                found.log.clean,
                found.turn and (found.running, found.turn.phase),
                len(found.state.queue),
            )
            for name in self.names
            if directory and (found := directory.loaded(f"{SPACE}/{name}"))
        }
        apps = {
            app.name: (
                app.client.phase,
                app.unreplied,
                len(app._todo),
                {name: view.last for name, view in app.views.items()},
            )
            for app in self.apps
        }
        return {"server": directory is not None, "logs": logs, "apps": apps}

    async def _judge(self) -> None:
        committer = self.host.committer
        assert committer is not None, "the server runs"
        await committer.flush()
        if self.model.open_calls:
            self.report(f"{self.model.open_calls} model calls were never closed")
        for link, watch in self.host.links:
            left = watch.unanswered()
            if left and not link.lost and not link.ended:
                self.report(f"commands without a reply on a link that holds: {left}")
        logs: dict[str, Log] = {}
        for name in self.names:
            key = f"{SPACE}/{name}"
            if await self.disk.meta(key) is None:
                continue
            entries, trimmed = self.disk.entries[key], self.disk.trimmed[key]
            logs[name] = log = Log(name, entries, trimmed)
            await self._check_kept(key, log)
            check_log(log, self.model, self.report)
            for app in self.apps:
                if name in app.views and not self.wrong:
                    check_view(app, log, self.report)
        heard = sum((watch.heard_count for _, watch in self.host.links), Counter())
        check_commands(self.apps, logs, heard, self.report)
        check_tools(self.apps, self.report)
        self.tally = tally(self.apps, logs)
        for link, watch in self.host.links:
            self.tally["connections lost"] += link.lost
            # Of the first connection only: that is the one which is severed.
            self.tally.setdefault(f"frames of {watch.principal}", link.frames)

    async def _check_kept(self, key: str, log: Log) -> None:
        """Checks that the store has all that was not trimmed, as it was stored."""
        meta = await self.disk.meta(key)
        assert meta is not None, "it is kept"
        if not 1 <= meta.oldest <= log.trimmed + 1 or meta.head != len(log.events):
            self.report(f"{log.name} is kept from {meta.oldest} to {meta.head}")
        entries: list[Entry] = []
        after = meta.oldest - 1
        while after < meta.head:
            block = await self.disk.read(key, after, 2**20)
            if not block:
                break
            entries += block
            after = block[-1].seq
        kept = Log(log.name, entries).events
        if [e for e in kept if e.seq >= meta.oldest] != log.events[meta.oldest - 1 :]:
            self.report(f"{log.name} is not kept as it was stored")


@contextmanager
def _listening(report: Callable[[str], None]) -> Generator[None]:
    """Lets no defect be hidden in the log."""

    def note(_: Any, name: str, event: dict[str, Any]) -> dict[str, Any]:
        if name in ("error", "exception", "critical"):
            report(f"logged: {event}")
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(
        processors=[note],
        wrapper_class=structlog.make_filtering_bound_logger(40),
    )
    try:
        yield
    finally:
        structlog.configure(**before)


def play(
    plan: Plan,
    backend: str = "asyncio",
    trace: list[bytes] | None = None,
    tallied: Counter[str] | None = None,
) -> list[str]:
    """Runs a plan in virtual time; returns what was wrong.

    Args:
        plan: What happens.
        backend: The event loop's kind; trio runs tasks in an order of its own.
        trace: Takes every frame that the server has handed over.
        tallied: What happened is added to it.
    """
    random.seed(plan.seed)
    world: World | None = None

    async def main() -> None:
        nonlocal world
        world = World(plan)
        world.host.trace = trace
        with _listening(world.report):
            await world.run()

    options: dict[str, Any]
    if backend == "trio":
        options = {"clock": trio.testing.MockClock(autojump_threshold=0)}
    else:
        options = {"loop_factory": VirtualLoop}
    anyio.run(main, backend=backend, backend_options=options)
    assert world is not None, "it ran"
    if tallied is not None:
        tallied.update(world.tally)
    return world.wrong
