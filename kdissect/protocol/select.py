"""Pick all fields of one kind out of decoded values: topic names, error codes, record sets …

The wanted fields are given once per struct, as a predicate over its fields. :func:`selection` compiles it to
a path plan (nested tuples) that visits only the branches with such fields. :func:`pick` walks values with the
plan. The order is that of the definition, which for untagged fields is the order on the wire.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdissect.protocol.schema import Field, Struct

Selection = tuple[tuple[str, bool, "Selection | None"], ...]
"""For each branch: the field's name, whether the field itself is wanted, and the selection inside it."""

Picked = tuple[str, Any, tuple[dict[str, Any], ...]]
"""A field's name, its value, and the structs around it, outermost first."""


def selection(struct: Struct, wanted: Callable[[Field], bool]) -> Selection:
    """The branches of ``struct`` that lead to fields that are ``wanted``."""
    out = []
    for field in struct.fields:
        inner = selection(field.struct, wanted) if field.struct is not None else ()
        if wanted(field) or inner:
            out.append((field.name, wanted(field), inner or None))
    return tuple(out)


def pick(plan: Selection, values: dict[str, Any]) -> list[Picked]:
    """Every wanted field that ``values`` has, in order."""
    out: list[Picked] = []
    _pick(plan, values, (values,), out)
    return out


def first_true(plan: Selection, values: dict[str, Any]) -> Any:
    """The first wanted value that is neither null nor 0 nor empty; None if there is no such value."""
    for name, wanted, inner in plan:
        value = values.get(name)
        if not value:
            continue
        if wanted:
            return value
        if inner is None:
            continue
        for element in value if isinstance(value, list) else (value,):
            if isinstance(element, dict):
                found = first_true(inner, element)
                if found is not None:
                    return found
    return None


def _pick(
    plan: Selection, values: dict[str, Any], ancestors: tuple[dict[str, Any], ...], out: list[Picked]
) -> None:
    """:param ancestors: the structs down to ``values``, which is the last."""
    for name, wanted, inner in plan:
        value = values.get(name)
        if value is None:
            continue
        if wanted:
            out.append((name, value, ancestors))
        if inner is None:
            continue
        if isinstance(value, list):
            for element in value:
                if isinstance(element, dict):
                    _pick(inner, element, (*ancestors, element), out)
        elif isinstance(value, dict):
            _pick(inner, value, (*ancestors, value), out)
