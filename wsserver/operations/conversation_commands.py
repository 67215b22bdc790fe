"""`wsserver conversations ...` as the command line has it."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from wsserver.log.store import StoreError
from wsserver.operations.shell import EXIT_FAILED, AsJson, one_line
from wsserver.settings.flags import Load, with_flags

_STORE = frozenset({"store"})

Name = Annotated[
    str,
    typer.Argument(
        metavar="CONVERSATION",
        help="SPACE/ID as `list` has it, or ID where only one space has it.",
    ),
]


def add_conversation_commands(app: typer.Typer) -> None:
    """Adds `wsserver conversations ...`."""
    group = typer.Typer(
        help="Look into the sqlite store, while a server runs, too; change it while none does.",
        rich_markup_mode=None,
    )
    group.callback()(lambda: None)
    for name, command in (
        ("list", _list),
        ("show", _show),
        ("export", _export),
        ("delete", _delete),
        ("renew-epochs", _renew_epochs),
    ):
        group.command(name)(with_flags(_in_one_line(command), only=_STORE))
    app.add_typer(group, name="conversations")


def _in_one_line(command: Callable[..., None]) -> Callable[..., int]:
    """Says what is wrong with the store, and ends when nobody reads any more."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> int:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except StoreError as error:
            typer.echo(one_line(str(error)), err=True)
            return EXIT_FAILED
        except UnicodeEncodeError:
            typer.echo(one_line("a name is not UTF-8; see `list`"), err=True)
            return EXIT_FAILED
        except BrokenPipeError:
            # The interpreter must not flush into it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0

    return run


def _list(
    load: Load,
    space: Annotated[
        str | None, typer.Option(metavar="SPACE", help="Only those of this space.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what is kept, the newest last."""
    from wsserver.operations.conversations import opened_archive
    from wsserver.operations.transcript import listing, listing_json

    with opened_archive(load().settings) as archive:
        found = sorted(archive.conversations(space), key=lambda kept: kept.written)
    for line in (listing_json if as_json else listing)(found):
        typer.echo(line)


def _show(load: Load, conversation: Name) -> None:
    """Show a conversation as a person reads it."""
    from wsserver.operations.conversations import frames, opened_archive
    from wsserver.operations.transcript import transcript

    with opened_archive(load().settings) as archive:
        kept = archive.find(conversation)
        for line in transcript(kept, frames(archive, kept)):
            typer.echo(line)


def _export(load: Load, conversation: Name) -> None:
    """Write a conversation's events, a line of JSON each, as they go over the wire."""
    from wsserver.operations.conversations import frames, opened_archive

    with opened_archive(load().settings) as archive:
        for frame in frames(archive, archive.find(conversation)):
            sys.stdout.buffer.write(frame + b"\n")


def _delete(
    load: Load,
    conversations: Annotated[
        list[str],
        typer.Argument(metavar="CONVERSATION...", help="As for `show`."),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete conversations for good, while no server runs."""
    from wsserver.operations.conversations import (
        check_not_served,
        delete,
        opened_archive,
    )

    settings = load().settings
    check_not_served(settings, ", or let one of its clients delete the conversation")
    with opened_archive(settings) as archive:
        keys = [archive.find(name).key for name in conversations]
    if not yes:
        _confirm(f"Delete {', '.join(keys)} for good?")
    delete(settings, keys)
    typer.echo(f"deleted {', '.join(keys)}")


def _confirm(question: str) -> None:
    try:
        typer.confirm(question, abort=True)
    except typer.Abort:
        says = "nothing was deleted; --yes deletes without asking"
        typer.echo(f"\n{one_line(says)}", err=True)
        raise


def _renew_epochs(load: Load) -> None:
    """Have clients read all conversations anew, after a backup was restored.

    Their cursors are of a log that is gone: with a new epoch each is told to `reset`.
    No server may run.
    """
    from wsserver.operations.conversations import renew_epochs

    typer.echo(f"conversations with a new epoch: {renew_epochs(load().settings)}")
