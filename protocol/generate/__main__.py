"""Writes what is generated, or says whether it is stale."""

import sys
from collections.abc import Callable
from pathlib import Path

import orjson

from protocol.generate.asyncapi import asyncapi
from protocol.generate.catalogue import errors_page
from protocol.generate.constants import constants
from protocol.generate.schema import json_schema
from protocol.generate.shapes import shapes
from protocol.generate.typescript import typescript

ROOT = Path(__file__).parents[2]

ARTEFACTS: dict[str, Callable[[], str]] = {
    "protocol/schemas/schema.json": lambda: _pretty(json_schema()),
    "protocol/schemas/asyncapi.json": lambda: _pretty(asyncapi()),
    "protocol/schemas/wsserver.d.ts": typescript,
    "client_demo/web/protocol.d.ts": typescript,
    "client_demo/web/machine/shapes.js": shapes,
    "client_demo/web/machine/constants.js": constants,
    "docs/reference/errors.md": errors_page,
}
"""What is generated, by its path in the repository."""


def _pretty(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"


def main(arguments: list[str]) -> int:
    """Runs with `--write` or `--check`; returns the exit status."""
    if arguments == ["--write"]:
        for path, make in ARTEFACTS.items():
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(make(), encoding="utf-8")
        return 0
    if arguments == ["--check"]:
        stale = [path for path, make in ARTEFACTS.items() if not _fresh(path, make())]
        for path in stale:
            sys.stderr.write(
                f"stale: {path}; run python -m protocol.generate --write\n"
            )
        return 1 if stale else 0
    sys.stderr.write("usage: python -m protocol.generate --write | --check\n")
    return 2


def _fresh(path: str, text: str) -> bool:
    file = ROOT / path
    return file.exists() and file.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
