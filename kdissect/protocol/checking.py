"""Whether a definition file of the user can be used: checks for damage that the parser accepts.

A file that was cut off or changed by hand may still parse. But its layout may be unusable for decoding. This
is found here, before a message needs the file.
"""

from __future__ import annotations

from kdissect.limits import DEEPEST
from kdissect.protocol import plan
from kdissect.protocol.definition import Document, FieldDefinition

Fields = tuple[FieldDefinition, ...]


def check(document: Document, is_api: bool) -> None:
    """:raises ValueError: a block is missing, or the type or default of a field is invalid."""
    kinds = {block.kind for block in document.blocks if not block.era}
    for kind in ("request", "response") if is_api else ():
        if kind not in kinds:
            raise ValueError(f"it has no {kind}")
    if not kinds:
        raise ValueError("it has no layout")
    for block in document.blocks:
        structures: dict[str, Fields] = {}
        _collect(block.fields, structures)
        _check_fields(block.fields, structures, set(), 1)


def _collect(fields: Fields, structures: dict[str, Fields]) -> None:
    """Collect the struct types of a block: each is defined where it is first used."""
    for field in fields:
        if field.fields:
            structures.setdefault(field.element, field.fields)
            _collect(field.fields, structures)


def _check_fields(fields: Fields, structures: dict[str, Fields], done: set[str], depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError(f"it is nested deeper than {DEEPEST}")
    for field in fields:
        _check_default(field)
        if field.element in plan.PRIMITIVES or field.element in done:
            continue
        if field.element not in structures:
            raise ValueError(f"{field.name} has no type {field.element}")
        _check_fields(structures[field.element], structures, done, depth + 1)
        done.add(field.element)


def _check_default(field: FieldDefinition) -> None:
    if field.default in (None, "null"):
        return
    number = float if field.type == "float64" else int
    if field.type in plan.FIXED and field.type not in ("bool", "uuid"):
        try:
            number(field.default)
        except ValueError:
            raise ValueError(f"{field.name} has the default {field.default!r}") from None
