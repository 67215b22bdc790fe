"""`wsserver doctor`: all checks in order, each finding told as it comes."""

from functools import partial

import anyio
from msgspec import Struct

from wsserver.operations.checks import machine
from wsserver.operations.checks.config import check_loaded, failures
from wsserver.operations.checks.findings import Tell
from wsserver.operations.checks.public_url import PublicUrl, visit
from wsserver.operations.checks.store import store
from wsserver.operations.checks.upstream import upstreams
from wsserver.settings import Settings, SettingsError
from wsserver.settings.flags import Load


class Wanted(Struct, frozen=True, kw_only=True):
    """What to look at besides this machine.

    Attributes:
        url: A public URL of the server to visit; None for none.
        token: Credentials for it.
        idle_seconds: How long to stay silent on that connection.
        upstreams: Whether to ask the upstreams.
    """

    url: PublicUrl | None
    token: str | None
    idle_seconds: float
    upstreams: bool


def examine(load: Load, wanted: Wanted, tell: Tell) -> None:
    """Makes all checks; `tell` gets each finding."""
    settings = None
    try:
        loaded = load()
    except SettingsError as error:
        for finding in failures("settings", error):
            tell(finding)
    else:
        settings = loaded.settings
        for finding in check_loaded(loaded):
            tell(finding)
        tell(machine.open_files(settings))
        tell(store(settings))
    tell(machine.clock())
    anyio.run(partial(_reach, settings, wanted, tell))


async def _reach(settings: Settings | None, wanted: Wanted, tell: Tell) -> None:
    """Looks at what lies beyond this process."""
    if settings is not None and wanted.upstreams:
        await upstreams(settings, tell)
    if wanted.url is not None:
        await visit(
            wanted.url,
            token=wanted.token,
            idle_seconds=wanted.idle_seconds,
            tell=tell,
        )
