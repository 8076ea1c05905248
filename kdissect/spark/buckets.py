"""Captures → a table, by buckets: two jobs, for more tasks than a few.

The first job tells the facts of all buckets (:mod:`kdissect.spark.facts`); Spark puts them in order, which
gives the numbers; the second makes the rows. A limit over all connections cannot have been reached where
the buckets' greatest loads together stay below it. Where they do not, replicas make the table: what gives
way then depends on all connections at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from kdissect.spark.choice import Choice
from kdissect.spark.facts import Bucket, events_of, facts_of, things_of
from kdissect.spark.ordering import FACTS_DDL, Names, fact_batches, numbered, told
from kdissect.spark.plan import CapturePoint
from kdissect.spark.progress import Note
from kdissect.spark.rows import batches_of
from kdissect.spark.settings import Settings
from kdissect.spark.tables import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_START = -1
"""Kind of the row that every task gets, so that a bucket without facts is read too."""


class Task(NamedTuple):
    """One bucket of one capture point."""

    point: int
    name: str
    paths: tuple[str, ...]
    bucket: Bucket


def bucketed(
    spark: SparkSession, settings: Settings, points: Sequence[CapturePoint], counts: Sequence[int]
) -> DataFrame | None:
    """A table; None where a limit over all connections may have been reached.

    The first job has run when this returns.

    :param counts: the tasks of each point.
    """
    from pyspark.sql import functions as f

    Choice(settings)  # a filter that is none is told before any task starts
    tasks = tuple(
        Task(at, point.name, point.paths, Bucket(index, count))
        for at, (point, count) in enumerate(zip(points, counts, strict=True))
        for index in range(count)
    )
    each = spark.range(0, len(tasks), 1, len(tasks))
    facts = each.mapInArrow(partial(_tell, tasks, settings), FACTS_DDL).persist()
    known = told(facts, len(points))
    if not all(each.is_within(settings) for each in known):
        facts.unpersist()
        return None
    start = each.select(
        f.col("id").cast("int").alias("task"),
        f.lit(-1).cast("bigint").alias("packet"),
        f.lit(_START).alias("kind"),
        f.lit(0).cast("bigint").alias("number"),
    )
    of_tasks = start.unionByName(numbered(facts)).repartitionById(len(tasks), "task")
    ordered = of_tasks.sortWithinPartitions("task", "packet", "kind", "number")
    table = settings.full_table(settings.table)
    names = [each.names for each in known]
    return ordered.mapInArrow(partial(_dissect, tasks, settings, names), ddl(table))


def _tell(
    tasks: Sequence[Task], settings: Settings, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The first job: numbers of tasks → facts."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            task = tasks[number]
            note = Note(settings.progress, f"facts-{number}")
            facts = facts_of(things_of(task.paths, settings, task.bucket, note), settings)
            yield from fact_batches(facts, number, task.point)
            note.write()


def _dissect(
    tasks: Sequence[Task],
    settings: Settings,
    names: Sequence[Names],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The second job: what is numbered how, task by task → rows."""
    full = settings.full_table(settings.table)
    rows = chain.from_iterable(
        zip(*(column.to_pylist() for column in batch), strict=True) for batch in batches
    )
    for number, own in groupby(rows, lambda row: row[0]):
        task = tasks[number]
        note = Note(settings.progress, f"{settings.table}-{number}")
        numbers = ((kind, packet, given) for _, packet, kind, given in own if kind != _START)
        things = things_of(task.paths, settings, task.bucket, note)
        events = events_of(things, settings, numbers, names[task.point])
        yield from batches_of(events, full, task.name, settings, Choice(settings), note)
