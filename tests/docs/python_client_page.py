"""Writes the reference of the Python client: `python -m tests.docs.python_client_page`."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import client_demo
from client_demo import sync
from client_demo.errors import CodedError, CommandError, TurnError
from protocol.fold import ConversationView
from protocol.view import CallView, TurnView

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python-client.md"

_HEAD = """\
# Python client

<!-- Made by `python -m tests.docs.python_client_page` from client_demo; do not edit. -->

`from client_demo import …`: the client for asyncio. `from client_demo.sync import connect`: the same
without `await`. It reconnects by itself, goes on where it was, and sends again what was not replied to.
To learn it: [An agent with tools](../tutorial/agent-with-tools.md),
[Survive a tunnel](../tutorial/survive-a-tunnel.md). What the words mean: [Protocol](protocol.md).

Values come from `protocol`: `Config`, `Content` (text, or a list of `TextPart` and `ImagePart`) and `Timing`
from `protocol.content`; `Policy` (`queue`, `interrupt`, `steer`, `reject`) and `Keep` (`seen`, `sent`,
`generated`, `none`) from `protocol.commands`; events such as `DeltaEvent` and `DoneEvent` from
`protocol.events`; what `notify` is told from `protocol.client.events` and `protocol.control`.
"""

_SYNC = """
## Without await

`client_demo.sync` has the same names with the same arguments; what is awaited there is waited for here,
and `async for` is `for`. The client runs in a thread of its own, so it stays connected while the program
does something else. Methods may be called from any thread. `view` is a copy of what there is now.

| async | without await |
|---|---|
"""

_ERRORS = """
## Errors

All are `ClientError`s, in `client_demo.errors`. Those with a code have `code`, `message`, `retryable`,
`retry_after_seconds` and `param`; what each code means stands in
[Errors and close codes](errors.md#errors-of-commands-and-connections).

| class | code | raised for |
|---|---|---|
"""

_SHOWN = {
    "Connect": [client_demo.connect, client_demo.Client],
    "Talk": [client_demo.Chat, client_demo.Turn],
    "Tools": [client_demo.tool, client_demo.ToolContext, client_demo.ClientTool],
    "What has arrived": [ConversationView, TurnView, CallView],
}
_WIDTH = 88
_HIDDEN = {"run", "ready", "noticed", "left"}  # called by the client itself
_VIEWS = {ConversationView, TurnView, CallView}


def page() -> str:
    """Returns the page as it has to be."""
    parts = [_HEAD]
    for title, shown in _SHOWN.items():
        parts.append(f"\n## {title}\n")
        for one in shown:
            parts += _of_class(one) if isinstance(one, type) else _of_function(one)
    parts += [_SYNC, *map(_pair, ("connect", "Client", "Chat", "Turn"))]
    return "".join([*parts, *_errors()])


def _of_function(function: Any) -> Iterator[str]:
    named = inspect.unwrap(function)
    yield f"\n### {named.__name__}\n\n{_code(named.__name__, named)}\n"
    yield _markdown(inspect.getdoc(named) or "")


def _of_class(kind: type[Any]) -> Iterator[str]:
    yield f"\n### {kind.__name__}\n\n"
    yield _markdown(inspect.getdoc(kind) or "")
    for name, member in vars(kind).items():
        if name.startswith("_") or name in _HIDDEN:
            continue
        full = f"{kind.__name__}.{name}"
        if isinstance(member, property):
            yield f"\n#### {full}\n\n`{_type(member)}`. {_markdown(inspect.getdoc(member) or '')}"
        elif inspect.isfunction(member) and kind not in _VIEWS:
            yield f"\n#### {full}\n\n{_code(name, member)}\n"
            yield _markdown(inspect.getdoc(member) or "")


def _code(name: str, function: Any) -> str:
    node = _node(function)
    given = [*_given(node.args)]
    back = "None" if node.returns is None else ast.unparse(node.returns)
    awaited = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    if back.startswith("AsyncGenerator["):  # of a context manager
        awaited, back = "async with ", back.removeprefix("AsyncGenerator[")[:-1]
    line = f"{awaited}{name}({', '.join(given)}) -> {back}"
    if len(line) > _WIDTH:
        line = f"{awaited}{name}(\n    " + ",\n    ".join(given) + f",\n) -> {back}"
    return f"```text\n{line}\n```\n"


def _node(function: Any) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Returns the source, where annotations have the names of their kinds."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return node


def _given(args: ast.arguments) -> Iterator[str]:
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
    for arg, default in zip(positional, defaults, strict=True):
        if arg.arg != "self":
            yield _parameter(arg, default)
    if args.kwonlyargs:
        yield "*"
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield _parameter(arg, default)


def _parameter(arg: ast.arg, default: ast.expr | None) -> str:
    name = ast.unparse(arg)
    return name if default is None else f"{name} = {ast.unparse(default)}"


def _type(member: property) -> str:
    returns = _node(member.fget).returns
    assert returns is not None, "all is annotated"
    return ast.unparse(returns)


def _markdown(doc: str) -> str:
    """Turns a docstring of Google's style into Markdown."""
    lines = re.sub(r"\n\n((?:    .*\n?|\n)+)", _example, doc + "\n")
    lines = re.sub(
        r"^(Args|Returns|Raises|Attributes):\n",
        r"**\1**\n\n",
        lines,
        flags=re.MULTILINE,
    )
    lines = re.sub(r"^ {4}(\w+): ", r"- `\1`: ", lines, flags=re.MULTILINE)
    lines = re.sub(r"^ {8}(?=\S)", "  ", lines, flags=re.MULTILINE)
    return re.sub(r"^ {4}(?=\S)", "", lines, flags=re.MULTILINE)


def _example(match: re.Match[str]) -> str:
    code = "".join(line.removeprefix("    ") + "\n" for line in match[1].splitlines())
    return f"\n\n```text\n{code.strip()}\n```\n\n"


def _pair(name: str) -> str:
    made: Any = getattr(sync, name)
    if not isinstance(made, type):
        return f"| `async with connect(url)` | `with {name}(url)` |\n"
    names = [each for each in vars(made) if not each.startswith("_")]
    return f"| `{name}` | `{name}`: {', '.join(f'`{each}`' for each in names)} |\n"


def _errors() -> Iterator[str]:
    yield _ERRORS
    for name in client_demo.__all__:
        kind = getattr(client_demo, name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            yield f"| `{name}` | | {_first_line(kind)} |\n"
    for code, kind in CodedError.by_code.items():
        yield f"| `{kind.__name__}` | `{code}` | {_first_line(kind)} {_where(kind)} {kind.remedy} |\n"


def _first_line(kind: type[Any]) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]


def _where(kind: type[CodedError]) -> str:
    places = [
        word
        for word, base in (("A command.", CommandError), ("A turn.", TurnError))
        if issubclass(kind, base)
    ]
    return " ".join(places)


if __name__ == "__main__":
    PAGE.write_text(page())
