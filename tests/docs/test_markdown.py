"""Every page is sound Markdown: headings, fences, tables, and links that lead somewhere."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
FOLDERS = [
    "docs/**/*.md",
    "client_demo/**/*.md",
    "protocol/**/*.md",
    "wsserver/**/*.md",
]
PAGES = sorted(
    path
    for pattern in ["*.md", *FOLDERS]
    for path in ROOT.glob(pattern)
    if "vendor" not in path.parts
)
LANGUAGES = {
    "caddyfile", "console", "frames", "html", "ini", "js", "json", "jsonl", "nginx",
    "promql", "python", "sh", "text", "toml", "ts", "yaml",
}  # fmt: skip
every_page = pytest.mark.parametrize(
    "path", PAGES, ids=lambda path: str(path.relative_to(ROOT))
)


@cache
def tokens(path: Path) -> list[Token]:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return parser.parse(path.read_text())


def headings(path: Path) -> list[tuple[int, str]]:
    """Returns levels and texts, without marks."""
    found = tokens(path)
    return [
        (int(token.tag[1]), "".join(_text(found[place + 1])))
        for place, token in enumerate(found)
        if token.type == "heading_open"
    ]


def _text(inline: Token) -> Iterator[str]:
    for child in inline.children or []:
        if child.type in ("text", "code_inline"):
            yield child.content


def anchors(path: Path) -> set[str]:
    """Returns what GitHub's renderer calls the headings."""
    found: set[str] = set()
    for _, text in headings(path):
        name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number, free = 0, name
        while free in found:
            number += 1
            free = f"{name}-{number}"
        found.add(free)
    return found


def targets(path: Path) -> Iterator[str]:
    """Yields where links and images lead, those written as HTML too."""
    for token in tokens(path):
        for child in token.children or []:
            if child.type == "link_open":
                yield str(child.attrs["href"])
            elif child.type == "image":
                yield str(child.attrs["src"])
        if token.type == "html_block":
            yield from re.findall(r'(?:src|srcset|href)="([^"]+)"', token.content)


@every_page
def test_links_lead_somewhere(path: Path) -> None:
    for link in targets(path):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        target, _, anchor = link.partition("#")
        found = (path.parent / target).resolve() if target else path
        assert found.exists(), link
        assert found == path or found.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(found), link


@every_page
def test_headings_are_a_tree_with_one_root(path: Path) -> None:
    levels = [level for level, _ in headings(path)]
    assert levels[:1] == [1], "a page begins with its title"
    assert levels.count(1) == 1
    for above, below in pairwise(levels):
        assert below <= above + 1, "a level was left out"


@every_page
def test_fences_say_their_language(path: Path) -> None:
    for token in tokens(path):
        assert token.type != "code_block", f"indented, so it has no language: {token}"
        if token.type == "fence":
            assert token.info.partition(" ")[0] in LANGUAGES, (
                f"line {(token.map or [0])[0] + 1}"
            )
    assert path.read_text().count("\n```") % 2 == 0, "a fence is not closed"


@every_page
def test_code_can_be_parsed(path: Path) -> None:
    parsers = {
        "json": orjson.loads,
        "jsonl": lambda lines: [*map(orjson.loads, lines.splitlines())],
        "python": ast.parse,
        "toml": tomllib.loads,
    }
    for token in tokens(path):
        if token.type == "fence" and token.info in parsers:
            parsers[token.info](token.content)


@every_page
def test_commands_are_words_that_a_shell_reads(path: Path) -> None:
    blocks = [t.content for t in tokens(path) if t.type == "fence" and t.info == "sh"]
    checked = subprocess.run(
        ["/bin/sh", "-n"],
        input="\n".join(blocks),
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


@every_page
def test_rows_of_a_table_have_its_columns(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    columns = 0
    for line in text.splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert cells in (0, columns) or columns == 0, line
        columns = cells


@every_page
def test_lines_are_clean(path: Path) -> None:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        assert line == line.rstrip(), f"line {number} ends in space"


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    """Each rule, broken once."""
    page = tmp_path / "page.md"

    def fails(text: str) -> list[str]:
        page.write_text(text)
        tokens.cache_clear()
        failed: list[str] = []
        for rule in (
            test_links_lead_somewhere,
            test_headings_are_a_tree_with_one_root,
            test_fences_say_their_language,
            test_rows_of_a_table_have_its_columns,
            test_lines_are_clean,
        ):
            try:
                rule(page)
            except AssertionError:
                failed.append(rule.__name__.split("_")[1])
        return failed

    assert fails("# A\n\n[x](#a) [y](https://e.org)\n\n```sh\nx\n```\n") == []
    assert fails("# A\n\n[x](#b)\n") == ["links"]
    assert fails("# A\n\n[x](missing.md)\n") == ["links"]
    assert fails("# A\n\n# B\n") == ["headings"]
    assert fails("# A\n\n### B\n") == ["headings"]
    assert fails("# A\n\n```\nx\n```\n") == ["fences"]
    assert fails("# A\n\n    x\n") == ["fences"]
    assert fails("# A\n\n| a | b |\n|---|---|\n| c |\n") == ["rows"]
    assert fails("# A \n") == ["lines"]
