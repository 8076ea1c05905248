"""``spark.read.format("kdissect")``: capture files → a table, by replicas (:mod:`kdissect.spark.replay`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from kdissect.model import CaptureError, Fault
from kdissect.present.columns import Table
from kdissect.spark.choice import Choice, Condition, condition_of
from kdissect.spark.packing import task_numbers
from kdissect.spark.plan import capture_points, replicas_of
from kdissect.spark.progress import Note
from kdissect.spark.replay import damage_of, packets_of, share_of
from kdissect.spark.rows import batches_of, packet_batches
from kdissect.spark.settings import Settings
from kdissect.spark.storage import list_files
from kdissect.spark.tables import ddl, table_at, types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class CaptureSource(DataSource):
    """What Spark finds under the name ``kdissect``."""

    @classmethod
    def name(cls) -> str:
        return "kdissect"

    @property
    def _settings(self) -> Settings:
        own = {key: value for key, value in self.options.items() if key.lower() not in ("path", "paths")}
        return Settings.of(own)

    @property
    def _paths(self) -> list[str]:
        """What ``load`` was given."""
        several = self.options.get("paths")
        if several is not None:
            return [str(each) for each in json.loads(several)]
        one = self.options.get("path")
        if one is None:
            raise CaptureError("no capture is given: load(paths) names files or directories")
        return [one]

    def schema(self) -> str:
        return ddl(self._table())

    def reader(self, schema: StructType) -> DataSourceReader:
        settings = self._settings
        table = _selected(self._table(), schema)
        kind = PushingReader if settings.pushdown else CaptureReader
        return kind(settings, self._paths, table)

    def _table(self) -> Table:
        settings = self._settings
        return settings.full_table(settings.table)


def _selected(table: Table, schema: StructType) -> Table:
    """The columns that a schema names, which may be given by the user.

    :raises ValueError: a column has another type.
    """
    chosen = table.select(schema.fieldNames())
    if [field.dataType.simpleString() for field in schema] != types(chosen):
        raise ValueError(f"these columns are: {ddl(chosen)}")
    return chosen


class Share(InputPartition):
    """What a task does."""

    def __init__(self, point: str, paths: tuple[str, ...], index: int, count: int) -> None:
        super().__init__(index)
        self.point = point
        self.paths = paths
        self.index = index
        self.count = count


class CaptureReader(DataSourceReader):
    """Reads a table."""

    def __init__(self, settings: Settings, paths: list[str], table: Table) -> None:
        self._settings = settings
        self._paths = paths
        self._names = tuple(column.name for column in table.columns)
        self._conditions: list[Condition] = []
        Choice(settings)  # a filter that is none is told before any task starts

    def partitions(self) -> Sequence[InputPartition]:
        settings = self._settings
        shares: list[InputPartition] = []
        for point in capture_points(list_files(self._paths), settings.capture_point):
            count = replicas_of(point, settings)
            if settings.table == "connections" or settings.layer == "file":
                count = 1
            shares += [Share(point.name, point.paths, index, count) for index in range(count)]
        return shares

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Share)
        settings, share = self._settings, partition
        note = Note(settings.progress, f"{settings.table}-{share.index}")
        full = settings.full_table(settings.table)
        table = table_at(full.select(self._names), share.point, settings.head)
        if settings.table == "packets":
            items = packets_of(share.paths, settings)
            yield from packet_batches(items, table, settings.limits, share.index, share.count, note)
            return
        choice = Choice(settings, self._conditions)
        if settings.layer == "file":
            damage: Iterable[Fault] = damage_of(share.paths, settings, note)
            yield from batches_of(damage, table, settings, choice, note)
            return
        events = share_of(share.paths, settings, share.index, share.count, note)
        yield from batches_of(events, table, settings, choice, note)


def replicated(spark: SparkSession, settings: Settings, paths: list[str]) -> DataFrame:
    """The same rows without the data source. The data source asks the driver's Python for its plan, and the
    workers' Python may be in an archive that only they unpack.
    """
    table = settings.full_table(settings.table)
    reader = CaptureReader(settings, paths, table)
    shares = reader.partitions()
    every = spark.range(0, len(shares), 1, len(shares))
    return every.mapInArrow(partial(_read_shares, reader, shares), ddl(table))


def _read_shares(
    reader: CaptureReader, shares: Sequence[InputPartition], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for number in task_numbers(batches):
        yield from reader.read(shares[number])


class PushingReader(CaptureReader):
    """Takes filters from Spark. PySpark refuses a reader that can do so while the configuration
    ``spark.sql.python.filterPushdown.enabled`` is off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        for each in filters:
            condition = condition_of(self._settings.table, each)
            if condition is None:
                yield each
            else:
                self._conditions.append(condition)
