"""Schemas and values that are made at random, for tests against the formats' own libraries."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from([f"n{at}" for at in range(12)])
_FLOAT32 = st.floats(width=32, allow_nan=False)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


class Made:
    """Names for types that are made."""

    def __init__(self) -> None:
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"T{self.count}"


PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "float": _FLOAT32,
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=8),
    "string": _TEXT,
}


@st.composite
def avro(draw: st.DrawFn, made: Made | None = None, depth: int = 0) -> tuple[Any, Any]:
    """A schema, and a value that it can write."""
    made = made or Made()
    kinds = [*PRIMITIVES, "enum", "fixed", "time"]
    if depth < 3:
        kinds += ["record", "record", "array", "map", "union"]
    kind = draw(st.sampled_from(kinds))
    if kind in PRIMITIVES:
        return kind, draw(PRIMITIVES[kind])
    if kind == "time":
        return {"type": "long", "logicalType": "local-timestamp-unknown"}, draw(PRIMITIVES["long"])
    if kind == "enum":
        symbols = draw(st.lists(NAMES, min_size=1, unique=True))
        return {"type": "enum", "name": made.name(), "symbols": symbols}, draw(st.sampled_from(symbols))
    if kind == "fixed":
        size = draw(st.integers(0, 5))
        schema = {"type": "fixed", "name": made.name(), "size": size}
        return schema, draw(st.binary(min_size=size, max_size=size))
    if kind == "record":
        names = draw(st.lists(NAMES, unique=True, max_size=4))
        parts = [draw(avro(made, depth + 1)) for _ in names]
        fields = [{"name": name, "type": schema} for name, (schema, _) in zip(names, parts, strict=True)]
        value = {name: each for name, (_, each) in zip(names, parts, strict=True)}
        return {"type": "record", "name": made.name(), "namespace": "a.b", "fields": fields}, value
    schema, value = draw(avro(made, depth + 1))
    if kind == "array":
        return {"type": "array", "items": schema}, [value] * draw(st.integers(0, 3))
    if kind == "map":
        keys = draw(st.lists(_TEXT, unique=True, max_size=3))
        return {"type": "map", "values": schema}, dict.fromkeys(keys, value)
    if isinstance(schema, list) or schema == "null":
        return schema, value
    return ["null", schema], draw(st.sampled_from([None, value]))


def shown(schema: Any, value: Any) -> Any:
    """A value of fastavro's as kdissect shows it: bytes as base64, floats that JSON lacks as words."""
    if isinstance(schema, list):
        return None if value is None else shown(schema[1], value)
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind in ("bytes", "fixed"):
        return b64encode(value).decode()
    if kind in ("float", "double") and value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if kind == "record":
        return {field["name"]: shown(field["type"], value[field["name"]]) for field in schema["fields"]}
    if kind == "array":
        return [shown(schema["items"], each) for each in value]
    if kind == "map":
        return {key: shown(schema["values"], each) for key, each in value.items()}
    return value


def text(schema: Any) -> str:
    """A schema as it stands in a file."""
    return json.dumps(schema)
