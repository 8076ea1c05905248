"""Several tables of the same captures: made in one pass (:mod:`kdissect.spark.one_pass`), then written to a
target.

A table that needs no more work goes to the target in the files that tasks wrote, after small files were
joined (:mod:`kdissect.spark.joining`). Spark processes tables that need all rows together: partitions, and
merging the copies of an exchange from several capture points.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from kdissect.model import Fault
from kdissect.spark.changes import FINDING_CHANGES
from kdissect.spark.copies import merged, of_exchanges
from kdissect.spark.job import BatchUnit, Job, RequestedTable, RunCounts, TaskOutcome, Unit, units_of
from kdissect.spark.job_descriptions import described
from kdissect.spark.joining import joined
from kdissect.spark.one_pass import wide_tables, write_tables
from kdissect.spark.plan import Plan
from kdissect.spark.settings import TableSettings
from kdissect.spark.shared_folders import is_local, spare_folder
from kdissect.spark.sinks import TaskFile
from kdissect.spark.storage import is_remote, join, without_query
from kdissect.spark.table_layout import (
    epochs,
    moments_ddl,
    needs_places,
    of_connections,
    partitioned,
    parts_of,
    with_moments,
)
from kdissect.spark.target_files import Staged, TargetError
from kdissect.spark.targets import Target
from kdissect.spark.wide_rows import table_in
from kdissect.spark.writing import can_write, is_there, remove

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAGED = "_staged"
"""The beginning of the names of folders with files on their way."""
Units = Callable[[int | None], tuple[Unit | BatchUnit, ...]]
_CONNECTIONS, _EXCHANGES = "_connections", "_exchanges"
"""Tables that other tables need, in a form that is not written."""


class BatchOptions(NamedTuple):
    """What is written, and how."""

    tables: tuple[str, ...]
    by: tuple[str, ...]
    """The columns by which they are partitioned."""
    settings: TableSettings
    merges: bool = False
    """Whether the copies of an exchange are merged into one row."""
    finds: bool = False
    """Whether there is a table of findings, which change from batch to batch."""

    @property
    def requested_tables(self) -> tuple[RequestedTable, ...]:
        """The tables that the tasks make."""
        settings = self.settings._replace(places=needs_places(self.by))
        found = [
            RequestedTable(name, settings._replace(table=name), has_moments=not self.needs_spark(name))
            for name in self.tables
        ]
        if settings.places and "faults" in self.tables:
            whole = settings._replace(table="connections", filter=None)
            found.append(RequestedTable(_CONNECTIONS, whole, has_moments=False))
        if self.merges and not {"records", "batches"}.isdisjoint(self.tables):
            bare = settings._replace(table="exchanges", payload="none")
            found.append(RequestedTable(_EXCHANGES, bare, has_moments=False))
        if self.finds:
            own = self.settings._replace(stats=FINDING_CHANGES.name)
            found.append(RequestedTable(FINDING_CHANGES.name, own))
        return tuple(found)

    @property
    def written(self) -> tuple[str, ...]:
        """The tables that a target gets."""
        return (*self.tables, FINDING_CHANGES.name) if self.finds else self.tables

    def needs_spark(self, name: str) -> bool:
        """Whether Spark must see all rows of a table together."""
        if name == FINDING_CHANGES.name:
            return False
        settings = self.settings._replace(places=needs_places(self.by))
        columns = [column.name for column in settings.full_table(name).columns]
        is_merged = self.merges and name in ("exchanges", "records", "batches")
        return is_merged or bool(parts_of(columns, name, self.by))


class MadeTables(NamedTuple):
    """Tables that tasks made, on their way to a target."""

    spark: SparkSession
    asked: BatchOptions
    target: Target
    outcomes: list[TaskOutcome]
    folder: str | None
    """The folder with their files; None if Spark keeps them."""
    wide: DataFrame | None
    files: tuple[TaskFile, ...] = ()
    """The files with the rows of the tables."""

    def write(self, overwrite: bool, run: int | None = None, origin: str | None = None) -> None:
        """Write the tables, and drop what the tasks made.

        :param run: the number of the run with these rows; None if tables are made as a whole.
        :param origin: the origin that tables store if they are made as a whole.
        :raises TargetError: they cannot be written.
        """
        try:
            for name in self.asked.written:
                with described(self.spark, f"write the table {name}"):
                    self._write(name, overwrite, run, origin)
        finally:
            self.close()

    @property
    def rows(self) -> int | None:
        """The number of rows of all tables; None if copies of an exchange are merged."""
        if self.asked.merges:
            return None
        return sum(map(self.rows_of, self.asked.tables))

    def rows_of(self, name: str) -> int:
        """The number of rows that the tasks made of a table."""
        return sum(each.rows.get(name, 0) for each in self.outcomes)

    @property
    def damage(self) -> list[Fault]:
        """The faults of files, as each task met them."""
        return [fault for each in self.outcomes for fault in each.damage]

    @property
    def tally(self) -> RunCounts:
        """The counts, if they were requested."""
        return reduce(RunCounts.plus, (each.tally for each in self.outcomes), RunCounts())

    @property
    def cpu_seconds(self) -> float:
        """Processor time of the tasks, without that of Spark itself."""
        return sum(each.cpu_seconds for each in self.outcomes)

    def close(self) -> None:
        """Drop what the tasks made: remove their files, or let Spark forget them."""
        if self.folder is not None:
            remove(self.folder)
        if self.wide is not None:
            self.wide.unpersist()

    def _write(self, name: str, overwrite: bool, run: int | None, origin: str | None) -> None:
        is_taken = self.target.room is not None and not self.asked.needs_spark(name)
        if self.folder is not None and is_taken:
            self.target.write(self._staged(self.folder, name), name, (), run, overwrite, origin)
            return
        by, frame = self.asked.by, self._frame(name)
        if self.asked.merges and name == "exchanges":
            frame = merged(frame)
        elif self.asked.merges and name in ("records", "batches"):
            frame = of_exchanges(frame, merged(self._frame(_EXCHANGES)))
        if name == "faults" and needs_places(by):
            frame = of_connections(frame, self._frame(_CONNECTIONS))
        wanted = self._requested(name)
        if self.wide is not None or not wanted.has_moments:
            frame = with_moments(frame, epochs(wanted.table))
        frame, parts = partitioned(frame, name, by)
        self.target.write(frame, name, parts, run, overwrite, origin)

    def _requested(self, key: str) -> RequestedTable:
        return next(each for each in self.asked.requested_tables if each.key == key)

    def _staged(self, folder: str, key: str) -> Staged:
        wanted = self._requested(key)
        files = tuple(file.path for file in self.files if file.table == key)
        return Staged(join(folder, key), files, wanted.schema)

    def _frame(self, key: str) -> DataFrame:
        if self.wide is not None:
            return table_in(self.wide, key)
        assert self.folder is not None
        wanted = self._requested(key)
        schema = moments_ddl(wanted.table, wanted.epochs)
        return self.spark.read.schema(schema).parquet(
            *map(without_query, self._staged(self.folder, key).files)
        )


def make_tables(
    spark: SparkSession, plan: Plan, asked: BatchOptions, target: Target, tallies: bool
) -> MadeTables:
    """Have the tasks make tables of whole captures. All jobs have ended when this returns.

    :param tallies: whether to count the faults of captures.
    :returns: the tables, which are not published yet: :meth:`MadeTables.write` gives them to the target.
    :raises TargetError: the driver cannot read what workers write.
    """

    def units(cores: int | None) -> tuple[Unit, ...]:
        on = plan if cores is None else plan.on(cores)
        return units_of(on.points, on.tasks, keeps=cores is not None)

    return _made(spark, units, asked, target, tallies, f"{STAGED}-{uuid.uuid4().hex[:12]}", joins=True)


def add_batch(
    spark: SparkSession,
    units: Units,
    asked: BatchOptions,
    target: Target,
    tallies: bool,
    owner: str,
    *,
    joins: bool,
) -> MadeTables:
    """Do the same as :func:`make_tables` for the new data. Files of a batch that died are removed.

    :param units: returns the tasks for a number of cores.
    :param owner: the folder of states, because other streams may write into the same warehouse.
    :param joins: whether to join small files of tasks.
    :raises TargetError: the driver cannot read what workers write.
    """
    name = f"{STAGED}-{hashlib.sha256(owner.encode()).hexdigest()[:12]}"
    return _made(spark, units, asked, target, tallies, name, joins)


def _made(
    spark: SparkSession,
    units: Units,
    asked: BatchOptions,
    target: Target,
    tallies: bool,
    name: str,
    joins: bool,
) -> MadeTables:
    """Have the tasks make tables.

    :param units: returns the work of the tasks, by how many of them can run at a time; None if tasks cannot
        keep events for others.
    :param name: the name of the folder for their files, if target, driver and workers share one.
    :raises TargetError: as for :func:`make_tables`.
    """
    folder = _folder(spark, target, name, asked.settings)
    cores = None if folder is None else spark.sparkContext.defaultParallelism
    job = Job(units(cores), asked.requested_tables, asked.settings, tallies)
    if folder is None:
        wide, outcomes = wide_tables(spark, job)
        return MadeTables(spark, asked, target, outcomes, None, wide)
    made = MadeTables(spark, asked, target, [], folder, None)
    try:
        outcomes = write_tables(spark, job, folder)
        files = [file for each in outcomes for file in each.written]
        lost = next((file.path for file in files if not is_there(file.path)), None)
        if lost is not None:
            raise TargetError(
                f"{lost}: a worker wrote it, but this machine does not see it; name a folder that all "
                "machines share"
            )
        if joins and target.room is not None:
            as_they_are = [each for each in asked.written if not asked.needs_spark(each)]
            files = joined(spark, files, as_they_are, folder)
        made = made._replace(outcomes=outcomes, files=tuple(files))
    except BaseException:
        made.close()
        raise
    return made


def _folder(spark: SparkSession, target: Target, name: str, settings: TableSettings) -> str | None:
    """A new folder for files on their way to a target, if driver and workers share one."""
    room = target.room
    if not (_shares_files(spark) or (room is not None and is_remote(room))):
        return None
    if room is None:
        return spare_folder(spark, settings)
    folder = join(room, name)
    if not can_write(folder):
        return None
    remove(folder)
    return folder


def _shares_files(spark: SparkSession) -> bool:
    """Whether a path without the name of a file system means the same to the driver, the workers and
    Spark."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return False
    if is_local(spark):
        return True
    usual = spark.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS")
    return str(usual).startswith("file:")
