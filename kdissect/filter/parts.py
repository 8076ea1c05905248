"""The faults and records of an exchange as fields of a filter. An exchange may have many of each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from kdissect.faults import KINDS
from kdissect.filter.columns import KINDS_OF_TYPES
from kdissect.filter.field import RECORD, FieldKind, FilterField
from kdissect.filter.row import Row
from kdissect.present.catalogue import RECORDS
from kdissect.present.columns import EXCHANGES
from kdissect.protocol.json_form import dumps
from kdissect.record.compression import CODECS


def _fault(name: str, row: Row) -> list[Any]:
    return [value for fault in row.faults() if (value := getattr(fault, name)) is not None]


def fault_fields() -> Iterator[FilterField]:
    column = EXCHANGES.column("faults")
    read = partial(_fault, "kind")
    kinds = tuple(KINDS)
    aliases = (*column.aliases, "fault.kind")
    yield FilterField(
        "faults", FieldKind.WORD, column.meaning, read, True, RECORD, words=kinds, aliases=aliases
    )
    layers = tuple(dict.fromkeys(layer for layer, _ in KINDS.values()))
    for name, kind, words, meaning in (
        ("layer", FieldKind.WORD, layers, "layer of a fault"),
        ("message", FieldKind.TEXT, (), "what is wrong, in words"),
        ("packet", FieldKind.NUMBER, (), "packet in which a fault was found"),
        ("offset", FieldKind.NUMBER, (), "place of a fault"),
    ):
        yield FilterField(f"fault.{name}", kind, meaning, partial(_fault, name), True, RECORD, words=words)


_RECORD_WORDS = {
    "codec": tuple(CODECS),
    "timestamp_type": ("CreateTime", "LogAppendTime", "NoTimestampType"),
    "direction": ("produce", "fetch"),
}
_OF_EXCHANGE = ("exchange", "connection", "api", "api_version")


def _record(name: str, row: Row) -> list[Any]:
    return [value for record in row.records() if (value := record[name]) is not None]


def _record_json(name: str, row: Row) -> list[str]:
    return [dumps(value) for value in _record(name, row)]


def _headers(row: Row) -> list[str | bytes]:
    """The names and values of headers."""
    out: list[str | bytes] = []
    for record in row.records():
        for name, value in record["headers"]:
            out += (name,) if value is None else (name, value)
    return out


def _header(wanted: str, row: Row) -> list[bytes]:
    return [
        value
        for record in row.records()
        for name, value in record["headers"]
        if name == wanted and value is not None
    ]


def record_fields() -> Iterator[FilterField]:
    for column in RECORDS.columns:
        if column.name in _OF_EXCHANGE or column.optional or column.type == "headers":
            continue
        name = column.name
        words = _RECORD_WORDS.get(name, ())
        kind = FieldKind.WORD if words else KINDS_OF_TYPES[column.type]
        read = partial(_record_json if kind is FieldKind.JSON else _record, name)
        field = FilterField(f"record.{name}", kind, f"of a record: {column.meaning}", read, True, RECORD)
        if name == "timestamp":
            field = field._replace(kind=FieldKind.MOMENT, unit="ms")
        elif name.endswith("_size"):
            field = field._replace(unit="bytes")
        yield field._replace(words=words)
    meaning = "of a record: the names and values of its headers"
    yield FilterField(
        "record.headers", FieldKind.BYTES, meaning, _headers, True, RECORD, aliases=("record.header",)
    )


HEADER_PREFIX = "record.header."


def header_field(name: str) -> FilterField:
    """The field of the headers with this name. The name's case counts, as on the wire."""
    meaning = "of a record: the value of a header"
    return FilterField(
        f"{HEADER_PREFIX}{name}", FieldKind.BYTES, meaning, partial(_header, name), True, RECORD
    )
