"""Messages that Kafka's own classes wrote, and what Kafka's JsonConverters print for them."""

from __future__ import annotations

import base64
import copy
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kdissect.model import Node
from kdissect.protocol.schema import Field, Struct, data_struct, message_struct


class Vector(NamedTuple):
    """The bytes of one body, header, key or value."""

    id: str
    struct: Struct
    data: bytes
    json: dict[str, Any]


def rows(name: str) -> list[dict[str, Any]]:
    path = Path(__file__).parents[1] / "data" / "official" / name
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]


@cache
def vectors() -> tuple[Vector, ...]:
    """Every body and header of the messages, every key and value of the internal records."""
    found = []
    for row in rows("messages.ndjson.gz"):
        body = message_struct(row["api_key"], row["version"], row["kind"])
        header = data_struct(row["kind"].capitalize() + "Header", row["header_version"])
        found.append(_vector(row["id"], body, row["body_hex"], row["json"], row.get("unknown_tags")))
        found.append(
            _vector(
                row["id"] + " header",
                header,
                row["header_hex"],
                row["header"],
                row.get("header_unknown_tags"),
            )
        )
    for row in rows("internal.ndjson.gz"):
        if row["class"]:
            value = data_struct(row["class"], row["version"])
            found.append(_vector(row["id"], value, row["body_hex"], row["json"], row.get("unknown_tags")))
        if row["key_class"]:
            key = data_struct(row["key_class"], row["key_version"])
            found.append(_vector(row["id"] + " key", key, row["key_body_hex"], row["key_json"], None))
    return tuple(found)


def _vector(
    name: str, struct: Struct, text: str, obj: dict[str, Any], unknown: list[dict[str, Any]] | None
) -> Vector:
    """Kafka's converter leaves unknown tagged fields out; they are put where kdissect prints them."""
    whole = copy.deepcopy(obj)
    for tagged in unknown or ():
        at: Any = whole
        for step in tagged["path"]:
            at = at[step]
        at.setdefault("_unknownTaggedFields", []).append({"tag": tagged["tag"], "data": tagged["data"]})
    return Vector(name, struct, bytes.fromhex(text), whole)


def with_records(
    ancestors: list[dict[str, Any]], struct: Struct, field: Field, value: Any, out: dict[str, Any]
) -> bool:
    """A hook of ``to_json`` that writes records themselves, so that they can be read back."""
    if field.type == "records" and value is not None:
        out[field.name] = base64.b64encode(value).decode()
    return field.type == "records" and value is not None


def leaves(node: Node) -> list[Node]:
    """The nodes without children, in order."""
    if not node.children:
        return [node]
    return [leaf for child in node.children for leaf in leaves(child)]


def values_of(node: Node) -> Any:
    """What ``decode`` should have given for a tree."""
    if not node.children:
        return node.value
    inner = [child for child in node.children if child.name not in ("(tag)", "(size)")]
    if inner and inner[0].name in ("(value)", "(data)", "(null)"):
        return inner[0].value
    if inner and inner[0].name == "(count)":
        return [values_of(child) for child in inner if child.name.startswith("[")]
    values: dict[str, Any] = {}
    for child in inner:
        if child.name.startswith("(tag "):
            unknown = {"tag": child.children[0].value, "data": child.value}
            values.setdefault("_unknownTaggedFields", []).append(unknown)
        elif not child.name.startswith("("):
            values[child.name] = values_of(child)
    return values
