"""The command line: `python -m client_demo ask|chat|agent|load`."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import typer

from client_demo.client import DEFAULT_URL, check_url
from client_demo.extras import needing
from client_demo.standard_streams import standard_streams

app = typer.Typer(
    help="A client of wsserver.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
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
        list[str] | None,
        typer.Argument(
            metavar="PROMPT",
            help="What to ask; '-', or nothing, stands for standard input.",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    model: Model = None,
    conversation: Conversation = None,
    instructions: Annotated[
        str | None, typer.Option(help="What the model is told before all.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print every event as a line of JSON.")
    ] = False,
) -> None:
    """Ask once; the answer goes to standard output, all else to standard error.

    Several prompts are joined by empty lines: `ask "Sum this up:" - < report.txt`.
    Ctrl-C stops the answer, twice waits for nobody. Where the connection is lost on
    the way it says so, tries again and goes on.

    Exits with 0 for a whole answer, 1 for one that failed or was refused, 2 for
    wrong usage, 3 for an interrupted or incomplete one, 4 for no connection.
    """
    from client_demo.ask import ask as run

    parts = prompt or ["-"]
    if parts.count("-") > 1:
        raise typer.BadParameter("standard input can be read once only")
    question = "\n\n".join(sys.stdin.read() if p == "-" else p for p in parts)
    if not question.strip():
        raise typer.BadParameter("there is nothing to ask")
    raise typer.Exit(
        anyio.run(
            partial(
                run, question, url=_checked(url), token=token, model=model,
                conversation=conversation, instructions=instructions, as_json=as_json,
            )
        )
    )  # fmt: skip


@app.command()
def chat(
    url: Url = DEFAULT_URL,
    token: Token = None,
    model: Model = None,
    conversation: Conversation = None,
    new: Annotated[
        bool, typer.Option("--new", help="Begin a new conversation.")
    ] = False,
    tools: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A Python file; the model may call the functions in it.",
        ),
    ] = None,
    own_tools: Annotated[
        bool,
        typer.Option("--own-tools/--no-tools", help="Whether this program runs tools."),
    ] = True,
) -> None:
    """Chat in the terminal; goes on with the last conversation at that server.

    Ctrl-C stops an answer, Ctrl-D leaves; /help lists the commands. Conversations
    and lines typed are remembered in the folder wsserver of $XDG_STATE_HOME
    (~/.local/state).

    Exits with 0, 1 where the server refused, 2 for wrong usage, 4 for no connection.
    """
    if tools is not None and not own_tools:
        raise typer.BadParameter("--no-tools runs none, so --tools has no use")
    with needing("terminal", "prompt_toolkit", "rich", "markdown_it"):
        from client_demo.terminal.program import Wanted
        from client_demo.terminal.program import chat as run

    wanted = Wanted(
        url=_checked(url), token=token, model=model, conversation=conversation, new=new
    )
    raise typer.Exit(
        anyio.run(partial(run, wanted, tool_file=tools, own_tools=own_tools))
    )


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
    scenario: Annotated[
        str | None,
        typer.Argument(help="A scenario file, or the name of a shipped one."),
    ] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    model: Annotated[
        str | None, typer.Option(help="Who answers, instead of the scenario's.")
    ] = None,
    processes: Annotated[
        int, typer.Option(min=1, max=256, help="How many load it together.")
    ] = 1,
    seed: Annotated[
        int | None, typer.Option(help="Of what is drawn, instead of the scenario's.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only say whether the scenario can be run.")
    ] = False,
    names: Annotated[
        bool, typer.Option("--list", help="Only list the shipped scenarios.")
    ] = False,
    json: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the report as JSON; '-' prints it."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as a page.")
    ] = None,
    recordings: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Where to put the frames around violations."
        ),
    ] = None,
    conversations: Annotated[
        int | None,
        typer.Option(min=1, help="Without a scenario: how many at once (10)."),
    ] = None,
    turns: Annotated[
        int | None,
        typer.Option(min=1, help="Without a scenario: how many in each (1)."),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(help='Without a scenario: what to say ("hi").')
    ] = None,
) -> None:
    """Be many users at once, check every answer, and report the times.

    Exits with 0 where every threshold held and the oracle found nothing, 1 where a
    threshold is broken, nobody could ask anything or the run could not be made, 2 for
    wrong usage or a wrong scenario, 3 where the oracle found a violation of the protocol.
    """
    from client_demo.load.entry import Wanted, main

    raise typer.Exit(
        main(
            Wanted(
                scenario=scenario, url=_checked(url), token=token, model=model,
                processes=processes, seed=seed, check=check, names=names, json=json,
                html=html, recordings=recordings, conversations=conversations,
                turns=turns, prompt=prompt,
            )
        )
    )  # fmt: skip


def _checked(url: str) -> str:
    try:
        check_url(url)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return url


def main() -> None:
    """Runs the command line and exits with its code."""
    with standard_streams():
        app(prog_name="python -m client_demo")
