"""The layout of tables for queries: moments beside nanoseconds, and partitions.

Each time in nanoseconds has its ``TIMESTAMP`` beside it, in microseconds: ``request_time_ns`` and
``request_time_ts``. Partitions are ``date`` (UTC), ``hour`` (UTC), or any column.

Records, batches and faults have no time and no broker of their own. They get the values of their exchange
(:data:`kdissect.spark.tables.PLACED`). A fault without an exchange gets the broker of its connection, and the
time when the connection began.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kdissect.analysis.declared import TIME
from kdissect.present.columns import Table
from kdissect.spark.tables import POINT, TABLES, types

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DATE, HOUR, BROKER = "date", "hour", "broker"
TIME_PARTS = (DATE, HOUR)
"""Partition columns that are not columns of the tables."""
_EPOCHS = frozenset(
    f"{name}_ns"
    for name in ("request_start", "request_time", "response_start", "response_time", "start", "end", "time")
)
"""The columns of the tables of captures that are points in time, and no durations."""
_WHEN = {
    "exchanges": ("request_time_ns", "response_time_ns"),
    "connections": ("start_ns",),
}
"""The time of a row without a column ``time_ns``: the first of these columns that is not null."""
_DAY = 86_400 * 1_000_000_000


def epochs(table: Table) -> list[str]:
    """The columns of a table that are times in nanoseconds."""
    return [
        column.name
        for column in table.columns
        if column.unit == TIME or (table.name in TABLES and column.name in _EPOCHS)
    ]


def moment_name(name: str) -> str:
    """The name of the moment beside a column in nanoseconds."""
    return f"{name.removesuffix('ns')}ts"


def with_moments(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The table with a ``TIMESTAMP`` after each of these columns that it has."""
    from pyspark.sql import functions as f

    columns: list[Column] = []
    for name in frame.columns:
        columns.append(f.col(f"`{name}`"))
        if name in names:
            columns.append(f.expr(f"timestamp_micros(`{name}` div 1000)").alias(moment_name(name)))
    return frame.select(*columns)


def moments_ddl(table: Table, names: Sequence[str]) -> str:
    """The schema with moments, in Spark's words."""
    parts: list[str] = []
    for column, kind in zip(table.columns, types(table), strict=True):
        parts.append(f"`{column.name}` {kind}")
        if column.name in names:
            parts.append(f"`{moment_name(column.name)}` timestamp")
    return ", ".join(parts)


def needs_places(by: Sequence[str]) -> bool:
    """Whether rows need a time and a broker for these partitions."""
    return any(part in (*TIME_PARTS, BROKER) for part in by)


def of_connections(faults: DataFrame, connections: DataFrame) -> DataFrame:
    """Faults, where those without an exchange get the time and the broker of their connection."""
    from pyspark.sql import functions as f

    keys = [POINT, "connection"] if POINT in faults.columns else ["connection"]
    begun = connections.groupBy(*keys).agg(
        f.min("start_ns").alias("_begun_ns"), f.first("broker").alias("_broker")
    )
    both = faults.join(f.broadcast(begun), keys, "left")
    filled = both.withColumn("time_ns", f.coalesce("time_ns", "_begun_ns"))
    filled = filled.withColumn(BROKER, f.coalesce(BROKER, "_broker"))
    return filled.select(*faults.columns)


def parts_of(columns: Sequence[str], name: str, by: Sequence[str]) -> list[str]:
    """The partition columns of a table with these columns: those of ``by`` that it can have."""
    is_timed = any(each in columns for each in _WHEN.get(name, ("time_ns",)))
    return [part for part in dict.fromkeys(by) if part in columns or (part in TIME_PARTS and is_timed)]


def partitioned(frame: DataFrame, name: str, by: Sequence[str]) -> tuple[DataFrame, list[str]]:
    """A table, and its partition columns: those of ``by`` that it can have.

    Spark brings the rows of a partition together, so that it is few files. Its adaptive execution joins small
    files and splits large ones.
    """
    from pyspark.sql import functions as f

    parts = parts_of(frame.columns, name, by)
    when = tuple(each for each in _WHEN.get(name, ("time_ns",)) if each in frame.columns)
    for part in parts:
        if part in frame.columns:
            continue
        ns = f.coalesce(*map(f.col, when))
        if part == DATE:
            days = f.floor(ns / f.lit(_DAY)).cast("int")
            frame = frame.withColumn(part, f.date_add(f.lit("1970-01-01").cast("date"), days))
        else:
            hour = f.floor((ns % f.lit(_DAY)) / f.lit(_DAY // 24)).cast("string")
            frame = frame.withColumn(part, f.lpad(hour, 2, "0"))
    return (frame.hint("rebalance", *map(f.col, parts)) if parts else frame), parts
