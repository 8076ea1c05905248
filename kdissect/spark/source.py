"""``spark.read.format("kdissect")``: capture files → a table, by replicas (:mod:`kdissect.spark.replay`).

A user's mistake, or a missing path, is reported in one line, without the stack of a worker.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from kdissect.capture.reader import Points
from kdissect.dissect import Event
from kdissect.lazy import Later
from kdissect.model import CaptureError
from kdissect.present.arrow import RowBatches
from kdissect.present.columns import Table
from kdissect.present.options import PLAIN
from kdissect.spark.catalog_tables import PLACES, is_created, is_ours, options_of, remembering
from kdissect.spark.fault_reports import News, fault_accumulator, send_faults, sending_faults
from kdissect.spark.launch import STREAMS_SINCE, can_stream
from kdissect.spark.plan import CapturePoint, capture_points, replicas_of, task_numbers
from kdissect.spark.progress import Note
from kdissect.spark.pushed import ALL, Pushed
from kdissect.spark.replay import damage_of, packets_of, share_of
from kdissect.spark.row_filter import Choice
from kdissect.spark.rows import PacketRows, batches_of
from kdissect.spark.settings import TableSettings
from kdissect.spark.states import StateError
from kdissect.spark.storage import list_files, refuse_password, refuse_unreadable
from kdissect.spark.tables import POINT, ddl, table_at, types, with_point
from kdissect.spark.user_errors import in_one_line

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
else:
    pa = Later("pyarrow")


class CaptureSource(DataSource):
    """The data source that Spark finds under the name ``kdissect``."""

    news: News | None = None
    """Sends faults of files from its tasks to the driver."""

    @classmethod
    def name(cls) -> str:
        """The name of the format for users."""
        return "kdissect"

    def schema(self) -> str | StructType:
        """The columns of the rows. For ``CREATE TABLE`` it also holds the options, which Spark forgets.

        :raises ValueError: an option is wrong, or there is no such option, table, statistic or column.
        """
        options = self.options
        with in_one_line():
            table = _settings_of(options, _OF_STREAMS).chosen_table()
            if any(each in options for each in PLACES):
                for path in _paths_of(options):
                    refuse_password(path)  # the catalog would keep it where everybody can read it
            return remembering(table, options) if is_created(options) else ddl(table)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The reader that follows a folder. Wrong options are reported when it is first used."""
        try:
            return _stream_of(self.options, schema, self.news)
        except (LookupError, ValueError, CaptureError, StateError) as error:
            return _NoStream(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Refuse to write.

        :raises ValueError: always; the text says why.
        """
        with in_one_line():
            raise ValueError("kdissect reads captures, and writes none")

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of captures.

        :param schema: the schema of the table, or some of its columns.
        :raises ValueError: an option is wrong, or there is no such option, table, statistic or column.
        :raises CaptureError: no path is given, or none of the files is a capture.
        """
        with in_one_line():
            options = options_of(schema, self.options)
            settings, paths = _settings_of(options), _paths_of(options)
            names = tuple(schema.fieldNames())
            table = _selected(settings._replace(columns=()).chosen_table(), schema)
            # If nothing can be read, that is reported before any task starts.
            refuse_unreadable([file.path for file in list_files(paths)])
            if settings.stats is not None:
                return FoldReader(settings._replace(columns=names), paths, self.news, Pushed.of(schema))
            return CaptureReader(settings, paths, table, self.news, Pushed.of(schema))


def called(title: str, news: News | None = None) -> type[CaptureSource]:
    """The source under this name, which is the only thing that a plan shows of a source in Python.

    :param news: sends faults of files from its tasks to the driver.
    """
    return type("NamedSource", (CaptureSource,), {"name": classmethod(lambda _: title), "news": news})


def make_known(spark: SparkSession, source: type[CaptureSource]) -> None:
    """Register a source with a session. Spark refuses a name that the active session has, which may be
    another one; so this session is the active one meanwhile."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        spark.dataSource.register(source)
        return
    sessions = getattr(spark._jvm, "org.apache.spark.sql.classic.SparkSession")
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        spark.dataSource.register(source)
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


class _NoStream(DataSourceStreamReader):
    """Says why there is no stream when it is asked for its beginning or its end: Spark 4.1 asks for the end
    first if the trigger is ``availableNow``. Spark 4.3 loses earlier messages."""

    def __init__(self, why: Exception) -> None:
        self._why = why

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        with in_one_line():
            raise self._why

    def latestOffset(self, *_: Any) -> dict[str, int]:  # noqa: N802 - Spark's name; 4.1 gives no arguments
        with in_one_line():
            raise self._why

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return iter(())


_OF_STREAMS = frozenset(("state", "statekey", "drain", "maxbytesperbatch", "settleseconds"))
"""The options that only streams have, in the form of :func:`_plain`."""


def _stream_of(options: Mapping[str, str], schema: StructType, news: News | None) -> DataSourceStreamReader:
    """The reader that follows a folder.

    :raises ValueError: this Spark has no such streams, or an option is wrong.
    """
    if not can_stream():
        raise ValueError(f"a stream needs Spark {STREAMS_SINCE} or newer")
    from kdissect.spark import table_stream

    options = options_of(schema, options)
    settings = _settings_of(options, _OF_STREAMS)
    named = {_plain(name): name for name in table_stream.OPTIONS}
    own = {named[_plain(key)]: value for key, value in options.items() if _plain(key) in named}
    (path, *more) = _paths_of(options)
    if more:
        raise ValueError("a stream reads one folder")
    for each in (path, own.get("state", "")):
        refuse_password(each)  # Spark keeps it in its checkpoint
    table = _selected(settings._replace(columns=()).chosen_table(), schema)
    return table_stream.TableStream({**own, "path": path}, settings, table, news)


def _settings_of(options: Mapping[str, str], without: Container[str] = ()) -> TableSettings:
    """The settings of the options, without the places of captures.

    :param without: options to ignore, in the form of :func:`_plain`.
    """
    own = {key: value for key, value in options.items() if is_ours(key) and key.lower() not in PLACES}
    return TableSettings.of({key: value for key, value in own.items() if _plain(key) not in without})


def _paths_of(options: Mapping[str, str]) -> list[str]:
    """The paths that ``load`` got.

    :raises CaptureError: they are no paths.
    """
    several = options.get("paths")
    if several is None:
        return [options["path"]]
    try:
        found = json.loads(several)
    except ValueError:
        found = None
    if not isinstance(found, list) or not found or not all(isinstance(each, str) for each in found):
        raise CaptureError(f"paths: a list of paths in JSON, not {several!r}; load(paths) makes one")
    return found


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _selected(table: Table, schema: StructType) -> Table:
    """The columns that a schema names, which the user may have given.

    :raises ValueError: a column has another type.
    """
    chosen = table.select(schema.fieldNames())
    if [field.dataType.simpleString() for field in schema] != types(chosen):
        raise ValueError(f"the schema has other types than kdissect: {ddl(chosen)}")
    return chosen


def _points(settings: TableSettings, paths: list[str], pushed: Pushed) -> Sequence[CapturePoint]:
    """The capture points that may have rows.

    :raises CaptureError: there are no such captures.
    :raises ValueError: a capture belongs to no capture point.
    """
    points = capture_points(list_files(paths), settings.capture_point)
    if settings.capture_point is None:
        return points
    return [point for point in points if pushed.may_have(POINT, point.name or None)]


class SourceTask(InputPartition):
    """The work of a task: the share ``index`` of ``count`` of a capture point's rows."""

    def __init__(self, point: str, paths: tuple[str, ...], index: int, count: int) -> None:
        super().__init__(index)
        self.point = point
        self.paths = paths
        self.index = index
        self.count = count


class CountingTask(InputPartition):
    """The work of a task that counts all of one capture point."""

    def __init__(self, name: str, paths: tuple[str, ...], index: int, points: Points | None) -> None:
        super().__init__(index)
        self.name = name
        self.paths = paths
        self.index = index
        self.points = points


def _is_no_task(partition: InputPartition) -> bool:
    """Whether there are no tasks. Spark then makes one itself."""
    return partition.value is None


class FoldReader(DataSourceReader):
    """Reads a statistic, or findings.

    It imports folds and rules when it needs them. For each scan Spark starts a Python that imports this
    module, and half of that time would be theirs.
    """

    def __init__(
        self, settings: TableSettings, paths: list[str], news: News | None = None, pushed: Pushed = ALL
    ) -> None:
        self._settings = settings
        self._pushed = pushed
        self._news = news
        self._paths = paths
        Choice(settings)  # errors are reported before any task starts
        settings.refuse_unusable()

    def partitions(self) -> Sequence[InputPartition]:
        """A task for each capture point.

        :raises CaptureError: there are no such captures.
        :raises ValueError: a capture belongs to no capture point.
        """
        from kdissect.spark.folds import several_points

        settings = self._settings
        with in_one_line():
            points = _points(settings, self._paths, self._pushed)
            return [
                CountingTask(point.name, point.paths, at, several_points(point, settings))
                for at, point in enumerate(points)
            ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a capture point, as record batches of Arrow."""
        if _is_no_task(partition):
            return
        from kdissect.spark.folds import counted_alone
        from kdissect.spark.questions import Judgement, asked_tables

        assert isinstance(partition, CountingTask)
        settings, stats = self._settings, self._settings.stats
        assert stats is not None
        with in_one_line():
            settings.refuse_unusable()  # this may be another machine
        question, _ = asked_tables((stats,), Judgement(settings.limits, {}, ()))
        note = Note(settings.progress, f"stats-{partition.index}")
        counted = counted_alone(partition.paths, settings, question, note, partition.points)
        send_faults(self._news, counted.damage, partition.paths)
        (made,) = counted.rows
        (table,) = question.tables
        at_point = with_point(table, settings.capture_point is not None, partition.name)
        chosen = at_point.select(settings.columns)
        rows = RowBatches(chosen)
        passes = self._pushed.of_sources(chosen, PLAIN) if self._pushed else None
        for row in made.rows:
            if passes is not None and not passes(row):
                continue
            if (batch := rows.add(row)) is not None:
                yield batch
        if (batch := rows.take()) is not None:
            yield batch


class CaptureReader(DataSourceReader):
    """Reads a table."""

    def __init__(
        self,
        settings: TableSettings,
        paths: list[str],
        table: Table,
        news: News | None = None,
        pushed: Pushed = ALL,
    ) -> None:
        self._settings = settings
        self._pushed = pushed
        self._news = news
        self._paths = paths
        self._names = tuple(column.name for column in table.columns)
        Choice(settings)  # errors are reported before any task starts
        settings.refuse_unusable()

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks. Several may share a capture point, and each of them reads and dissects all of it.

        :raises CaptureError: there are no such captures.
        :raises ValueError: a capture belongs to no capture point.
        """
        settings = self._settings
        shares: list[InputPartition] = []
        with in_one_line():
            points = _points(settings, self._paths, self._pushed)
        for point in points:
            count = replicas_of(point, settings)
            if settings.table == "connections" or settings.layer == "file":
                count = 1
            shares += [SourceTask(point.name, point.paths, index, count) for index in range(count)]
        return shares

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a task, as record batches of Arrow."""
        if _is_no_task(partition):
            return
        assert isinstance(partition, SourceTask)
        settings, share = self._settings, partition
        with in_one_line():
            settings.refuse_unusable()  # this may be another machine
        note = Note(settings.progress, f"{settings.table}-{share.index}")
        full = settings.full_table(settings.table)
        table = full.select(self._names)
        if settings.table == "packets":
            own = table_at(table, share.point, settings.head)
            rows = PacketRows(own, settings.limits, share.index, share.count, self._pushed)
            for items in packets_of(share.paths, settings, note):
                note.damage += send_faults(self._news, items, share.paths)
                yield from rows.feed(items)
            note.write()
            yield from rows.close()
            return
        choice = Choice(settings)
        events: Iterable[Event] = (
            damage_of(share.paths, settings, note)
            if settings.layer == "file"
            else share_of(share.paths, settings, share.index, share.count, note)
        )
        told = sending_faults(self._news, events, share.paths)
        yield from batches_of(told, table, share.point, settings, choice, note, self._pushed)


def replicated(spark: SparkSession, settings: TableSettings, paths: list[str]) -> DataFrame:
    """The same rows without the data source. The data source needs its plan from a Python on the driver, but
    the workers' Python may be in an archive that only workers unpack.

    :raises LookupError: there is no such table or column.
    :raises CaptureError: there are no such captures.
    :raises ValueError: an option is wrong, or a capture belongs to no capture point.
    """
    table = settings.chosen_table()
    reader = CaptureReader(settings, paths, table, fault_accumulator(spark))
    shares = reader.partitions()
    every = spark.range(0, len(shares), 1, len(shares))
    return every.mapInArrow(partial(_read_shares, reader, shares), ddl(table))


def _read_shares(
    reader: CaptureReader, shares: Sequence[InputPartition], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for number in task_numbers(batches):
        yield from reader.read(shares[number])
