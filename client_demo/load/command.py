"""`load`: reads the scenario, runs it, shows and writes the report."""

import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from client_demo.complaints import about_credentials
from client_demo.load.connection import NotConnectedError, Site, dial
from client_demo.load.fleet import Fleet, FleetError
from client_demo.load.page import page
from client_demo.load.plain import plain
from client_demo.load.progress import Progress
from client_demo.load.recording import Origin
from client_demo.load.report import Finished, Report, report
from client_demo.load.scenario import Plan
from client_demo.load.stages import group_of, length_seconds, most_users
from client_demo.load.summary import show
from client_demo.load.user import Run
from client_demo.tasks import task_group
from protocol.control import Welcome


class Options(Struct, frozen=True, kw_only=True):
    """How to run.

    Attributes:
        site: Where.
        processes: How many of the load tester.
        json: Where to write the report for machines; `-` is standard output.
        html: Where to write the page.
        recordings: The folder for frames around violations.
        model: Who answers, instead of what the scenario says.
        seed: Instead of the scenario's.
    """

    site: Site
    processes: int = 1
    json: str | None = None
    html: Path | None = None
    recordings: Path | None = None
    model: str | None = None
    seed: int | None = None


async def run(plan: Plan, options: Options) -> int:
    """Runs all rounds and reports; returns the exit code.

    The summary goes to standard error where the JSON goes to standard output.
    """
    console = Console(stderr=options.json == "-")
    plan = _changed(plan, options)
    try:
        made = await _run(plan, options, console)
    except (NotConnectedError, FleetError) as error:
        says = f"no load: {error}"
        if isinstance(error, NotConnectedError) and error.code == "unauthorized":
            says += f" {about_credentials(options.site.token)}"
        print(says, file=sys.stderr)  # noqa: T201
        return 1
    try:
        # Ahead of the summary, as the terminal may be gone by now.
        await anyio.to_thread.run_sync(_write, made, options)
    except OSError as error:
        show(made, console)
        print(f"the report could not be written: {error}", file=sys.stderr)  # noqa: T201
        return 1
    show(made, console)
    return made.exit_code


async def _run(plan: Plan, options: Options, console: Console) -> Report:
    welcome = await _greet(options.site)
    notes = _limits(plan, welcome)
    for note in notes:
        console.print(f"[yellow]note[/]: {plain(note)}", highlight=False)
    started_at = _now()
    finished: list[Finished] = []
    stages = plan.scenario.stages
    long_seconds = None if plan.scenario.runs else length_seconds(stages) or None
    for number in range(plan.scenario.rounds):
        title = plan.scenario.title
        if plan.scenario.rounds > 1:
            title += f", round {number + 1}"
        with Progress(console, title, long_seconds) as progress:
            fleet = Fleet(
                Run(
                    plan=plan,
                    site=options.site,
                    name=f"load-{token_hex(4)}",
                    origin=Origin(server=welcome.server, started_at=_now()),
                    recordings=str(options.recordings) if options.recordings else None,
                ),
                options.processes,
                progress.tick,
            )
            began = anyio.current_time()
            async with _stopped_by_signals(fleet) as stopped:
                counts = await fleet.work()
            seconds = anyio.current_time() - began
        finished.append(Finished(counts=counts, seconds=seconds))
        if stopped.is_set():
            notes.append("It was stopped before its end.")
            break
    return report(
        plan.scenario,
        finished,
        url=options.site.shown,
        server=welcome.server,
        started_at=started_at,
        notes=notes,
    )


@asynccontextmanager
async def _stopped_by_signals(fleet: Fleet) -> AsyncGenerator[anyio.Event]:
    """The first Ctrl-C or SIGTERM lets users finish, the second one ends it."""
    stopped = anyio.Event()

    async def listen() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                stopped.set()
                fleet.stop()
                break

    async with task_group() as tasks:
        tasks.start_soon(listen)
        yield stopped
        tasks.cancel_scope.cancel()


def _now() -> str:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return now.replace("+00:00", "Z")


async def _greet(site: Site) -> Welcome:
    connection = await dial(site)
    await connection.close()
    return connection.welcome


def _limits(plan: Plan, welcome: Welcome) -> list[str]:
    """Says which limits of the server the scenario will meet."""
    most = most_users(plan.scenario.stages)
    groups = plan.scenario.groups
    at_once = sum(group_of(groups, user).conversations for user in range(most))
    notes: list[str] = []
    if at_once > welcome.limits.active_turns:
        notes.append(
            f"Up to {at_once} turns may run at once and the server takes"
            f" {welcome.limits.active_turns} of one principal: start it with"
            f" `--max-active-turns {at_once}` unless the limit is what you test."
        )
    connections = welcome.limits.principal_connections
    if connections is not None and most > connections:
        notes.append(
            f"{most} users have as many connections and the server takes {connections}"
            " of one principal: raise its `max_principal_connections`."
        )
    return notes


def _changed(plan: Plan, options: Options) -> Plan:
    scenario = plan.scenario
    if options.seed is not None:
        scenario = replace(scenario, seed=options.seed)
    if options.model is not None:
        groups = [replace(group, model=options.model) for group in scenario.groups]
        scenario = replace(scenario, groups=groups)
    return replace(plan, scenario=scenario)


def _write(made: Report, options: Options) -> None:
    if options.html is not None:
        options.html.write_text(page(made), encoding="utf-8")
    if options.json is not None:
        data = msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"
        if options.json == "-":
            sys.stdout.buffer.write(data)
        else:
            Path(options.json).write_bytes(data)
