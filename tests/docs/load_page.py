"""Writes the reference of load scenarios: `python -m tests.docs.load_page`."""

import inspect
import re
import types
import typing
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import msgspec
from msgspec import UNSET, Struct

from client_demo.load.durations import Exponential, Normal, Uniform
from client_demo.load.figures import COUNTED, FIELDS, MEASURES, RATES, TOTALS
from client_demo.load.report import Report, Round, Times
from client_demo.load.rules import EVENT_TYPES
from client_demo.load.scenario import Group, Prompt, PromptSet, Scenario, Stage
from client_demo.load.series import Bucket, Series
from client_demo.load.steps import AnyStep
from client_demo.load.tally import PromptTime
from client_demo.load.thresholds import Judged
from client_demo.load.violations import KINDS, Violation

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "load-scenarios.md"

_HEAD = """\
# Load scenarios

<!-- Made by `python -m tests.docs.load_page` from client_demo/load; do not edit. -->

The format of the files that `python -m client_demo load` runs, the names of all figures, and the form of
the report. [Test under load](../how-to/load-test.md) has recipes. A file is TOML; a key that is not known,
a value of a wrong type and steps that can't follow each other are refused with their path and the remedy
(`load --check FILE` only checks).
"""
_EXIT = """
## Exit codes

| code | |
|---|---|
| 0 | Every threshold held, and the oracle found nothing. |
| 1 | A threshold is broken, nobody could ask anything (a model that is not there), or the run could not be made (no server, refused credentials). |
| 2 | Wrong usage, as a flag that says what the scenario says itself, or a scenario that can't be run. |
| 3 | The oracle found a violation of the protocol, whatever the thresholds say. |
"""
_TOOLS = """
Tools are as in the protocol's `config.tools`: `name`, `description`, `parameters`, `timeout_s`.
"""
_STEPS = """
## Steps

Each step is a table with `do`, its name.
"""
_TIMES = """
## Times

Where a time is asked for, a number of seconds, or a table with `distribution`, which is drawn anew each
time:
"""
_ORACLE = """
## The oracle

What it finds, by `violations.KIND`:

"""
_WRITTEN = """
## The report

The JSON of `--json FILE`. Members may be added; `format` rises when one changes its meaning.
"""
_REPORT = (
    Report, Round, Times, Series, Bucket, Judged, Violation, PromptTime,
)  # fmt: skip


def page() -> str:
    """Returns the page as it has to be."""
    steps = [_section(f"`{_tag(kind)}`", kind, 3) for kind in AnyStep.__args__]
    times = [
        _section(f"`{_tag(kind)}`", kind, 3) for kind in (Uniform, Exponential, Normal)
    ]
    written = [_section(f"`{kind.__name__}`", kind, 3, read=False) for kind in _REPORT]
    events = ", ".join(f"`{name}`" for name in sorted(EVENT_TYPES))
    parts = [
        _HEAD,
        _section("The file", Scenario),
        _section("`[[stages]]`", Stage),
        _section("`[[groups]]`", Group),
        _TOOLS,
        _STEPS,
        *steps,
        f"\nTypes of events for `wait_for`: {events}.\n",
        _TIMES,
        *times,
        _section("Prompts", PromptSet),
        _section("`[[prompts]]`", Prompt, 3),
        _thresholds(),
        _EXIT,
        _ORACLE,
        _rows("kind", KINDS),
        _WRITTEN,
        *written,
    ]
    return "".join(parts)


def _thresholds() -> str:
    measures = {f"{name}_ms.FIELD": text for name, text in MEASURES.items()}
    counted = {
        f"{name}.{'KIND' if name == 'violations' else 'CODE'}": text
        for name, text in COUNTED.items()
    }
    return (
        "\n## Thresholds\n\n`NAME OPERATOR NUMBER`, as in `ttft_ms.p99 < 500`; the"
        " operators are `<`, `<=`, `>`, `>=`, `==` and `!=`. Times are in ms, and FIELD"
        f" is one of {', '.join(f'`{field}`' for field in FIELDS)} (`p999` is the"
        " 99.9th percentile). A figure that was not measured breaks its threshold; one"
        " that is counted by code is 0.\n\n"
        + _rows("figure", measures | RATES | TOTALS | counted)
    )


def _rows(head: str, texts: typing.Mapping[str, str]) -> str:
    rows = "".join(f"| `{name}` | {text} |\n" for name, text in texts.items())
    return f"| {head} | |\n|---|---|\n{rows}"


def _section(
    title: str, kind: type[Struct], level: int = 2, *, read: bool = True
) -> str:
    """Makes a section of a Struct.

    Args:
        title: Its heading.
        kind: What it is about.
        level: Of the heading.
        read: It is read, so that its keys have defaults.
    """
    text, _, listed = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")
    said = "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", listed, re.MULTILINE)
    meanings = {key: " ".join(meaning.split()) for key, meaning in found}
    fields = msgspec.structs.fields(kind)
    assert meanings.keys() == {field.name for field in fields}, kind
    section = f"\n{'#' * level} {title}\n\n{said}\n"
    if not fields:
        return section
    rows = [
        f"| `{field.encode_name}` | {_type(field.type)} |"
        + (f" {_default(field)} |" if read else "")
        + f" {meanings[field.name]} |\n"
        for field in fields
    ]
    head = "| key | | default | |\n|---|---|---|---|\n"
    if not read:
        head = "| key | | |\n|---|---|---|\n"
    return f"{section}\n{head}{''.join(rows)}"


_NAMES: dict[Any, str] = {
    str: "text", int: "whole number", float: "number", bool: "true or false",
    list: "list", dict: "table", tuple: "pair",
}  # fmt: skip


def _type(kind: Any) -> str:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _type(arguments[0])
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin in (Union, types.UnionType):
        if Uniform in arguments:
            return "time"
        kinds = [one for one in arguments if one is not type(None)]
        return " or ".join(dict.fromkeys(map(_type, kinds)))
    if isinstance(kind, type) and issubclass(kind, Struct):
        return "table"
    return _NAMES.get(origin or kind, "anything")


def _default(field: Any) -> str:
    value = field.default
    if field.required:
        return "needed"
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    if value in (None, "", [], UNSET):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float | int) else f'`"{value}"`'


def _tag(kind: type[Struct]) -> str:
    return str(kind.__struct_config__.tag)


if __name__ == "__main__":
    PAGE.write_text(page())
