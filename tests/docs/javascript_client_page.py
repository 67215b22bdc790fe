"""Writes the JavaScript client's reference: `python -m tests.docs.javascript_client_page`.

Types and most words come from its `.d.ts` files; what the members of `ChatClient` do
stands in `client.js`.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "javascript-client.md"
WEB = ROOT / "client_demo" / "web"

_HEAD = """\
# JavaScript client

<!-- Made by `python -m tests.docs.javascript_client_page` from client_demo/web; do not edit. -->

An ES module for browsers and Node, without a build step: `import { ChatClient } from "./client.js"`; a
server has it at `/client.js`. [Its own page](../../client_demo/web/README.md) shows how it is used. Frames and
their members, such as `Config` and `Reply`, are those of the [protocol](protocol.md), typed in
`protocol.d.ts`.
"""

_COMMENT = r"/\*\*((?:[^*]|\*(?!/))*)\*/"
_EXPORT = re.compile(
    rf"^(?:{_COMMENT}\n)?export (interface|class|type|function) (\w+)([^\n]*)",
    re.MULTILINE,
)
_MEMBER = re.compile(
    rf"^  (?:{_COMMENT}\n  )?((?:readonly )?(\w+)\??[^\n]*?);$", re.MULTILINE
)
_METHOD = re.compile(rf"^  {_COMMENT}\n  (?:get )?(\w+)\(", re.MULTILINE)


class Exported(Struct, frozen=True, kw_only=True):
    """Something that a file of types exports.

    Attributes:
        kind: `interface`, `class`, `type` or `function`.
        name: What it is called.
        says: Its comment; empty for none.
        head: What follows the name, to its end.
        body: Its members' source; empty where it has none.
    """

    kind: str
    name: str
    says: str
    head: str
    body: str


def page() -> str:
    """Returns the page as it has to be."""
    client = [*_exports((WEB / "client.d.ts").read_text())]
    fold = [*_exports((WEB / "fold.d.ts").read_text())]
    client.sort(key=_rank)
    methods = _documented((WEB / "client.js").read_text())
    parts = [_HEAD, "\n## Client\n"]
    for one in client:
        parts += _section(one, methods if one.name == "ChatClient" else {})
    parts.append("\n## What has arrived\n")
    for one in fold:
        parts += _section(one, {})
    return "".join(parts)


def _rank(one: Exported) -> int:
    """What is called comes first; then what it takes and gives."""
    if one.name == "ChatClient":
        return 0
    return 1 if one.kind in ("class", "function") else 2


def _exports(source: str) -> Iterator[Exported]:
    for match in _EXPORT.finditer(source):
        comment, kind, name, head = match.groups()
        body = ""
        if head.endswith("{") or kind == "function":
            end = re.compile(r"^}|;$", re.MULTILINE)
            if head.endswith("{"):
                end = re.compile("^}", re.MULTILINE)
            closing = end.search(source, match.end())
            stop = (
                closing.start() if closing and not head.endswith(";") else match.end()
            )
            body = source[match.end() : stop]
        yield Exported(
            kind=kind, name=name, says=_flat(comment), head=head.strip(), body=body
        )


def _documented(source: str) -> dict[str, str]:
    return {name: _flat(comment) for comment, name in _METHOD.findall(source)}


def _section(one: Exported, says: dict[str, str]) -> Iterator[str]:
    yield f"\n### {one.name}\n\n"
    if one.kind in ("type", "function"):
        gap = " " if one.kind == "type" else ""
        written = " ".join(f"{one.name}{gap}{one.head}{one.body}".split()).rstrip(";")
        yield f"```text\n{written}\n```\n" + (f"\n{one.says}\n" if one.says else "")
        return
    above = re.match(r"(?:<.*?> )?extends (.+?) {", one.head)
    said = [one.says] if one.says else []
    said += [f"Extends `{above[1]}`."] if above else []
    if said:
        yield " ".join(said) + "\n\n"
    yield "| member | |\n|---|---|\n"
    for comment, written, name in _MEMBER.findall(one.body):
        text = _flat(comment) or says.get(name, "")
        yield f"| `{_cell(written.removeprefix('readonly '))}` | {_cell(text)} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _flat(comment: str | None) -> str:
    """Returns a comment's text without stars, tags and line ends."""
    lines = re.sub(r"^\s*\*", "", comment or "", flags=re.MULTILINE)
    return " ".join(re.split(r"^\s*@", lines, flags=re.MULTILINE)[0].split())


if __name__ == "__main__":
    PAGE.write_text(page())
