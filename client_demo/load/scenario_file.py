"""Reads scenarios: a path, or the name of one that is shipped.

What is wrong with a file is said with its path in the file and the remedy.
"""

import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from client_demo.load.durations import Exponential, Normal, Uniform
from client_demo.load.rules import ScenarioError, check, every_step
from client_demo.load.scenario import (
    Group,
    Plan,
    Prompt,
    PromptSet,
    Scenario,
    Stage,
)
from client_demo.load.steps import AnyStep, SendStep

SHIPPED = Path(__file__).parent / "scenarios"
PROMPTS = Path(__file__).parent / "prompts"

_Kind = TypeVar("_Kind", Scenario, PromptSet)
_STEPS: dict[str, type[Struct]] = {
    str(kind.__struct_config__.tag): kind for kind in AnyStep.__args__
}
_DISTRIBUTIONS: dict[str, type[Struct]] = {
    str(kind.__struct_config__.tag): kind for kind in (Uniform, Exponential, Normal)
}
_LISTED: dict[str, type[Struct]] = {
    "groups": Group, "stages": Stage, "prompts": Prompt,
}  # fmt: skip
_PATH = re.compile(r"\.(\w+)|\[(\d+)\]")


def shipped() -> list[str]:
    """Returns the names of the scenarios that come with this program."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def read(name: str) -> Plan:
    """Reads a scenario and its prompts, and checks all of it.

    Args:
        name: A path, or the name of a shipped scenario.

    Raises:
        ScenarioError: There is none, or it can't be run.
    """
    path = _find(name)
    scenario = _load(path, Scenario)
    steps = [step for group in scenario.groups for step in every_step(group.steps)]
    names = {step.prompts for step in steps if isinstance(step, SendStep)} - {None}
    plan = Plan(
        scenario=scenario,
        prompts={name: _prompts(name, path.parent) for name in names if name},
    )
    try:
        check(plan)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None
    return plan


def _find(name: str) -> Path:
    if name in shipped():
        return SHIPPED / f"{name}.toml"
    path = Path(name)
    if path.is_file():
        return path
    raise ScenarioError(
        f"there is no file {name!r}, nor a shipped scenario of that name; shipped are"
        f" {', '.join(shipped())}"
    )


def _prompts(name: str, beside: Path) -> PromptSet:
    for folder in (beside / "prompts", PROMPTS):
        path = folder / f"{name}.toml"
        if path.is_file():
            return _load(path, PromptSet)
    raise ScenarioError(
        f"there are no prompts {name!r}: neither {beside / 'prompts' / name}.toml nor"
        f" {PROMPTS / name}.toml is there"
    )


def _load(path: Path, kind: type[_Kind]) -> _Kind:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: can't be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path}: is no TOML: {error}") from None
    except RecursionError:
        raise ScenarioError(f"{path}: is no TOML: it is nested too deep") from None
    except ValueError:
        raise ScenarioError(f"{path}: is no TOML: an integer is too long") from None
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at `")
        exact = place.rstrip("`") or "$"
        remedy = _remedy(said, exact, _value_at(document, exact), kind)
        raise ScenarioError(f"{path}: {exact}: {said}{remedy}") from None


def _value_at(document: Any, path: str) -> object:
    here = document
    for key, place in _PATH.findall(path):
        here = here[key] if key else here[int(place)]
    return here


def _remedy(said: str, exact: str, here: object, root: type[Struct]) -> str:
    """Says what would be right, where the message alone does not."""
    unknown = re.search(r"unknown field `(\w+)`", said)
    if unknown is not None:
        known = _known_fields(exact, here, root)
        return "; known here: " + ", ".join(known) + _meant(unknown.group(1), known)
    missing = re.search(r"missing required field `(\w+)`", said)
    if missing is not None:
        return f"; add `{missing.group(1)} = …`" + (
            f", one of {', '.join(_STEPS)}" if missing.group(1) == "do" else ""
        )
    for name, known in (("do", _STEPS), ("distribution", _DISTRIBUTIONS)):
        if exact.endswith(f".{name}"):
            return "; one of " + ", ".join(known) + _meant(str(here), list(known))
    return ""


def _known_fields(exact: str, here: object, root: type[Struct]) -> list[str]:
    if isinstance(here, dict):
        members = cast("dict[str, object]", here)
        for name, kinds in (("do", _STEPS), ("distribution", _DISTRIBUTIONS)):
            kind = kinds.get(str(members.get(name)))
            if kind is not None:
                return [name, *kind.__struct_fields__]
    kind = _LISTED.get(re.sub(r"^.*\.|\[\d+\]$", "", exact), root)
    return list(kind.__struct_fields__)


def _meant(wrong: str, known: list[str]) -> str:
    close = get_close_matches(wrong, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
