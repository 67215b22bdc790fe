"""The command line: `python -m client_demo ask|chat|load`."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import typer
from websockets.exceptions import InvalidURI

from client_demo.client import DEFAULT_URL
from client_demo.errors import ClientError

app = typer.Typer(
    help="A client of wsserver.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Url = Annotated[
    str, typer.Option(envvar="WSSERVER_URL", help="Where the server listens.")
]
Token = Annotated[
    str | None, typer.Option(envvar="WSSERVER_TOKEN", help="Credentials.")
]
Model = Annotated[str | None, typer.Option(help="Which model answers.")]
Conversation = Annotated[
    str | None, typer.Option(help="Go on with this conversation, or make it.")
]


@app.command()
def ask(
    prompt: Annotated[
        str, typer.Argument(help="What to ask; '-' or nothing reads standard input.")
    ] = "-",
    url: Url = DEFAULT_URL,
    token: Token = None,
    model: Model = None,
    conversation: Conversation = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print every event as a line of JSON.")
    ] = False,
) -> None:
    """Ask once; the answer goes to standard output.

    Exits with 0 for a whole answer, 3 for an interrupted or incomplete one, 1 for
    a failed one, 2 for wrong usage.
    """
    from client_demo.ask import ask as run

    question = sys.stdin.read() if prompt == "-" else prompt
    if not question.strip():
        raise typer.BadParameter("there is nothing to ask")
    raise typer.Exit(
        anyio.run(
            partial(
                run, question, url=_checked(url), token=token, model=model,
                conversation=conversation, as_json=as_json,
            )
        )
    )  # fmt: skip


@app.command()
def chat(
    url: Url = DEFAULT_URL,
    token: Token = None,
    model: Model = None,
    conversation: Conversation = None,
) -> None:
    """Chat in the terminal. Ctrl-C stops an answer; at the prompt it leaves."""
    from client_demo.terminal import chat as run

    raise typer.Exit(
        anyio.run(
            partial(
                run, url=_checked(url), token=token, model=model,
                conversation=conversation,
            )
        )
    )  # fmt: skip


@app.command()
def agent(
    task: Annotated[str, typer.Argument(help="What to do.")],
    folder: Annotated[
        Path,
        typer.Option(exists=True, file_okay=False, help="Where the files are."),
    ] = Path(),
    url: Url = DEFAULT_URL,
    token: Token = None,
    model: Model = None,
) -> None:
    """Let a model read a folder, and write a note there if you agree.

    The example of an agent: its tools list, search and read the files. Exits as
    `ask` does.
    """
    from client_demo.agent_terminal import run

    raise typer.Exit(
        anyio.run(
            partial(
                run, task, folder=folder, url=_checked(url), token=token, model=model
            )
        )
    )


@app.command()
def load(
    url: Url = DEFAULT_URL,
    token: Token = None,
    model: Model = None,
    conversations: Annotated[int, typer.Option(min=1)] = 10,
    sockets: Annotated[int, typer.Option(min=1)] = 2,
    turns: Annotated[int, typer.Option(min=1, help="Of each conversation.")] = 1,
    prompt: str = "hi",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON.")
    ] = False,
) -> None:
    """Talk in many conversations at once and report the times.

    Exits with 0 where every turn was completed and its text proven, else with 1.
    """
    from rich.console import Console

    from client_demo.load import load as run
    from client_demo.load import show
    from protocol.codec import encode

    try:
        report = anyio.run(
            partial(
                run, _checked(url), token=token, conversations=conversations,
                sockets=sockets, turns=turns, prompt=prompt, model=model,
            )
        )  # fmt: skip
    except ClientError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(encode(report))
    else:
        show(report, Console())
    raise typer.Exit(0 if report.clean else 1)


def _checked(url: str) -> str:
    from websockets.uri import parse_uri

    try:
        parse_uri(url)
    except InvalidURI as error:
        raise typer.BadParameter(str(error)) from None
    return url


if __name__ == "__main__":
    app(prog_name="python -m client_demo")
