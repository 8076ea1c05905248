"""The tables for Spark: those of ``read``, and batches and packets; and their types in Spark's words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.present.catalogue import EXCHANGE_BATCHES, PACKETS
from kdissect.present.catalogue import TABLES as READ_TABLES
from kdissect.present.columns import Column, Source, Table
from kdissect.present.options import PLAIN, Options

TABLES = {**READ_TABLES, "batches": EXCHANGE_BATCHES, "packets": PACKETS}

_FAULT = "struct<layer:string,kind:string,message:string,packet:bigint,offset:bigint>"
_TYPES = {
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float64": "double",
    "bool": "boolean",
    "text": "string",
    "bytes": "binary",
    "json": "string",
    "texts": "array<string>",
    "int64s": "array<bigint>",
    "faults": f"array<{_FAULT}>",
    "headers": "array<struct<key:string,value:binary>>",
}

POINT = "capture_point"
"""The column for several capture points in one input of a single machine. Here each point is counted
separately, and the column has its name."""


PLACED = ("records", "batches", "faults")
"""Tables whose rows have neither a time nor a broker of their own. Their exchange has both."""


class RowOrigin(NamedTuple):
    """The source of a row of these tables, with its event."""

    event: Event
    source: Source


def placed(event: Event, sources: Iterable[Source]) -> Iterator[Source]:
    """The sources of an event's rows, with the event."""
    return (RowOrigin(event, source) for source in sources)


def full_table(
    name: str, embedded: bool, points: bool, payloads: bool = False, places: bool = False
) -> Table:
    """A table with all columns that can have a value.

    :param points: whether there may be several capture points.
    :param payloads: whether keys and values of records are decoded.
    :param places: whether rows are :class:`RowOrigin`, in tables of :data:`PLACED`.
    """
    table = TABLES[name]
    left_out = () if payloads else ("Format",) if embedded else ("Decoded", "Format")
    columns = tuple(column for column in table.columns if not column.name.endswith(left_out))
    if places and name in PLACED:
        own = (column._replace(value=partial(_of_source, column)) for column in columns)
        columns = (*own, *_PLACE)
    return with_point(Table(name, columns), points)


def _of_source(column: Column, row: RowOrigin, options: Options) -> Any:
    return column.value(row.source, options)


def _time(row: RowOrigin, _: Options) -> int | None:
    event = row.event
    if not isinstance(event, Exchange):
        return None
    return event.response_time_ns if event.request_time_ns is None else event.request_time_ns


def _broker(row: RowOrigin, options: Options) -> str | None:
    event = row.event
    return _EXCHANGES_BROKER.value(event, options) if isinstance(event, Exchange) else None


def place_of(exchange: Exchange) -> dict[str, Any]:
    """The time and the broker of an exchange, by the names of the columns."""
    row = RowOrigin(exchange, {})
    return {column.name: column.value(row, PLAIN) for column in _PLACE}


_EXCHANGES_BROKER = TABLES["exchanges"].column("broker")
_PLACE = (
    Column(
        "time_ns", "int64", "when the request, else the response, was complete, ns since the epoch", _time
    ),
    Column("broker", "text", "address:port of the broker", _broker),
)


def with_point(table: Table, points: bool, point: str | None = None) -> Table:
    """A table with a column for the name of the capture point, before its own columns.

    :param points: whether there may be several; otherwise the table is returned unchanged.
    :param point: the name, in every row.
    """
    if not points:
        return table
    column = Column(POINT, "text", "name of the capture point", partial(_constant, point))
    return Table(table.name, (column, *(own for own in table.columns if own.name != POINT)))


def table_at(table: Table, point: str, head: int | None) -> Table:
    """The same table for the rows of one capture point.

    :param head: the number of bytes to which keys and values are cut; with 0 rows have no keys, values or
        bodies.
    """
    return Table(table.name, tuple(_changed(column, point, head) for column in table.columns))


def types(table: Table) -> list[str]:
    """The types of a table's columns in Spark's words, such as ``bigint`` and ``array<string>``."""
    return [_TYPES[column.type] for column in table.columns]


def ddl(table: Table) -> str:
    """The schema of a table in Spark's words; every column may be null."""
    return ", ".join(f"`{column.name}` {_TYPES[column.type]}" for column in table.columns)


def _changed(column: Column, point: str, head: int | None) -> Column:
    if column.name == POINT:
        return column._replace(value=partial(_constant, point or None))
    if head is None:
        return column
    if column.type in ("bytes", "headers"):
        return column._replace(value=partial(_cut, column, head))
    if head == 0 and column.name in ("request", "response", "keyDecoded", "valueDecoded"):
        return column._replace(value=partial(_constant, None))
    return column


def _constant(value: Any, _: Source, __: Options) -> Any:
    return value


def _cut(column: Column, head: int, source: Source, options: Options) -> Any:
    value = column.value(source, options)
    if column.type == "headers" and value is not None:
        return [(name, _head(content, head)) for name, content in value]
    return _head(value, head)


def _head(value: bytes | None, head: int) -> bytes | None:
    return value[:head] if value is not None and head else None


def body_of(message: str | None) -> dict[str, Any]:
    """The body in the JSON of a message; an empty one if it has no body."""
    body = json.loads(message).get("body") if message is not None else None
    return body if isinstance(body, dict) else {}
