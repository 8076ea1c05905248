"""A part of a request → the whole request: missing fields get their defaults."""

from __future__ import annotations

from typing import Any

from kdissect.protocol.json_form import from_json, to_json
from kdissect.protocol.schema import Struct


def filled(struct: Struct, given: Any) -> Any:
    """Kafka's JSON, with defaults for the missing fields at every depth. A value that is not an object stays
    as it is; the schema checks it."""
    if not isinstance(given, dict):
        return given
    out = dict(given)
    for field in struct.fields:
        if field.name not in out:
            if field.tag is None and field.name + "SizeInBytes" not in out:
                out[field.name] = _default(struct, field.name, field.default)
        elif field.struct is not None:
            value = out[field.name]
            inner = field.struct
            out[field.name] = (
                [filled(inner, each) for each in value] if isinstance(value, list) else filled(inner, value)
            )
    return out


def _default(struct: Struct, name: str, value: Any) -> Any:
    shown = to_json(struct, {name: value})
    return shown.get(name)  # null records appear under their own name


def values_of(struct: Struct, given: Any) -> dict[str, Any]:
    """The values to encode, from Kafka's JSON, in which any field may be missing.

    :raises ValueError: it does not fit the schema; the text begins with the path.
    """
    return from_json(struct, filled(struct, given))
