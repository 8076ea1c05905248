"""Facts of all tasks (:mod:`kdissect.spark.facts`) as a DataFrame → numbers, names and loads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from kdissect.dissect import AT_THE_END
from kdissect.spark.facts import EXCHANGE, NAME, Fact
from kdissect.spark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SCHEMA = pa.schema(
    [
        ("task", pa.int32()),
        ("point", pa.int32()),
        ("kind", pa.int32()),
        ("packet", pa.int64()),
        ("first", pa.int64()),
        ("offset", pa.int64()),
        ("place", pa.int64()),
        ("topic_id", pa.string()),
        ("name", pa.string()),
    ]
)
FACTS_DDL = (
    "task int, point int, kind int, packet bigint, first bigint, offset bigint, place bigint, "
    "topic_id string, name string"
)
_FACTS_A_BATCH = 16_384

Names = tuple[tuple[int, int, str, str], ...]
"""Packet at which it came to light, packet that told it, topic id and name."""


class Told(NamedTuple):
    """What the facts of a capture point say of it as a whole."""

    names: Names
    connections: int
    """At a time, at most."""
    held_bytes: int
    """The same of what waited."""

    def is_within(self, settings: Settings) -> bool:
        """Whether no limit over all connections can have been reached."""
        limits = settings.limits
        return (
            self.connections < limits.connections
            and self.held_bytes <= limits.waiting_bytes
            and len(self.names) < limits.topic_names
        )

    @property
    def is_prompt(self) -> bool:
        """Whether every name came to light at the packet that told it, or at the end."""
        return all(at in (told, AT_THE_END) for at, told, _, _ in self.names)


def fact_batches(facts: Iterator[Fact], task: int, point: int) -> Iterator[pa.RecordBatch]:
    """Facts of a task, for Spark."""
    while some := list(islice(facts, _FACTS_A_BATCH)):
        columns = [[task] * len(some), [point] * len(some), *zip(*some, strict=True)]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)]
        yield pa.record_batch(arrays, schema=_SCHEMA)


def told(facts: DataFrame, points: int) -> list[Told]:
    """What they say of each capture point. The facts are told for it, if they were not yet."""
    names: list[list[tuple[int, int, str, str]]] = [[] for _ in range(points)]
    loads = [(0, 0)] * points
    for row in facts.where(facts.kind >= NAME).collect():
        if row.kind == NAME:
            names[row.point].append((row.packet, row["first"], row.topic_id, row["name"]))
        else:
            connections, held_bytes = loads[row.point]
            loads[row.point] = (connections + row.packet, held_bytes + row["first"])
    return [Told(tuple(sorted(own)), *load) for own, load in zip(names, loads, strict=True)]


def numbered(facts: DataFrame) -> DataFrame:
    """Connections and exchanges with their numbers: ``task``, ``packet``, ``kind``, ``number``."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    order = Window.partitionBy("point", "kind").orderBy("packet", "first", "offset", "place")
    number = f.row_number().over(order).cast("bigint").alias("number")
    return facts.where(facts.kind <= EXCHANGE).select("task", "packet", "kind", number)
