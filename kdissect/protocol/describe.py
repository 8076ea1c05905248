"""A struct → lines of text: its fields with their types and other attributes."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.protocol import json_form
from kdissect.protocol.schema import ZERO_UUID, Field, Struct


def describe(struct: Struct) -> list[str]:
    """The class and its version, then each field, with nested fields indented. The fields of a repeated
    structure are listed at its first use."""
    rows = list(_rows(struct, 1, set()))
    name_width = max((len(row[0]) for row in rows), default=0)
    type_width = max((len(row[1]) for row in rows), default=0)
    flexible = ", flexible" if struct.flexible else ""
    whose = "" if "-" in struct.release else "Kafka "
    head = f"{struct.name} version {struct.version}{flexible}, as of {whose}{struct.release}"
    return [
        head,
        *(f"{name:{name_width}}  {kind:{type_width}}  {facts}".rstrip() for name, kind, facts in rows),
    ]


def _rows(struct: Struct, depth: int, shown: set[str]) -> Iterator[tuple[str, str, str]]:
    for field in struct.fields:
        yield "  " * depth + field.name, field.type, ", ".join(_facts(field))
        if field.struct is not None and field.struct.name not in shown:
            shown.add(field.struct.name)
            yield from _rows(field.struct, depth + 1, shown)


def _facts(field: Field) -> Iterator[str]:
    if field.tag is not None:
        yield f"tag {field.tag}"
    if field.nullable:
        yield "nullable"
    if field.default is None:
        if field.nullable and field.type != "records":
            yield "default null"
    elif field.struct is None and field.default not in (0, "", [], b"", ZERO_UUID):
        yield f"default {json_form.dumps(field.default)}"
    if field.key:
        yield "key"
    if field.entity:
        yield f"is {field.entity}"
