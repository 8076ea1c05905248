"""A folder in which captures appear → tables that grow, exactly once.

    folder ─► which bytes are next (the source below) ─► one task a capture point: what is carried + bytes
           ─► the tables' folders ``batch=N``

Spark keeps which batch read what before it runs. A batch that is repeated reads the same bytes and the same
state, and replaces its folders. So each row is there once in the end, whenever a process is killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.present.columns import Table
from kdissect.spark.carried import States
from kdissect.spark.choice import Choice
from kdissect.spark.progress import Note
from kdissect.spark.replay import size_of
from kdissect.spark.rows import PointRows
from kdissect.spark.settings import TableSettings
from kdissect.spark.shape import epochs, with_moments
from kdissect.spark.spool import (
    SETTLE_SECONDS,
    FileSpan,
    Position,
    SpoolFolder,
    of_offset,
    spans_between,
    to_offset,
)
from kdissect.spark.step import events_at_end, events_of_batch, events_of_drain
from kdissect.spark.wide import Widener, table_in, wide_ddl
from kdissect.spark.writing import remove

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_SPANS_DDL = (
    "point string, path string, size bigint, is_final boolean, first_ns bigint, is_settled boolean, "
    "is_gone boolean"
)

_OF_FOLDERS = ("capture_point", "limits")
"""The settings by which a folder is looked at."""


class FolderSource(DataSource):
    """The spans of files that are read next; options ``path``, ``most_bytes``, ``settle_seconds``, and
    ``capture_point`` and ``limits`` as of :class:`~kdissect.spark.settings.TableSettings`."""

    @classmethod
    def name(cls) -> str:
        return "kdissect-folder"

    def schema(self) -> str:
        return _SPANS_DDL

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return FolderReader(dict(self.options))


class Spans(InputPartition):
    """What a batch reads."""

    def __init__(self, spans: list[FileSpan]) -> None:
        super().__init__(0)
        self.spans = spans


class FolderReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the folder."""

    def __init__(self, options: dict[str, str]) -> None:
        self._most_bytes = int(options["most_bytes"]) if "most_bytes" in options else None
        own = {name: options[name] for name in _OF_FOLDERS if options.get(name)}
        settings = TableSettings.of(own)
        settle = float(options.get("settle_seconds", SETTLE_SECONDS))
        self._spool = SpoolFolder(options["path"], settings.capture_point, settings.limits, settle)
        self._end: Position | None = None
        """Where a run stops that reads what is there now."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return to_offset({})

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self._most_bytes is None else ReadMaxBytes(self._most_bytes)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        return to_offset(self._spool.next(of_offset(start), most, self._end))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._end = self._spool.next({})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [Spans(spans_between(of_offset(start), of_offset(end), self._spool.rule))]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, Spans)
        return iter([tuple(span) for span in partition.spans])


class Tables:
    """The tables of a stream, and how a batch adds to them."""

    def __init__(
        self,
        out: str,
        states: str,
        names: Sequence[str],
        settings: TableSettings,
        tell: Callable[[DataFrame], None] | None = None,
        shown: Callable[[int], AbstractContextManager[object]] | None = None,
    ) -> None:
        """:param tell: is given the damage to files that a batch met.
        :param shown: what is open while a batch of this number is run: a line that tells how far it is.
        """
        self._tell = tell
        self._shown = shown
        self._out = out.rstrip("/")
        self._states = states
        self._names = tuple(names)
        self._settings = settings

    def add(self, frame: DataFrame, batch: int) -> None:
        """A batch: read its spans and write its folders."""
        spans = [FileSpan(*row) for row in frame.collect()]
        if States(self._states).is_draining(batch - 1):
            for name in self._names:
                remove(self._folder(name, -batch))  # of a drain that died
        with nullcontext() if self._shown is None else self._shown(batch):
            self._run(frame.sparkSession, batch, [span.point for span in spans], spans)
        States(self._states).forget()

    def end(self, spark: SparkSession) -> None:
        """Write what is open, as a batch of its own behind the last one. If the stream goes on, its next
        batch takes that place."""
        states = States(self._states)
        last = states.last_batch()
        if last is not None:
            self._run(spark, last + 1, states.points(), None)

    def drain(self, spark: SparkSession) -> None:
        """Write what is open, and begin connections anew after that. The rows have a folder of their own,
        whose number is negative: ``batch=-8`` comes before the batch 8."""
        states = States(self._states)
        last = states.last_batch()
        if last is not None and not states.is_drained(last):
            self._run(spark, last + 1, states.points(), None, drained_at=last)
            states.end_drain(last)

    def _folder(self, name: str, batch: int) -> str:
        return f"{self._out}/{name}/batch={batch}"

    def _run(
        self,
        spark: SparkSession,
        batch: int,
        points: Iterable[str],
        spans: list[FileSpan] | None,
        drained_at: int | None = None,
    ) -> None:
        tasks = sorted(set(points))
        settings = self._settings
        # Damage is told, whether the table of faults is wanted or not.
        known = self._names if self._tell is None else dict.fromkeys((*self._names, "faults"))
        tables = tuple(_table(name, settings) for name in known)
        schema = wide_ddl((table.name, table) for table in tables)
        work = partial(step, tuple(tasks), spans, self._states, batch, tables, settings, drained_at)
        rows = spark.range(0, max(1, len(tasks)), 1, max(1, len(tasks))).mapInArrow(work, schema).persist()
        try:
            for table in tables:
                own = table_in(rows, table.name)
                if table.name in self._names:
                    writer = (
                        with_moments(own, epochs(table)).write.mode("overwrite").option("compression", "zstd")
                    )
                    writer.parquet(self._folder(table.name, batch if drained_at is None else -batch))
                if table.name == "faults" and self._tell is not None:
                    self._tell(own.where("layer = 'file'"))
        finally:
            rows.unpersist()


def start(
    spark: SparkSession,
    folder: str,
    tables: Tables,
    checkpoint: str,
    settings: TableSettings,
    most_bytes: int | None,
    settle_seconds: float,
    trigger: dict[str, Any],
) -> StreamingQuery:
    """Begin, or go on, to read a folder.

    :param checkpoint: the folder in which Spark keeps how far it is.
    :param settle_seconds: see :mod:`kdissect.spark.spool`.
    :param trigger: as Spark's ``trigger`` takes it.
    """
    spark.dataSource.register(FolderSource)
    reader = spark.readStream.format(FolderSource.name()).option("settle_seconds", str(settle_seconds))
    if most_bytes is not None:
        reader = reader.option("most_bytes", str(most_bytes))
    for name, value in settings.options().items():
        if name in _OF_FOLDERS:
            reader = reader.option(name, value)
    writer = reader.load(folder).writeStream.foreachBatch(tables.add)
    return writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()


def _table(name: str, settings: TableSettings) -> Table:
    return settings.full_table(name)


def step(
    points: Sequence[str],
    spans: list[FileSpan] | None,
    states: str,
    batch: int,
    tables: Sequence[Table],
    settings: TableSettings,
    drained_at: int | None,
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """What a task does: the events of its capture point → rows of all tables, each in its column.

    :param spans: what is read; None: nothing more, and what is open comes to light.
    :param drained_at: the batch whose drained state is kept then, if connections begin anew.
    """
    for each in numbers:
        for number in each.column(0).to_pylist():
            if number >= len(points):
                continue
            point = points[number]
            folder = States(states)
            note = Note(settings.progress, f"batch-{batch}-{number}")
            if drained_at is not None:
                events = events_of_drain(folder, batch, point, settings, drained_at)
            elif spans is None:
                events = events_at_end(folder, batch, point, settings)
            else:
                own = [span for span in spans if span.point == point]
                events = events_of_batch(folder, batch, point, own, settings, note)
            rows = [_rows_of(table, point, settings) for table in tables]
            yield from _wide_batches(events, rows, note)
            note.write()


def _rows_of(table: Table, point: str, settings: TableSettings) -> PointRows:
    return PointRows(table, point, settings, Choice(settings._replace(table=table.name)))


def _wide_batches(
    events: Iterable[Event], tables: Sequence[PointRows], note: Note
) -> Iterator[pa.RecordBatch]:
    widener = Widener([(rows.name, rows.schema) for rows in tables])
    for event in events:
        if isinstance(event, Exchange):
            note.rows_of(size_of(event))
        for at, rows in enumerate(tables):
            if rows.takes(event):
                yield from widener.widened(at, rows.feed(event))
    for at, rows in enumerate(tables):
        yield from widener.widened(at, rows.close())
