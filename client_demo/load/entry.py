"""From the command line to a run: finds the scenario, or says what is wrong."""

from functools import partial
from pathlib import Path

import anyio
import typer
from msgspec import Struct

from client_demo.extras import needing
from client_demo.load.connection import Site
from client_demo.load.quick import quick
from client_demo.load.rules import ScenarioError
from client_demo.load.scenario import Plan
from client_demo.load.scenario_file import read, shipped


class Wanted(Struct, frozen=True, kw_only=True):
    """The command line; each member is an option of `load`."""

    scenario: str | None
    url: str
    token: str | None
    model: str | None
    processes: int
    seed: int | None
    check: bool
    names: bool
    json: str | None
    html: Path | None
    recordings: Path | None
    conversations: int | None
    turns: int | None
    prompt: str | None


def main(wanted: Wanted) -> int:
    """Does what is wanted; returns the exit code."""
    if wanted.names:
        for name in shipped():
            scenario = read(name).scenario
            typer.echo(f"{name:16} {scenario.description}")
        return 0
    try:
        plan = _plan(wanted)
        _check_folders(wanted)
    except ScenarioError as error:
        typer.echo(str(error), err=True)
        return 2
    if wanted.check:
        typer.echo(f"{plan.scenario.title}: can be run")
        return 0
    return _run(plan, wanted)


def _plan(wanted: Wanted) -> Plan:
    if wanted.scenario is None:
        return quick(
            conversations=wanted.conversations or 10,
            turns=wanted.turns or 1,
            prompt="hi" if wanted.prompt is None else wanted.prompt,
            model=wanted.model,
        )
    for name in ("conversations", "turns", "prompt"):
        if getattr(wanted, name) is not None:
            raise ScenarioError(
                f"--{name} has no use with {wanted.scenario}, which says that itself:"
                f" leave the scenario out, or change a copy of it"
            )
    return read(wanted.scenario)


def _check_folders(wanted: Wanted) -> None:
    """Finds out before a long run that its report would have no place.

    Raises:
        ScenarioError: The folder of a report does not exist.
    """
    json = None if wanted.json in (None, "-") else Path(wanted.json)
    for report in (json, wanted.html):
        if report is not None and not report.parent.is_dir():
            raise ScenarioError(f"{report}: make the folder {report.parent} first")


def _run(plan: Plan, wanted: Wanted) -> int:
    with needing("load", "hdrh", "rich"):
        from client_demo.load.command import Options, run
    options = Options(
        site=Site(url=wanted.url, token=wanted.token),
        processes=wanted.processes,
        json=wanted.json,
        html=wanted.html,
        recordings=wanted.recordings,
        model=wanted.model,
        seed=wanted.seed,
    )
    return anyio.run(partial(run, plan, options))
