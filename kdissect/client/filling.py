"""A part of a request → the whole request: each field that is left out has its default."""

from __future__ import annotations

from typing import Any

from kdissect.protocol.json_form import from_json, to_json
from kdissect.protocol.schema import Struct


def filled(struct: Struct, given: Any) -> Any:
    """Kafka's JSON with the fields that are missing, each with its default, at every depth. Anything that
    is not an object stays as it is; the schema judges it."""
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
    return shown.get(name)  # records that are null print under their own name


def values_of(struct: Struct, given: Any) -> dict[str, Any]:
    """Values to encode, from Kafka's JSON. Any field may be missing in it.

    :raises ValueError: it does not fit the schema; the text begins with the path.
    """
    return from_json(struct, filled(struct, given))
