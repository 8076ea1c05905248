"""A folder in which captures appear → tables that grow, exactly once.

    folder ─► which bytes are next (the source below) ─► one task a capture point: what is carried + bytes
           ─► its rows, by several tasks where much is new ─► the tables' folders ``batch=N``

Before a batch runs, Spark stores what it reads. A repeated batch reads the same bytes and the same state, and
replaces its folders. So in the end each row is there once, whenever a process is killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from kdissect.model import Fault
from kdissect.spark.cleaning import KEEP, clear
from kdissect.spark.compaction import compact, finish
from kdissect.spark.job import batch_units
from kdissect.spark.metrics import StreamMetrics
from kdissect.spark.micro_batch import UPGRADED
from kdissect.spark.questions import Judgement
from kdissect.spark.settings import TableSettings
from kdissect.spark.spool import (
    SETTLE_SECONDS,
    FileSpan,
    Position,
    SpoolFolder,
    of_offset,
    spans_between,
    to_offset,
)
from kdissect.spark.states import States
from kdissect.spark.table_set import BatchOptions, MadeTables, add_batch
from kdissect.spark.targets import ParquetFolder
from kdissect.spark.writing import can_write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_SPANS_DDL = (
    "point string, path string, size bigint, is_final boolean, first_ns bigint, is_settled boolean, "
    "is_gone boolean"
)

BATCH = "batch"
"""The partition with the number of the batch."""
_OF_FOLDERS = ("capture_point", "limits")
"""The settings for listing a folder."""


class FolderSource(DataSource):
    """The spans of files that are read next; options ``path``, ``most_bytes``, ``settle_seconds``,
    ``when_read`` (:func:`~kdissect.spark.cleaning.clear`), and ``capture_point`` and ``limits`` as of
    :class:`~kdissect.spark.settings.TableSettings`."""

    @classmethod
    def name(cls) -> str:
        """The format by which :func:`start` names it."""
        return "kdissect-folder"

    def schema(self) -> str:
        """The fields of :class:`~kdissect.spark.spool.FileSpan`."""
        return _SPANS_DDL

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return FolderReader(dict(self.options))


class Spans(InputPartition):
    """The spans of a batch."""

    def __init__(self, spans: list[FileSpan]) -> None:
        super().__init__(0)
        self.spans = spans


class FolderReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the folder. Offsets are positions, as :func:`~kdissect.spark.spool.to_offset` gives them.

    :raises ValueError: an option is wrong.
    """

    def __init__(self, options: dict[str, str]) -> None:
        self._most_bytes = int(options["most_bytes"]) if "most_bytes" in options else None
        own = {name: options[name] for name in _OF_FOLDERS if options.get(name)}
        settings = TableSettings.of(own)
        settle = float(options.get("settle_seconds", SETTLE_SECONDS))
        self._spool = SpoolFolder(options["path"], settings.capture_point, settings.limits, settle)
        self._when_read = options.get("when_read", KEEP)
        self._end: Position | None = None
        """The end of a run that reads only existing files."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return to_offset({})

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit of bytes of files in a batch."""
        return ReadAllAvailable() if self._most_bytes is None else ReadMaxBytes(self._most_bytes)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """How far the next batch reads; ``start`` itself if there is nothing to read.

        :raises CaptureError: the folder cannot be listed.
        :raises ValueError: a file belongs to no capture point.
        """
        most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        return to_offset(self._spool.next(of_offset(start), most, self._end))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Ignore files and bytes that come after this call."""
        self._end = self._spool.next({})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One task, which only names the spans of a batch. Other tasks read them."""
        return [Spans(spans_between(of_offset(start), of_offset(end), self._spool.rule))]

    def commit(self, end: dict[str, Any]) -> None:
        """Delete or move captures that batches up to here read to their end, if the user wants that."""
        clear(of_offset(end), self._spool.folder, self._when_read)

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The spans of the batch, in the order in which they are read."""
        assert isinstance(partition, Spans)
        return iter([tuple(span) for span in partition.spans])


class Tables:
    """The tables of a stream, and how a batch adds to them."""

    def __init__(
        self,
        out: str,
        states: States,
        names: Sequence[str],
        settings: TableSettings,
        report: Callable[[list[Fault]], None] | None = None,
        shown: Callable[[int], AbstractContextManager[object]] | None = None,
        judgement: Judgement | None = None,
        metrics: StreamMetrics | None = None,
    ) -> None:
        """
        :param out: the folder of the tables.
        :param names: the tables to write.
        :param report: receives the damage to files in a batch.
        :param shown: returns, for a batch number, a context that shows a line with the progress.
        :param judgement: how to judge findings, which become a further table.
        """
        self._report = report
        self._shown = shown
        self._target = ParquetFolder(out.rstrip("/"), BATCH)
        self._states = states
        self._asked = BatchOptions(tuple(names), (), settings, finds=judgement is not None)
        self._judgement = judgement
        self._metrics = metrics
        self._has_upgraded = False
        """Whether a batch ended a state of another build."""

    def recover(self) -> None:
        """Finish the work of a process that died.

        :raises OSError: a file cannot be read or moved.
        """
        for name in self._asked.written:
            if can_write(self._target.where):
                finish(self._target.folder(name))

    def add(self, frame: DataFrame, batch: int) -> None:
        """Do a batch: read its spans and write its folders. A repeat of a batch replaces them.

        :param frame: spans, as :class:`FolderSource` gives them.
        :param batch: its number.
        :raises StateError: the state of the batch before cannot be used.
        :raises TargetError: rows cannot be written.
        """
        spans = [FileSpan(*row) for row in frame.collect()]
        if self._states.is_draining(batch - 1):
            for name in self._asked.written:
                self._target.remove(name, -batch)  # from a drain that died
        with nullcontext() if self._shown is None else self._shown(batch):
            made = self._run(frame.sparkSession, batch, [span.point for span in spans], spans)
        self._states.forget()
        if made.folder is not None:  # otherwise only Spark reaches them
            for name in self._asked.written:
                compact(self._target.folder(name), batch)

    def end(self, spark: SparkSession) -> None:
        """Write what is open, as a batch after the last one. If the stream goes on, its next batch replaces
        that."""
        last = self._states.last_batch()
        if last is not None:
            self._run(spark, last + 1, self._states.points(), None)

    def drain(self, spark: SparkSession) -> None:
        """Write what is open, and begin connections anew after that. The rows have their own folder with a
        negative number: ``batch=-8`` comes before batch 8. If batches of this process ended all states of
        another build, nothing is to be done."""
        last = self._states.last_batch()
        if last is not None and self._has_upgraded and not self._states.of_others(last + 1):
            return
        if last is not None and not self._states.is_drained(last):
            self._run(spark, last + 1, self._states.points(), None, drained_at=last)
            self._states.end_drain(last)

    def _run(
        self,
        spark: SparkSession,
        batch: int,
        points: Iterable[str],
        spans: list[FileSpan] | None,
        drained_at: int | None = None,
    ) -> MadeTables:
        open_units = partial(batch_units, self._states, batch, points, spans)
        units = partial(open_units, drained_at=drained_at, judgement=self._judgement)
        begun = time.monotonic()
        tallies, owner = self._metrics is not None, self._states.folder
        # A batch should be visible soon; compaction joins its files later.
        made = add_batch(spark, units, self._asked, self._target, tallies, owner, joins=False)
        self._has_upgraded |= any(each.kind == UPGRADED for each in made.damage)
        # Damage is reported, whether or not the table of faults is written.
        if self._report is not None:
            self._report(made.damage)
        made.write(overwrite=True, run=batch if drained_at is None else -batch)
        if self._metrics is not None:
            self._metrics.batch(batch, time.monotonic() - begun, made)
        return made


def start(
    spark: SparkSession,
    folder: str,
    tables: Tables,
    checkpoint: str,
    settings: TableSettings,
    most_bytes: int | None,
    settle_seconds: float,
    trigger: dict[str, Any],
    when_read: str = KEEP,
) -> StreamingQuery:
    """Begin, or continue, to read a folder.

    :param checkpoint: the folder in which Spark keeps how far it has read.
    :param most_bytes: the most bytes of files in one batch, but at least one file; None for no limit.
    :param settle_seconds: see :mod:`kdissect.spark.spool`.
    :param when_read: as :func:`~kdissect.spark.cleaning.clear` takes it.
    :param trigger: as Spark's ``trigger`` takes it.
    """
    tables.recover()
    spark.dataSource.register(FolderSource)
    reader = spark.readStream.format(FolderSource.name()).option("settle_seconds", str(settle_seconds))
    reader = reader.option("when_read", when_read)
    if most_bytes is not None:
        reader = reader.option("most_bytes", str(most_bytes))
    for name, value in settings.options().items():
        if name in _OF_FOLDERS:
            reader = reader.option(name, value)
    writer = reader.load(folder).writeStream.foreachBatch(tables.add)
    return writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()
