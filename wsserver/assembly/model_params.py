"""From the settings of a model to its request members: what is sent, what clients may set."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from msgspec import structs

from wsserver.engine.json_values import misfit
from wsserver.engine.param_bounds import (
    ANSWER_TOKENS,
    Number,
    ParamBounds,
    spelt_out,
)
from wsserver.providers.chat.request import is_own
from wsserver.settings import Model, Settings, SettingsError

_GENERAL = "params_max"

ANY_MEMBER = "*"
"""In a list, what stands for any member."""


def model_params(name: str, model: Model) -> dict[str, Any]:
    """Returns the members that each request to a model has.

    Raises:
        SettingsError: One of them can't be sent.
    """
    where = f"models.{name}.params"
    _check_names(where, model.params)
    for member, value in model.params.items():
        wrong = misfit(value)
        if wrong is not None:
            raise SettingsError(
                f"{where}.{member}{wrong.path}: {wrong.what}; {wrong.remedy}"
            )
        if not _is_json(value):
            raise SettingsError(
                f"{where}.{member}: JSON has no dates and no infinity; write another"
                " value"
            )
    return model.params


def general_bounds(settings: Settings) -> ParamBounds:
    """Returns what clients may set of models that do not say so themselves.

    Raises:
        SettingsError: Nothing can be meant by it.
    """
    return _bounds("", settings.params_allowed, settings.params_max)


def model_bounds(name: str, model: Model, general: ParamBounds) -> ParamBounds:
    """Returns what clients may set of a model.

    Args:
        name: What clients call it.
        model: Its settings.
        general: What holds where it says nothing.

    Raises:
        SettingsError: Nothing can be meant by it, or its own `params` are beyond it.
    """
    where = f"models.{name}."
    own = _bounds(where, model.params_allowed or (), model.params_max or {})
    bounds = ParamBounds(
        allowed=general.allowed if model.params_allowed is None else own.allowed,
        most=general.most if model.params_max is None else own.most,
    )
    which = _GENERAL if model.params_max is None else f"{where}params_max"
    _check_own(where, model.params, bounds, which)
    return bounds


def program_bounds(
    name: str, params: Mapping[str, Any], own: ParamBounds | None, general: ParamBounds
) -> ParamBounds:
    """Returns what clients may set of a model that a program brings.

    Args:
        name: What clients call it.
        params: The members that each of its requests has.
        own: What the program says; None for nothing.
        general: What holds where it says nothing.

    Raises:
        SettingsError: The members are beyond it.
    """
    bounds, which = (general, _GENERAL) if own is None else (own, "its bound")
    _check_own(f"models.{name}.", params, bounds, which)
    return bounds


def _check_own(
    where: str, params: Mapping[str, Any], bounds: ParamBounds, which: str
) -> None:
    for steps, most in bounds.beyond(params):
        raise SettingsError(
            f"{where}params.{spelt_out(steps)}: {which} takes a number from 0 to {most} only;"
            " correct the one or the other"
        )


def _bounds(
    where: str, allowed: tuple[str, ...], most: Mapping[str, Number]
) -> ParamBounds:
    _check_names(f"{where}params_allowed", allowed)
    _check_names(f"{where}params_max", most)
    named = _made(f"{where}params_allowed", allowed=frozenset(allowed))
    bounds = _made(f"{where}params_max", most=most)
    whole = {
        name: _whole(f"{where}params_max.{name}", most[name])
        for name in ANSWER_TOKENS
        if name in most
    }
    return structs.replace(
        bounds,
        allowed=None if ANY_MEMBER in allowed else named.allowed,
        most={**most, **whole},
    )


def _made(where: str, **members: Any) -> ParamBounds:
    try:
        return ParamBounds(**members)
    except ValueError as error:
        raise SettingsError(f"{where}.{error}") from None


def _whole(where: str, most: Number) -> int:
    # Sent as it is, and many upstreams refuse 1000.0 tokens.
    if most != int(most):
        raise SettingsError(
            f"{where}: {most} is no number of tokens; write a whole one"
        )
    return int(most)


def _check_names(where: str, members: Iterable[str]) -> None:
    for member in members:
        if is_own(member):
            raise SettingsError(
                f"{where}.{member}: the server says this itself; leave it out"
            )


def _is_json(value: object) -> bool:
    try:
        encoded = orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except orjson.JSONEncodeError:
        return False
    return bool(orjson.loads(encoded) == value)
