"""Several tables of the same captures: made in one pass (:mod:`kdissect.spark.one_pass`), then written to a
target.

A table that is as the tasks made it goes to the target in files that tasks wrote. Small ones are joined
before (:mod:`kdissect.spark.joining`). Spark takes up what needs all rows of a table together: partitions,
and the copies that several capture points have of an exchange.
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
from kdissect.spark.described import described
from kdissect.spark.job import BatchUnit, Job, RunCounts, TaskOutcome, Unit, WantedTable, units_of
from kdissect.spark.joining import joined
from kdissect.spark.one_pass import wide_tables, write_tables
from kdissect.spark.plan import Plan
from kdissect.spark.rooms import is_local, spare_folder
from kdissect.spark.settings import TableSettings
from kdissect.spark.shape import (
    epochs,
    moments_ddl,
    needs_places,
    of_connections,
    partitioned,
    parts_of,
    with_moments,
)
from kdissect.spark.sinks import TaskFile
from kdissect.spark.storage import is_remote, join, without_query
from kdissect.spark.target_files import Staged, TargetError
from kdissect.spark.targets import Target
from kdissect.spark.wide import table_in
from kdissect.spark.writing import can_write, is_there, remove

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAGED = "_staged"
"""How names of folders begin in which files are on their way."""
Units = Callable[[int | None], tuple[Unit | BatchUnit, ...]]
_CONNECTIONS, _EXCHANGES = "_connections", "_exchanges"
"""What other tables need, where it is not written as it is."""


class BatchOptions(NamedTuple):
    """What is written, and how."""

    tables: tuple[str, ...]
    by: tuple[str, ...]
    """What they are partitioned by."""
    settings: TableSettings
    merges: bool = False
    """Whether the copies of an exchange become one row."""
    finds: bool = False
    """Whether there is a table of findings, which change from batch to batch."""

    @property
    def wanted(self) -> tuple[WantedTable, ...]:
        """What the tasks make."""
        settings = self.settings._replace(places=needs_places(self.by))
        found = [
            WantedTable(name, settings._replace(table=name), has_moments=not self.needs_spark(name))
            for name in self.tables
        ]
        if settings.places and "faults" in self.tables:
            whole = settings._replace(table="connections", filter=None)
            found.append(WantedTable(_CONNECTIONS, whole, has_moments=False))
        if self.merges and not {"records", "batches"}.isdisjoint(self.tables):
            bare = settings._replace(table="exchanges", payload="none")
            found.append(WantedTable(_EXCHANGES, bare, has_moments=False))
        if self.finds:
            own = self.settings._replace(stats=FINDING_CHANGES.name)
            found.append(WantedTable(FINDING_CHANGES.name, own))
        return tuple(found)

    @property
    def written(self) -> tuple[str, ...]:
        """The tables that a target gets."""
        return (*self.tables, FINDING_CHANGES.name) if self.finds else self.tables

    def needs_spark(self, name: str) -> bool:
        """Whether all rows of a table must be seen together."""
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
    """The folder with their files; None where Spark keeps them."""
    wide: DataFrame | None
    files: tuple[TaskFile, ...] = ()
    """The files that have the rows of the tables."""

    def write(self, overwrite: bool, run: int | None = None, origin: str | None = None) -> None:
        """Write them, and let go of what the tasks made.

        :param run: the number of the run whose rows these are; None where tables are made whole.
        :param origin: what tables that are made whole keep of their captures.
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
        """How many rows all tables have together; None where copies of an exchange become one row."""
        if self.asked.merges:
            return None
        return sum(map(self.rows_of, self.asked.tables))

    def rows_of(self, name: str) -> int:
        """How many rows the tasks made of a table."""
        return sum(each.rows.get(name, 0) for each in self.outcomes)

    @property
    def damage(self) -> list[Fault]:
        """What is wrong with files, as each task met it."""
        return [fault for each in self.outcomes for fault in each.damage]

    @property
    def tally(self) -> RunCounts:
        """What was counted, if it was asked for."""
        return reduce(RunCounts.plus, (each.tally for each in self.outcomes), RunCounts())

    @property
    def cpu_seconds(self) -> float:
        """Processor time of the tasks; that of Spark itself is not among it."""
        return sum(each.cpu_seconds for each in self.outcomes)

    def close(self) -> None:
        """Let go of what the tasks made: remove their files, or have Spark forget them."""
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
        wanted = self._wanted(name)
        if self.wide is not None or not wanted.has_moments:
            frame = with_moments(frame, epochs(wanted.table))
        frame, parts = partitioned(frame, name, by)
        self.target.write(frame, name, parts, run, overwrite, origin)

    def _wanted(self, key: str) -> WantedTable:
        return next(each for each in self.asked.wanted if each.key == key)

    def _staged(self, folder: str, key: str) -> Staged:
        wanted = self._wanted(key)
        files = tuple(file.path for file in self.files if file.table == key)
        return Staged(join(folder, key), files, wanted.schema)

    def _frame(self, key: str) -> DataFrame:
        if self.wide is not None:
            return table_in(self.wide, key)
        assert self.folder is not None
        wanted = self._wanted(key)
        schema = moments_ddl(wanted.table, wanted.epochs)
        return self.spark.read.schema(schema).parquet(
            *map(without_query, self._staged(self.folder, key).files)
        )


def make_tables(
    spark: SparkSession, plan: Plan, asked: BatchOptions, target: Target, tallies: bool
) -> MadeTables:
    """Have the tasks make tables of whole captures: all jobs have run when this returns.

    :param tallies: whether what is wrong with captures is counted.
    :returns: the tables, which nobody reads yet: :meth:`MadeTables.write` hands them to the target.
    :raises TargetError: the driver does not see what workers write.
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
    """As :func:`make_tables`, of what is new. What a batch that died had made goes.

    :param units: gives the tasks for so many cores.
    :param owner: the folder of states: others may write into the same warehouse.
    :param joins: whether small files of tasks become one.
    :raises TargetError: the driver does not see what workers write.
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

    :param units: gives what the tasks do, by how many of them can run at a time; None where none can keep
        events for others.
    :param name: of the folder for their files, where target, driver and workers have one.
    :raises TargetError: as for :func:`make_tables`.
    """
    folder = _folder(spark, target, name, asked.settings)
    cores = None if folder is None else spark.sparkContext.defaultParallelism
    job = Job(units(cores), asked.wanted, asked.settings, tallies)
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
    """Whether a path without a file system's name means the same to the driver, the workers and Spark."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return False
    if is_local(spark):
        return True
    usual = spark.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS")
    return str(usual).startswith("file:")
