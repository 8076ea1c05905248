"""Captures → all tables that are wanted, in one job: each task reads its captures once.

    units     what tasks do: each has a capture point, or a share of one's rows
    task      dissects, and makes the rows of all tables, in columns
    outcome   what a task tells the driver: its files, the bytes that it read, what is wrong with captures

Tasks write files of Parquet into a folder that nobody reads yet (:func:`write_tables`). Only the files of
outcomes count: a task that dies, and is done again, leaves nothing twice. Where the driver does not see what
workers write, Spark itself takes the rows (:func:`wide_tables`).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from kdissect.collector import rarely_collected
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.model import Fault
from kdissect.present.arrow import arrow_schema
from kdissect.present.columns import Table
from kdissect.present.sources import sources_of
from kdissect.spark.choice import Choice
from kdissect.spark.plan import CapturePoint, task_numbers
from kdissect.spark.progress import Note
from kdissect.spark.replay import Shares, all_blocks, size_of
from kdissect.spark.rows import PacketRows, TableRows
from kdissect.spark.settings import Settings
from kdissect.spark.shape import epochs
from kdissect.spark.sinks import FileSink, Written, moments_in
from kdissect.spark.tables import table_at
from kdissect.spark.wide import Widener, wide_ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OUTCOME_DDL = "outcome binary"
_OUTCOME = pa.schema([("outcome", pa.binary())])


class Unit(NamedTuple):
    """What a task does."""

    point: str
    paths: tuple[str, ...]
    share: int = 0
    """Which of the capture point's shares of rows …"""
    shares: int = 1
    """… among so many. For each of them, everything is read and dissected."""


class Wanted(NamedTuple):
    """A table that is made."""

    key: str
    """By which it is asked for: a table may be wanted in two forms."""
    settings: Settings
    """Which table, and its rows."""
    has_moments: bool = True
    """Whether each time has a moment beside it, in files."""

    @property
    def table(self) -> Table:
        """Its columns, without moments."""
        return self.settings.full_table(self.settings.table)

    @property
    def epochs(self) -> list[str]:
        """The columns with a moment beside them."""
        return epochs(self.table) if self.has_moments else []

    @property
    def schema(self) -> pa.Schema:
        """That of its files."""
        return moments_in(arrow_schema(self.table), self.epochs)


class Outcome(NamedTuple):
    """What came of a task."""

    read: int
    """Bytes of captures."""
    written: tuple[Written, ...]
    damage: list[Fault]
    """What is wrong with files; of many, the first."""
    is_faulty: bool
    """Whether there is any fault, where that is asked."""


class Job(NamedTuple):
    """What all tasks know."""

    units: tuple[Unit, ...]
    wanted: tuple[Wanted, ...]
    settings: Settings
    """How captures are read."""
    asks_faults: bool = False
    """Whether it matters that there are faults, which may be in no table."""


def units_of(points: Sequence[CapturePoint], tasks: Sequence[int]) -> tuple[Unit, ...]:
    """The largest first, so that none is begun when the others are over."""
    both = sorted(zip(points, tasks, strict=True), key=lambda each: -each[0].size)
    return tuple(
        Unit(point.name, point.paths, index, count) for point, count in both for index in range(count)
    )


def write_tables(spark: SparkSession, job: Job, folder: str) -> list[Outcome]:
    """Have the tasks write files into a folder, in which each table has one of its own.

    :param folder: a new one, which driver and workers share.
    """
    count = len(job.units)
    every = spark.range(0, count, 1, count)
    rows = every.mapInArrow(partial(_write, job, folder), _OUTCOME_DDL).collect()
    return [pickle.loads(row.outcome) for row in rows]  # of our own tasks


def wide_tables(spark: SparkSession, job: Job) -> tuple[DataFrame, list[Outcome]]:
    """The tables as Spark keeps them until ``unpersist``; :func:`~kdissect.spark.wide.table_in` finds one by
    its key."""
    count = len(job.units)
    schema = f"{wide_ddl((each.key, each.table) for each in job.wanted)}, `_told` struct<outcome:binary>"
    wide = spark.range(0, count, 1, count).mapInArrow(partial(_widen, job), schema).persist()
    told = wide.where("_told is not null").select("_told.outcome").collect()
    return wide, [pickle.loads(row.outcome) for row in told]


# -- in the tasks -----------------------------------------------------------------------------------


def _write(job: Job, folder: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number in task_numbers(batches):
        task = _Task(job, number)
        sinks = [
            FileSink(folder, each.key, number, rows.schema, each.epochs, is_first=number == 0)
            for each, rows in zip(job.wanted, task.rows, strict=True)
        ]
        try:
            for at, batch in task.batches():
                sinks[at].write(batch)
            written = tuple(file for sink in sinks if (file := sink.close()) is not None)
        except BaseException:
            for sink in sinks:
                sink.abandon()
            raise
        yield _told(task.outcome(written))


def _widen(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number in task_numbers(batches):
        task = _Task(job, number)
        schemas = [(each.key, rows.schema) for each, rows in zip(job.wanted, task.rows, strict=True)]
        widener = Widener([*schemas, ("_told", _OUTCOME)])
        for at, batch in task.batches():
            yield from widener.widened(at, (batch,))
        yield from widener.widened(len(job.wanted), (_told(task.outcome(())),))


class _Task:
    """One of them."""

    def __init__(self, job: Job, number: int) -> None:
        self._job = job
        self._unit = job.units[number]
        self._note = Note(job.settings.progress, f"tables-{number}")
        self._damage: list[Fault] = []
        self._is_faulty = False
        self.rows = [_rows_of(each, self._unit) for each in job.wanted]
        """Of each table."""

    def batches(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The record batches of all tables, with the table's place."""
        unit, settings, tables = self._unit, self._job.settings, list(enumerate(self.rows))
        packets = [(at, rows) for at, rows in tables if isinstance(rows, PacketRows)]
        others = [(at, rows) for at, rows in tables if isinstance(rows, TableRows)]
        owners = Shares(unit.shares)
        with rarely_collected():
            for items, events in all_blocks(unit.paths, settings, self._note):
                for at, of_packets in packets:
                    for batch in of_packets.feed(items):
                        yield at, batch
                for event in events:
                    is_exchange = isinstance(event, Exchange)
                    is_own = (owners.owner(event) if isinstance(event, Exchange) else 0) == unit.share
                    if is_own:
                        self._tell(event)
                    for at, rows in others:
                        # Whether a connection is shown depends on all of its exchanges.
                        is_asked = is_own or (is_exchange and unit.share == 0 and rows.name == "connections")
                        if is_asked and rows.takes(event):
                            for batch in rows.feed(event):
                                yield at, batch
            for at, each in tables:
                for batch in each.close():
                    yield at, batch
        self._note.write()

    def outcome(self, written: tuple[Written, ...]) -> Outcome:
        """What came of it."""
        return Outcome(self._note.read, written, self._damage, self._is_faulty)

    def _tell(self, event: Event) -> None:
        note, job = self._note, self._job
        if isinstance(event, Exchange):
            note.rows_of(size_of(event))
        elif isinstance(event, Fault) and event.layer == "file":
            note.damage += 1
            if len(self._damage) < job.settings.limits.rows:
                self._damage.append(event)
        if job.asks_faults and not self._is_faulty:
            self._is_faulty = any(True for _ in sources_of("faults", event, job.settings.shown))


def _rows_of(wanted: Wanted, unit: Unit) -> TableRows | PacketRows:
    settings = wanted.settings
    if settings.table == "packets":
        at_point = table_at(wanted.table, unit.point, settings.head)
        return PacketRows(at_point, settings.limits, unit.share, unit.shares)
    return TableRows(wanted.table, unit.point, settings, Choice(settings))


def _told(outcome: Outcome) -> pa.RecordBatch:
    return pa.record_batch([pa.array([pickle.dumps(outcome)], pa.binary())], schema=_OUTCOME)
