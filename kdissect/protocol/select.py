"""Pick all fields of one sort out of decoded values: topic names, error codes, record sets …

What is wanted is said once per struct, as a predicate over its fields; :func:`selection` compiles it
to a path plan (nested tuples) that visits only the branches where such fields are, and :func:`pick`
walks values with it. Order is that of the definition, which for fields that are not tagged is the
order on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kdissect.protocol.schema import Field, Struct

Selection = tuple[tuple[str, bool, "Selection | None"], ...]
"""Per branch: the field's name, whether it is wanted itself, and the selection inside it."""

Picked = tuple[str, Any, tuple[dict[str, Any], ...]]
"""A field's name, its value, and the structs it stands in, outermost first."""


def selection(struct: Struct, wanted: Callable[[Field], bool]) -> Selection:
    """The branches of ``struct`` that lead to fields that are ``wanted``."""
    out = []
    for field in struct.fields:
        inner = selection(field.struct, wanted) if field.struct is not None else ()
        if wanted(field) or inner:
            out.append((field.name, wanted(field), inner or None))
    return tuple(out)


def pick(
    plan: Selection, values: dict[str, Any], ancestors: tuple[dict[str, Any], ...] = ()
) -> Iterator[Picked]:
    """Every wanted field that is present in ``values``, in order."""
    ancestors = (*ancestors, values)
    for name, wanted, inner in plan:
        value = values.get(name)
        if value is None:
            continue
        if wanted:
            yield name, value, ancestors
        if inner is not None:
            for element in value if isinstance(value, list) else (value,):
                if isinstance(element, dict):
                    yield from pick(inner, element, ancestors)
