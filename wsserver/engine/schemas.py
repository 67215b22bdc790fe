"""Whether a value fits a JSON Schema that a client gave.

Nothing is ever fetched: a `$ref` leads inside the schema or nowhere. Patterns may
only look back so far.
"""

from typing import Any, Final

import jsonschema_rs

_PATTERNS: Final = jsonschema_rs.FancyRegexOptions(backtrack_limit=100_000)
_MESSAGE_CHARACTERS = 500


def schema_fault(schema: dict[str, Any]) -> str | None:
    """Says why something is no schema; None when it is one."""
    try:
        _validator(schema)
    except ValueError as error:
        return _said(error)
    return None


def misfit(schema: dict[str, Any], value: Any) -> str | None:
    """Says how a value does not fit the schema; None when it does.

    What is no schema is fit by everything.
    """
    try:
        validator = _validator(schema)
    except ValueError:
        return None
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        path = "".join(f"[{step!r}]" for step in error.instance_path)
        return f"${path}: {_said(error)}"
    except ValueError as error:
        return _said(error)
    return None


def _validator(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(schema, offline=True, pattern_options=_PATTERNS)


def _said(error: ValueError) -> str:
    text = error.message if isinstance(error, jsonschema_rs.ValidationError) else ""
    return (text or str(error))[:_MESSAGE_CHARACTERS]
