"""The columns of an exchange as fields of a filter, and the addresses and ports in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from kdissect.filter.field import BODY, HEADER, WHOLE, FieldKind, FilterField
from kdissect.filter.row import Row
from kdissect.present.columns import EXCHANGES, Column
from kdissect.protocol.errors import CLASSES
from kdissect.protocol.json_form import dumps

MISSING = (
    "acks=0",
    "not captured",
    "gap",
    "skipped",
    "capture ended",
    "connection closed",
    "waiting",
    "evicted",
)

_DECODED = ("error", "error_class", "topics", "groups", "transactional_ids", "wait_ns", "broker_ns")
KINDS_OF_TYPES = {
    "int16": FieldKind.NUMBER,
    "int32": FieldKind.NUMBER,
    "int64": FieldKind.NUMBER,
    "bool": FieldKind.FLAG,
} | {
    "text": FieldKind.TEXT,
    "texts": FieldKind.TEXT,
    "bytes": FieldKind.BYTES,
    "json": FieldKind.JSON,
}


def _column(column: Column, row: Row) -> Any:
    return None if row.exchange is None else column.value(row.exchange, row.options)


def _texts(column: Column, row: Row) -> Any:
    return () if row.exchange is None else column.value(row.exchange, row.options)


def _json(column: Column, row: Row) -> str | None:
    value = _column(column, row)
    return None if value is None else dumps(value)


def _connection(row: Row) -> int | None:
    return row.connection if row.exchange is None else row.exchange.connection


def column_fields() -> Iterator[FilterField]:
    for column in EXCHANGES.columns:
        name, kind = column.name, KINDS_OF_TYPES.get(column.type)
        if kind is None:
            continue  # faults: see kdissect.filter.parts
        field = FilterField(
            name,
            kind,
            column.meaning,
            partial(_column, column),
            cost=BODY if name in _DECODED else HEADER,
            unit="bytes" if name.endswith("_size") else "ns" if name.endswith("_ns") else "",
            aliases=column.aliases,
        )
        if column.type == "texts":
            field = field._replace(read=partial(_texts, column), many=True)
        elif kind is FieldKind.JSON:
            field = field._replace(read=partial(_json, column), cost=WHOLE, alone=f"{name}_packet")
        elif name == "connection":
            field = field._replace(read=_connection)
        elif name in ("client", "broker"):
            field = field._replace(kind=FieldKind.ADDRESS)
        elif name.endswith(("_start_ns", "_time_ns")):
            field = field._replace(kind=FieldKind.MOMENT)
        elif name == "api":
            field = field._replace(kind=FieldKind.API)
        elif name == "error":
            field = field._replace(kind=FieldKind.ERROR)
        elif name == "missing":
            field = field._replace(kind=FieldKind.WORD, words=MISSING)
        elif name == "error_class":
            field = field._replace(kind=FieldKind.WORD, words=CLASSES)
        yield field


def _address(text: str) -> str:
    return text.rpartition(":")[0].strip("[]")


def _port(text: str) -> int:
    return int(text.rpartition(":")[2])


def _derived(name: str, convert: Callable[[Any], Any], row: Row) -> Any:
    return None if row.exchange is None else convert(getattr(row.exchange, name))


def _both(convert: Callable[[Any], Any], row: Row) -> list[Any]:
    return [] if row.exchange is None else [_derived(end, convert, row) for end in ("client", "broker")]


BOTH_ENDS = {"ip.addr": ("client.ip", "broker.ip"), "tcp.port": ("client.port", "broker.port")}
"""Wireshark's names for fields that both ends have, each with the two fields that are tested."""


def end_fields() -> Iterator[FilterField]:
    for name in ("client", "broker"):
        for part, kind, convert in (("ip", FieldKind.ADDRESS, _address), ("port", FieldKind.NUMBER, _port)):
            yield FilterField(
                f"{name}.{part}",
                kind,
                f"the {'address' if part == 'ip' else 'port'} of the {name}",
                partial(_derived, name, convert),
                source=name,
                derive=convert,
            )
    yield FilterField(
        "ip.addr", FieldKind.ADDRESS, "the addresses of both ends", partial(_both, _address), True
    )
    yield FilterField("tcp.port", FieldKind.NUMBER, "the ports of both ends", partial(_both, _port), True)
