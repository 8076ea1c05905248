"""The keywords of JSON Schema about single values: types, numbers, sizes, allowed values."""

from __future__ import annotations

from math import isfinite
from typing import Any

from kdissect.payload.json_judge import OPEN, Answer, Check, JudgingRun, Misfit, identity
from kdissect.wording import plural

_NAMES = {str: "a string", bool: "a boolean", int: "an integer", float: "a number"}
_NAMES |= {list: "an array", dict: "an object", type(None): "null"}
_TYPES: dict[str, tuple[type, ...]] = {
    **{"string": (str,), "boolean": (bool,), "number": (int, float), "null": (type(None),)},
    **{"array": (list,), "object": (dict,), "integer": (int,)},
}


def _type(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    names = said if isinstance(said, list) else [said]
    kind, answer = type(value), None
    for name in names:
        types = _TYPES.get(name) if isinstance(name, str) else None
        if types is None:
            answer = OPEN
        elif kind in types:
            return None
        elif name == "integer" and kind is float and (value.is_integer() or not isfinite(value)):
            # 1.0 is an integer since draft 6.
            if run.draft > 4 and isfinite(value):
                return None
            answer = OPEN
    if answer is not None:
        return answer
    wanted = " or ".join(each for name in _TYPES if name in names for each in (_wanted(name),))
    return Misfit(f"{_NAMES[kind]} where {wanted} is needed")


def _wanted(name: str) -> str:
    return name if name == "null" else f"an {name}" if name[0] in "aio" else f"a {name}"


def _enum(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if not isinstance(said, frozenset):
        return OPEN
    if identity(value) in said:
        return None
    return Misfit(f"not one of the {plural(len(said), 'value')} that are allowed")


def _const(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if run.draft < 6 or identity(value) == said:
        return None
    return Misfit("not the value that is needed")


# -- numbers ----------------------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _minimum(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if not is_number(value):
        return None
    if not is_number(said):
        return OPEN
    if run.draft == 4 and schema.get("exclusiveMinimum") is True and value == said:
        return Misfit(f"not more than {said}")
    return Misfit(f"less than {said}") if value < said else None


def _maximum(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if not is_number(value):
        return None
    if not is_number(said):
        return OPEN
    if run.draft == 4 and schema.get("exclusiveMaximum") is True and value == said:
        return Misfit(f"not less than {said}")
    return Misfit(f"more than {said}") if value > said else None


def _above(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if run.draft == 4 or not is_number(value):
        return None
    if not is_number(said):
        return OPEN
    return Misfit(f"not more than {said}") if value <= said else None


def _below(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if run.draft == 4 or not is_number(value):
        return None
    if not is_number(said):
        return OPEN
    return Misfit(f"not less than {said}") if value >= said else None


def _multiple(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if not is_number(value):
        return None
    if not is_number(said) or said <= 0 or not isfinite(value) or not isfinite(said):
        return OPEN
    if isinstance(value, int) and isinstance(said, int):
        fits = value % said == 0
    else:  # compare decimal digits: 0.3 is a multiple of 0.1
        from fractions import Fraction  # it imports decimal, which would slow down every start

        fits = (Fraction(str(value)) / Fraction(str(said))).denominator == 1
    return None if fits else Misfit(f"not a multiple of {said}")


# -- sizes ------------------------------------------------------------------------------------------


def _size(kind: type, unit: str, is_least: bool) -> Check:
    def check(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
        if not isinstance(value, kind):
            return None
        if not is_number(said):
            return OPEN
        size = len(value)  # type: ignore[arg-type]
        if size < said if is_least else size > said:
            return Misfit(f"{plural(size, unit)}, and {said} are the {'least' if is_least else 'most'}")
        return None

    return check


SCALARS: dict[str, Check] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minimum": _minimum,
    "maximum": _maximum,
    "exclusiveMinimum": _above,
    "exclusiveMaximum": _below,
    "multipleOf": _multiple,
    "minLength": _size(str, "character", True),
    "maxLength": _size(str, "character", False),
    "minItems": _size(list, "element", True),
    "maxItems": _size(list, "element", False),
    "minProperties": _size(dict, "member", True),
    "maxProperties": _size(dict, "member", False),
}
