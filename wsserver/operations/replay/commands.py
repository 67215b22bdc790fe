"""`wsserver replay` as the command line has it."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from wsserver.operations.shell import one_line

EXIT_DIFFERS = 1
EXIT_UNUSABLE = 2


def replay_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recording.")],
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Play to the server at ws://HOST/v1/chat, not to a fresh one.",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(envvar="WSSERVER_TOKEN", metavar="TOKEN", help="For --url."),
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Wait only for what clients had seen.")
    ] = False,
    texts: Annotated[bool, typer.Option(help="Compare what the models said.")] = True,
    show: Annotated[
        bool, typer.Option("--show", help="Print it as lanes; play nothing.")
    ] = False,
) -> int:
    """Play a recording of clients to a server, and say what comes out otherwise.

    Exits with 0 if all came out as recorded, with 1 if not, with 2 if the file can't
    be used.
    """
    from wsserver.operations.replay.recording import RecordingError, read_recording

    try:
        recording = read_recording(file)
    except RecordingError as error:
        typer.echo(one_line(str(error)), err=True)
        return EXIT_UNUSABLE
    if show:
        from wsserver.operations.replay.lanes import lanes

        for line in lanes(recording, shutil.get_terminal_size().columns):
            typer.echo(line)
        return 0
    if url is not None:
        _check(url)
    import anyio

    from wsserver.operations.replay.player import Stage, replay
    from wsserver.telemetry.logging import configure

    configure("console", "error")
    stage = Stage(url=url, token=token, fast=fast, texts=texts)
    try:
        outcome = anyio.run(replay, recording, stage)
    except RecordingError as error:
        typer.echo(one_line(f"{file}: {error}"), err=True)
        return EXIT_UNUSABLE
    for line in outcome.lines():
        typer.echo(line)
    return 0 if outcome.difference is None else EXIT_DIFFERS


def _check(url: str) -> None:
    from websockets.exceptions import InvalidURI
    from websockets.uri import parse_uri

    try:
        parse_uri(url)
    except (InvalidURI, ValueError):
        raise typer.BadParameter(
            f"{url} is no URL such as ws://127.0.0.1:8765/v1/chat"
        ) from None
