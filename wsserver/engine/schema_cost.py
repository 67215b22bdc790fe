"""What it costs to check something against a JSON Schema, told before it is done.

Small schemas can ask for work without end: references that double at each level,
recursion with more than one way to go on, patterns that repeat repetitions. All of
it would be done on the event loop, so what costs too much is refused. Nothing is
validated here; that is for `wsserver.engine.schemas`.
"""

import re
from typing import Any, Final, cast
from urllib.parse import unquote

import msgspec

from wsserver.engine.pattern_cost import PatternCost

MAX_BYTES: Final = 65_536
MAX_DEPTH: Final = 64
MAX_NODES: Final = 5_000
"""Lists and objects in the schemas of one configuration, each `$ref` written out."""
MAX_PATTERNS: Final = 64
MAX_PATTERN_CHARACTERS: Final = 4_096
"""In all patterns together; how large one may become is for its compiler."""
MAX_STEPS: Final = 500_000
"""Keywords looked at in one check: some hundredths of a second."""
MAX_LOOKS: Final = 30_000
"""At a schema beside a value, to find out how many steps a check takes."""
MAX_PLAIN_STEPS: Final = 1_000_000
"""As above, where there is nothing but types: these are 15 ns each."""

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_DEPENDENT = ("dependentSchemas", "dependencies")
_TO_MEMBERS = ("additionalProperties", "unevaluatedProperties")
_TO_ELEMENTS = (
    "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"
)  # fmt: skip
_NO_SCHEMAS = frozenset(("const", "enum", "default", "examples"))
_DEFINITIONS = frozenset(("$defs", "definitions"))

_NOT_PLAIN = frozenset(
    (*_REFERENCES, "pattern", "patternProperties", "anyOf", "oneOf", "not", "if")
)

_encode = msgspec.json.Encoder().encode


_TOO_LARGE = "the schema is too large for a value of this size"


class TooCostlyError(ValueError):
    """A schema, or a check against one, that costs more than is allowed."""


def encoded_schema(schema: dict[str, Any]) -> bytes:
    """Returns a schema in JSON.

    Raises:
        TooCostlyError: It is nested too deep.
    """
    try:
        return _encode(schema)
    except (ValueError, RecursionError):
        raise TooCostlyError("it is nested too deep") from None


class Allowance:
    """What the schemas of one configuration may cost together."""

    def __init__(self) -> None:
        """Begins with all that is allowed."""
        self._patterns = MAX_PATTERNS
        self._characters = MAX_PATTERN_CHARACTERS
        self._nodes = MAX_NODES

    def take(self, schema: dict[str, Any]) -> "Survey":
        """Counts a schema; returns what was found out about it.

        Raises:
            TooCostlyError: It is too large, or leads out of itself.
        """
        size = len(encoded_schema(schema))
        if size > MAX_BYTES:
            raise TooCostlyError(f"it takes {size} bytes; {MAX_BYTES} are allowed")
        survey = Survey(schema)
        self._patterns -= len(survey.patterns)
        self._characters -= sum(map(len, survey.patterns))
        if self._patterns < 0 or self._characters < 0:
            raise TooCostlyError(
                f"there are too many patterns; {MAX_PATTERNS} with"
                f" {MAX_PATTERN_CHARACTERS} characters together are allowed"
            )
        self._nodes -= survey.written_out(schema)
        if self._nodes < 0:
            raise TooCostlyError(
                "it is too large when each `$ref` is written out;"
                f" {MAX_NODES} lists and objects are allowed in all schemas together"
            )
        return survey


class Survey:
    """A schema, gone through once: its patterns and where its references lead.

    Attributes:
        schema: It; nobody changes it.
        patterns: All that stand in it.
        plain: Whether there is nothing but types.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        """Goes through a schema.

        Raises:
            TooCostlyError: It is too deep, or leads out of itself.
        """
        self.schema = schema
        self.patterns: list[str] = []
        self.plain = True
        self._anchors: dict[str, Any] = {}
        self._sizes: dict[int, int] = {}
        self._searches: dict[str, PatternCost] = {}
        self._gather(schema, 0)

    def written_out(self, node: Any) -> int:
        """Returns how many lists and objects a schema has, references followed.

        What refers to itself is counted once.
        """
        if not isinstance(node, (dict, list)):
            return 0
        key = id(cast("object", node))
        known = self._sizes.get(key)
        if known is not None:
            return known
        self._sizes[key] = 0
        size = 1 + sum(map(self.written_out, self._parts(node)))
        self._sizes[key] = min(size, MAX_NODES + 1)
        return self._sizes[key]

    def search_steps(self, pattern: str, text: str) -> int:
        """Returns how many steps a search for a pattern may take."""
        cost = self._searches.get(pattern)
        if cost is None:
            cost = self._searches[pattern] = PatternCost(pattern)
        return cost.steps(len(text))

    def _gather(self, node: Any, depth: int) -> None:
        if not isinstance(node, (dict, list)):
            return
        if depth > MAX_DEPTH:
            raise TooCostlyError(f"it is nested more than {MAX_DEPTH} deep")
        if isinstance(node, dict):
            self._note(cast("dict[str, Any]", node), depth)
            parts = cast("dict[str, Any]", node).values()
        else:
            parts = cast("list[Any]", node)
        for part in parts:
            self._gather(part, depth + 1)

    def _note(self, node: dict[str, Any], depth: int) -> None:
        self.plain = self.plain and _NOT_PLAIN.isdisjoint(node)
        if isinstance(node.get("pattern"), str):
            self.patterns.append(node["pattern"])
        self.patterns.extend(_object(node.get("patternProperties")))
        for name in ("$anchor", "$dynamicAnchor"):
            anchor = node.get(name)
            if not isinstance(anchor, str):
                continue
            if self._anchors.setdefault(anchor, node) is not node:
                raise TooCostlyError(f"the anchor {anchor[:64]!r} stands twice")
        if depth and any(isinstance(node.get(name), str) for name in ("$id", "id")):
            raise TooCostlyError("only the whole of it may have an `$id`")
        for name in _REFERENCES:
            reference = node.get(name)
            if isinstance(reference, str) and not reference.startswith("#"):
                raise TooCostlyError(f"a `{name}` must begin with `#`")

    def _parts(self, node: Any) -> list[Any]:
        if isinstance(node, list):
            return cast("list[Any]", node)
        members = cast("dict[str, Any]", node)
        parts = [self.target(members.get(name)) for name in _REFERENCES]
        for name, member in members.items():
            if name not in _NO_SCHEMAS and name not in _DEFINITIONS:
                parts.append(member)
        return parts

    def target(self, reference: Any) -> Any:
        """Returns what a reference leads to; None where that is nothing."""
        if not isinstance(reference, str):
            return None
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            return self._anchors.get(pointer)
        node: Any = self.schema
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict):
                node = cast("dict[str, Any]", node).get(name)
            elif isinstance(node, list) and re.fullmatch("[0-9]{1,6}", name):
                node = dict(enumerate(cast("list[Any]", node))).get(int(name))
            else:
                return None
        return node


class _Count:
    """Counts the steps of one check."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._looks = 0
        self._steps: dict[tuple[int, int], int] = {}

    def steps(self, schema: Any, value: Any) -> int:
        """Returns the most keywords that a check of a value may look at.

        Raises:
            TooCostlyError: It takes too long to find out.
        """
        self._looks += 1
        if self._looks > MAX_LOOKS:
            raise TooCostlyError(_TOO_LARGE)
        if not isinstance(schema, dict):
            return 1
        node = cast("dict[str, Any]", schema)
        key = (id(node), id(value))
        known = self._steps.get(key)
        if known is not None:
            return known
        self._steps[key] = 0
        steps = 1 + len(node)
        for name in _REFERENCES:
            if name in node:
                steps += self.steps(self._survey.target(node[name]), value)
        for name in _IN_PLACE:
            steps += sum(self.steps(one, value) for one in _schemas(node.get(name)))
        match value:
            case str() if isinstance(node.get("pattern"), str):
                steps += self._survey.search_steps(node["pattern"], value)
            case dict():
                steps += self._member_steps(node, cast("dict[str, Any]", value))
            case list():
                inner = [s for name in _TO_ELEMENTS for s in _schemas(node.get(name))]
                elements = cast("list[Any]", value)
                steps += sum(self.steps(s, one) for s in inner for one in elements)
            case _:
                pass
        self._steps[key] = steps
        return steps

    def _member_steps(self, node: dict[str, Any], value: dict[str, Any]) -> int:
        steps = 0
        for name in _DEPENDENT:
            for dependent in _object(node.get(name)).values():
                steps += self.steps(dependent, value)
        named = _object(node.get("properties"))
        for name in named.keys() & value.keys():
            steps += self.steps(named[name], value[name])
        loose = [node[name] for name in _TO_MEMBERS if name in node]
        for pattern, one in _object(node.get("patternProperties")).items():
            steps += sum(self._survey.search_steps(pattern, name) for name in value)
            loose.append(one)
        for one in loose:
            steps += sum(self.steps(one, member) for member in value.values())
        if "propertyNames" in node:
            steps += sum(self.steps(node["propertyNames"], name) for name in value)
        return steps


def check_steps(survey: Survey, value: Any) -> None:
    """Refuses a check that may take too long.

    Raises:
        TooCostlyError: It may.
    """
    if survey.plain:
        most = MAX_PLAIN_STEPS // survey.written_out(survey.schema)
        if _values(value, most) <= most:
            return
    try:
        steps = _Count(survey).steps(survey.schema, value)
    except RecursionError:
        steps = MAX_STEPS + 1
    if steps > MAX_STEPS:
        raise TooCostlyError(_TOO_LARGE)


def _values(value: Any, enough: int) -> int:
    """Returns how many values stand in a value, or some number above `enough`."""
    level, count = [value], 0
    while level and count <= enough:
        count += len(level)
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner += cast("dict[str, Any]", one).values()
            elif isinstance(one, list):
                inner += cast("list[Any]", one)
        level = inner
    return count


def _schemas(member: Any) -> list[Any]:
    """Returns the schemas in a keyword that holds one or a list of them."""
    if isinstance(member, list):
        return cast("list[Any]", member)
    return [member] if isinstance(member, dict) else []


def _object(member: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", member) if isinstance(member, dict) else {}
