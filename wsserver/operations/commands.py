"""The operator's commands as the command line has them. What they do is beside this."""

from typing import Annotated

import typer

from wsserver.operations.shell import EXIT_BAD_SETTINGS, EXIT_FAILED, AsJson
from wsserver.settings.flags import Load, with_flags


def doctor(
    load: Load,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Also connect there as a client does: https://HOST, wss://HOST/v1/chat,"
            " or http://HOST without TLS.",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="WSSERVER_TOKEN", metavar="TOKEN", help="Credentials for --url."
        ),
    ] = None,
    idle: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Stay silent on that connection for so long: does it last?",
        ),
    ] = 0,
    upstreams: Annotated[
        bool, typer.Option(help="Ask each upstream for a short answer.")
    ] = True,
    as_json: AsJson = False,
) -> int:
    """Check this machine, the store, the upstreams, and a public URL.

    A line for each check: ok, warn or fail, and what to do. Exits with 1 if any
    check failed, else with 0.
    """
    from wsserver.operations.checks.findings import Report
    from wsserver.operations.checks.public_url import PublicUrl
    from wsserver.operations.doctor import Wanted, examine

    if idle and url is None:
        raise typer.BadParameter("--idle needs --url")
    try:
        public = None if url is None else PublicUrl.parse(url)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    wanted = Wanted(url=public, token=token, idle_seconds=idle, upstreams=upstreams)
    report = Report(as_json=as_json)
    examine(load, wanted, report.add)
    return EXIT_FAILED if report.failed else 0


def add_config_commands(app: typer.Typer) -> None:
    """Adds `wsserver config ...`."""
    config = typer.Typer(help="Look at the settings.", rich_markup_mode=None)
    config.callback()(lambda: None)
    config.command("check")(with_flags(_check))
    config.command("show")(with_flags(_show))
    config.command("env")(with_flags(_env))
    app.add_typer(config, name="config")


def _check(load: Load, as_json: AsJson = False) -> int:
    """Check the settings, and the files and models that they name.

    Exits with 0 if this user could start a server with them, else with 2. What a
    server that runs has in use is not looked at, nor is whether the address can be
    bound.
    """
    from wsserver.operations.checks.config import check
    from wsserver.operations.checks.findings import Report

    report = Report(as_json=as_json)
    for finding in check(load):
        report.add(finding)
    return EXIT_BAD_SETTINGS if report.failed else 0


def _show(load: Load) -> int:
    """Show every setting and where it comes from, as a TOML file."""
    from wsserver.operations.settings_text import as_toml

    typer.echo(as_toml(load()), nl=False)
    return 0


def _env(load: Load) -> int:
    """Show every setting as a variable, as a file for systemd or a container."""
    from wsserver.operations.settings_text import as_variables

    typer.echo(as_variables(load()), nl=False)
    return 0
