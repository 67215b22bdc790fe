"""Whether a value fits a JSON Schema that a client gave.

Nothing is ever fetched: a `$ref` leads inside the schema or nowhere. What
would take too long is refused (`wsserver.engine.schema_cost`).
"""

from typing import Any, Final

import jsonschema_rs

from protocol.frame_error import shortened
from wsserver.engine.pattern_cost import BACKTRACKS, COMPILED_BYTES
from wsserver.engine.schema_cache import Ready, SchemaCache
from wsserver.engine.schema_cost import Allowance, check_steps, encoded_schema

_PATTERNS: Final = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=BACKTRACKS, size_limit=COMPILED_BYTES
)
_MESSAGE_CHARACTERS = 500

_cache: Final = SchemaCache()

_DRAFTS: Final = frozenset(
    f"{scheme}://json-schema.org/{draft}/schema{end}"
    for scheme in ("http", "https")
    for draft in (
        "draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"
    )
    for end in ("", "#")
)  # fmt: skip


def schema_fault(
    schema: dict[str, Any], allowance: Allowance | None = None
) -> str | None:
    """Says why something is no schema, or too costly a one; None when it is fine.

    Args:
        schema: What a client gave.
        allowance: What it may cost together with others; None when it is alone.
    """
    try:
        (allowance or Allowance()).take(schema)
        _validator(schema)
    except ValueError as error:
        return _said(error)
    return None


def schema_error(schema: dict[str, Any]) -> str | None:
    """Says why something is no schema; None where it is, however costly to check."""
    if schema.get("$schema") not in _DRAFTS:
        # One that is not known would be fetched.
        schema = {name: value for name, value in schema.items() if name != "$schema"}
    try:
        jsonschema_rs.meta.validate(schema)
    except jsonschema_rs.ValidationError as error:
        return f"{_path(error)}: {_said(error)}"
    return None


def misfit(schema: dict[str, Any], value: Any) -> str | None:
    """Says how a value does not fit the schema; None when it does.

    An invalid schema accepts everything, and so does one that is too costly to take. A
    value that would take too long to check fits nothing.

    Args:
        schema: What a client gave; nobody changes it.
        value: What is to fit.
    """
    try:
        ready = _made_ready(schema)
    except ValueError:
        return None
    try:
        check_steps(ready.survey, value)
        ready.validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        return f"{_path(error)}: {_said(error)}"
    except ValueError as error:
        return _said(error)
    return None


def _made_ready(schema: dict[str, Any]) -> Ready:
    key = encoded_schema(schema)
    ready = _cache.get(key)
    if ready is None:
        survey = Allowance().take(schema)
        ready = Ready(survey=survey, validator=_validator(schema))
        _cache.keep(key, ready)
    return ready


def _validator(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(schema, offline=True, pattern_options=_PATTERNS)


def _path(error: jsonschema_rs.ValidationError) -> str:
    path = "$" + "".join(f"[{step!r}]" for step in error.instance_path)
    return shortened(path)


def _said(error: ValueError) -> str:
    text = error.message if isinstance(error, jsonschema_rs.ValidationError) else ""
    return (text or str(error))[:_MESSAGE_CHARACTERS]
