"""Where settings come from: defaults, a TOML file, `WSSERVER_*` variables, flags.

The later source wins. Every fault is one line that names the setting, where its
value came from, and what to do.

What values have to fulfil together is `wsserver.settings.checks`.

msgspec validates here too, rather than pydantic-settings: that would make the start
of the server a sixth longer, and what this module is for, blaming the right source,
would still have to be written.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct, inspect

from wsserver.engine.json_values import misfit
from wsserver.engine.param_bounds import ANSWER_TOKENS
from wsserver.engine.secrets import HIDDEN, without_userinfo
from wsserver.settings.checks import check_together, warnings_together
from wsserver.settings.error import SettingsError
from wsserver.settings.values import SECRETS, TABLES, Settings
from wsserver.small_files import read_small

PREFIX = "WSSERVER_"
CONFIG_VARIABLE = "WSSERVER_CONFIG"
FIELDS = {field.name: field for field in msgspec.structs.fields(Settings)}

_CLIENT_VARIABLES = {"WSSERVER_URL", "WSSERVER_TOKEN"}
_FOREIGN_VARIABLES = {
    "OPENAI_API_KEY": "openai_api_key",
    "OPENAI_BASE_URL": "openai_base_url",
}
_EACH_NUMBER = "write a number from 0"
_TYPES = re.compile("`([^`]+)`")
_IN_TOML = {
    "array": "a list",
    "bool": "true or false",
    "date": "a date",
    "datetime": "a date and time",
    "float": "a number",
    "int": "a whole number",
    "object": "a table",
    "str": "text",
    "time": "a time",
}
_SHOWN = 64  # characters of a value that can't be used
DEFAULT = "default"
"""The origin of a value that nobody gave."""


class Loaded(Struct, frozen=True, kw_only=True):
    """Settings and how they came about.

    Attributes:
        settings: The settings.
        origins: For each setting, where its value came from.
        warnings: What looks like a mistake, but stops nothing.
    """

    settings: Settings
    origins: dict[str, str]
    warnings: tuple[str, ...] = ()


class _Found(Struct, frozen=True):
    value: Any
    origin: str
    typed: bool = False  # in the file, where all else is text


def load(
    *,
    flags: Mapping[str, str],
    environ: Mapping[str, str],
    config: Path | None = None,
) -> Loaded:
    """Returns the settings of all sources together.

    Args:
        flags: What was given on the command line, by the settings' names.
        environ: The environment.
        config: The TOML file; None for what `WSSERVER_CONFIG` says, if anything.

    Raises:
        SettingsError: Values can't be used, or names are unknown: all of them.
    """
    faults: list[SettingsError] = []
    if config is None and environ.get(CONFIG_VARIABLE):
        config = Path(environ[CONFIG_VARIABLE])
    found = dict[str, _Found]()
    if config is not None:
        found |= _from_file(config, faults)
    found |= _from_environment(environ)
    found |= {
        name: _Found(value, f"--{name.replace('_', '-')}")
        for name, value in flags.items()
    }
    values: dict[str, Any] = {}
    for name, each in found.items():
        try:
            values[name] = _convert(name, each)
        except SettingsError as error:
            faults.append(error)
    if faults:
        raise SettingsError(*map(str, faults))
    settings = Settings(**values)
    origins = {
        name: found[name].origin if name in found else DEFAULT for name in FIELDS
    }
    check_together(settings, origins)
    return Loaded(
        settings=settings,
        origins=origins,
        warnings=(*_unknown_variables(environ), *warnings_together(settings)),
    )


def as_written(value: object) -> str:
    """Returns a value of a setting as somebody would write it."""
    match value:
        case float():
            return f"{value:.16g}"
        case tuple():
            return ",".join(cast("tuple[str, ...]", value))
        case _:
            return str(value)


def _from_file(path: Path, faults: list[SettingsError]) -> dict[str, _Found]:
    try:
        # Some editors begin UTF-8 with a byte order mark, which TOML has not.
        table = tomllib.loads(read_small(path).decode("utf-8-sig"))
    except OSError as error:
        raise SettingsError(
            f"config: {path}: {error.strerror}; name a file that can be read with"
            f" --config or {CONFIG_VARIABLE}"
        ) from None
    except UnicodeDecodeError:
        raise SettingsError(
            f"config: {path}: the file is not UTF-8; save it as such"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(
            f"config: {path}: not valid TOML: {error}; correct it there"
        ) from None
    except (ValueError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        why = "it is nested too deep" if deep else "an integer is too long"
        raise SettingsError(
            f"config: {path}: not valid TOML: {why}; correct it there"
        ) from None
    found: dict[str, _Found] = {}
    for name, value in table.items():
        if name not in FIELDS:
            fault = f"{name}: unknown setting in {path}; {_suggestion(name, FIELDS)}"
            faults.append(SettingsError(fault))
        elif name in SECRETS:
            fault = f"{name}: {path} may hold no secret; set {name.upper()} instead"
            faults.append(SettingsError(fault))
        elif (wrong := misfit(value)) is not None:
            where, what = f"{name}{wrong.path}", f"{wrong.what} in {path}"
            fault = f"{where}: {what}; {wrong.remedy}"
            faults.append(SettingsError(fault))
        else:
            found[name] = _Found(value, f"{path}: {name}", typed=True)
    return found


def _from_environment(environ: Mapping[str, str]) -> dict[str, _Found]:
    found = {
        name: _Found(environ[variable], variable)
        for variable, name in _FOREIGN_VARIABLES.items()
        if environ.get(variable)
    }
    for name in FIELDS:
        variable = PREFIX + name.upper()
        if variable not in environ or name in SECRETS:
            continue
        if name in TABLES:
            raise SettingsError(f"{name}: {variable} can't hold it; use a file")
        found[name] = _Found(environ[variable], variable)
    return found


def _unknown_variables(environ: Mapping[str, str]) -> Iterable[str]:
    known = {PREFIX + name.upper() for name in FIELDS.keys() - SECRETS}
    known |= {CONFIG_VARIABLE} | _CLIENT_VARIABLES
    for variable in sorted(environ):
        if variable.startswith(PREFIX) and variable not in known:
            own = variable.removeprefix(PREFIX)
            near = {own} if own in _FOREIGN_VARIABLES else known
            yield f"{variable}: no such setting; {_suggestion(variable, near)}"


def _suggestion(
    name: str, known: Iterable[str], otherwise: str = "`wsserver config show` lists all"
) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}?" if near else otherwise


def _convert(name: str, found: _Found) -> Any:
    kind = FIELDS[name].type
    value = found.value
    if isinstance(value, str) and "\0" in value:
        raise SettingsError(f"{name}: there is a zero byte in it; take it out")
    if value == "none":
        value = None
    elif isinstance(FIELDS[name].default, tuple) and not found.typed:
        value = [part.strip() for part in value.split(",") if part.strip()]
    in_tables = name in TABLES and isinstance(value, dict)
    try:
        return msgspec.convert(value, kind, strict=found.typed)
    except msgspec.ValidationError:
        if in_tables:
            tables = cast("dict[str, object]", value)
            raise SettingsError(_table_fault(name, tables, found.origin)) from None
        expected = _expectation(inspect.type_info(kind))
        if found.typed and isinstance(value, str) and _is_quoted(value, kind):
            expected += ", without quotes"
        shown = HIDDEN if name in SECRETS else found.value
        if name.endswith("_url"):
            shown = without_userinfo(str(shown))
        raise SettingsError(
            f"{name}: {_beginning(shown)} from {found.origin} can't be used; expected {expected}"
        ) from None


def _is_quoted(value: str, kind: object) -> bool:
    """Whether a text says what would fit."""
    try:
        msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        return False
    return True


def _beginning(value: object) -> str:
    """Returns how a value is told: without what tables hold, which may be secret."""
    told = repr(value)
    if isinstance(value, bool):
        return told.lower()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        elements = cast("list[object]", value)
        if any(isinstance(each, dict | list) for each in elements):
            return "a list of tables or lists"
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
    return told if len(told) <= _SHOWN else f"{told[:_SHOWN]}…"


def _table_fault(name: str, tables: Mapping[str, object], origin: str) -> str:
    """Says which entry of a table can't be used, and where in it."""
    kind = FIELDS[name].type
    for key, entry in tables.items():
        try:
            msgspec.convert({key: entry}, kind)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at `$[...]")
            what = what.removeprefix("Object ")
            path = origin.removesuffix(f": {name}")
            where, unnamed, _ = where.rstrip("`").partition("[...]")
            members = _members(inspect.type_info(kind))
            wanted = members.get(where.removeprefix(".").partition("[")[0])
            if wanted is not None:
                remedy = f"write {_expectation(wanted).removesuffix(' or none')}"
            elif members:
                remedy = _unknown_member(name, what, members)
            else:
                remedy = _EACH_NUMBER
            if unnamed:
                table = cast("dict[str, dict[str, object]]", entry)[where[1:]]
                where += f".{_first_wrong(where[1:], table, entry, kind)}"
                remedy = "write text" if "Expected `str`" in what else _EACH_NUMBER
            if what.startswith("Expected"):
                what = _TYPES.sub(_in_toml, what)
            return f"{name}.{key}{where}: {what} in {path}; {remedy}"
    raise AssertionError("an entry is wrong where the table is")


def _in_toml(types: re.Match[str]) -> str:
    """Says in TOML's words what msgspec calls by Python's."""
    names = [name for name in types[1].split(" | ") if name != "null"]
    words = [_IN_TOML.get(name, name) for name in names]
    return " or ".join(words).replace("a whole number or a number", "a number")


def _unknown_member(name: str, what: str, members: Iterable[str]) -> str:
    """Says what an entry may have, or which of that was meant by what it has."""
    known = list(members)
    remedy = f"[{name}.NAME] may have {', '.join(known)}"
    if "params" in known:
        known += [f"params.{each}" for each in ANSWER_TOKENS]
        remedy += "; members of the request go into its `params`"
    _, _, misspelt = what.partition("unknown field `")
    return _suggestion(misspelt.rstrip("`"), known, remedy)


def _first_wrong(
    member: str, table: Mapping[str, object], entry: object, kind: object
) -> str:
    """Says what msgspec does not: which name of a table in an entry it is about."""
    others = cast("dict[str, object]", entry)
    for name, value in table.items():
        try:
            msgspec.convert({"a": {**others, member: {name: value}}}, kind)
        except msgspec.ValidationError:
            return name
    raise AssertionError("one of them is wrong where the table is")


def _members(kind: inspect.Type) -> dict[str, inspect.Type]:
    """Returns what the entries of a table may have; nothing where they are numbers."""
    match kind:
        case inspect.Metadata(type=inner):
            return _members(inner)
        case inspect.DictType(value_type=inspect.StructType(fields=fields)):
            return {field.encode_name: field.type for field in fields}
        case _:
            return {}


def _expectation(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata(extra_json_schema={"title": str(title)}):
            text = title
        case inspect.Metadata(type=inner):
            text = _expectation(inner)
        case inspect.IntType() | inspect.FloatType():
            text = _number(kind)
        case inspect.LiteralType(values=values):
            text = " or ".join(map(str, values))
        case inspect.UnionType(types=types):
            options = [t for t in types if not isinstance(t, inspect.NoneType)]
            text = " or ".join([_expectation(option) for option in options] + ["none"])
        case inspect.BoolType():
            text = "true or false"
        case inspect.DictType(value_type=value):
            text = f"a table{_contents(value)}"
        case inspect.VarTupleType(item_type=item):
            text = f"a list, each {_expectation(item)}"
        case inspect.StrType(pattern=str(pattern)):
            text = f"text that fits {pattern}"
        case _:
            text = "text"
    return text


def _number(kind: inspect.IntType | inspect.FloatType) -> str:
    text = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
    text += "" if kind.ge is None else f" from {as_written(kind.ge)}"
    text += "" if kind.gt is None else f" above {as_written(kind.gt)}"
    return text if kind.le is None else f"{text} to {as_written(kind.le)}"


def _contents(value: inspect.Type) -> str:
    match value:
        case inspect.StructType():
            return " of tables"
        case inspect.AnyType():
            return ""
        case inspect.StrType():
            return " of text"
        case _:
            return " of numbers"
