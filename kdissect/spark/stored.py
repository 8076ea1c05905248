"""Tables that were written → DataFrames. Files with different columns are one table; columns are matched by
name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdissect.present.columns import Table
from kdissect.present.statistics import STATISTICS
from kdissect.spark.changes import FINDING_CHANGES
from kdissect.spark.origins import STATISTICS as STATISTICS_FOLDER
from kdissect.spark.storage import (
    files_below,
    folders_in,
    is_folder,
    is_remote,
    join,
    refuse_no_folder,
    without_query,
)
from kdissect.spark.tables import TABLES, ddl
from kdissect.spark.target_files import TargetError
from kdissect.spark.targets import (
    KINDS,
    Catalog,
    Delta,
    Iceberg,
    ParquetFolder,
    needs,
    target_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def stored(spark: SparkSession, path: str, table: Table | None) -> DataFrame:
    """A table of Parquet or Delta.

    :param table: the table, if it is known. A partitioned table without rows has no files.
    :raises NotInstalledError: the table is Delta, and its library is not installed.
    :raises TargetError: the table is Delta, and cannot be read as such; or kdissect did not make it.
    :raises CaptureError: its folder cannot be listed.
    """
    paths = [path]
    if is_folder(join(path, "_delta_log")):
        needs("deltalake", "delta")
        parent, _, name = path.rpartition("/")
        paths = Delta(parent).files(name)  # other files in its folder do not count
    elif not any(name.endswith(".parquet") for name in map(without_query, files_below(path))):
        paths = []
    return _frame(spark, paths, path, table)


class StoredTables:
    """The place of tables of captures.

    :param text: a folder of Parquet or Delta, or a place as in ``--to``.
    :raises NotInstalledError: a library for the tables is not installed.
    :raises ValueError: no place has such a name.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._target = target_of(text) if is_named(text) else ParquetFolder(text)

    @property
    def folder(self) -> str | None:
        """The folder of the tables; None if a catalog has them."""
        return self._target.where if isinstance(self._target, Delta | ParquetFolder) else None

    @property
    def is_seen(self) -> bool:
        """Whether kdissect can find the tables without Spark."""
        return isinstance(self._target, Iceberg) or (self.folder is not None and not is_remote(self.folder))

    def has(self, name: str) -> bool:
        """Whether a table exists. If only Spark can find out, it does so when it reads the table.

        :raises TargetError: a catalog does not answer.
        """
        if isinstance(self._target, Iceberg):
            return self._target.has(name)
        return not self.is_seen or is_folder(join(self.folder or "", name))

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        """One of the tables.

        :raises NotInstalledError: as :func:`stored`.
        :raises CaptureError: as :func:`stored`.
        :raises TargetError: as :func:`stored`; or a catalog does not have it, or does not answer.
        """
        if isinstance(self._target, Iceberg):
            return _frame(spark, self._target.files(name), None, TABLES[name])
        if isinstance(self._target, Catalog):
            full = f"{self._target.where}.{name}"
            if not spark.catalog.tableExists(full):
                raise TargetError(f"{self.text}: has no table {name}")
            return spark.table(full)
        return stored(spark, join(self.folder or "", name), TABLES[name])


def is_named(place: str) -> bool:
    """Whether a place is named as in ``--to``, and is no folder."""
    return place.startswith(tuple(f"{kind}:" for kind in KINDS))


def all_stored(spark: SparkSession, place: str) -> dict[str, DataFrame]:
    """All tables of a place, by name; those of statistics begin with ``stats_``.

    :param place: as for :class:`StoredTables`.
    :raises CaptureError: a folder cannot be listed, or an object store does not answer.
    :raises FileNotFoundError: there is no such folder.
    :raises NotADirectoryError: it is a file.
    :raises NotInstalledError: a library for the tables is not installed.
    :raises TargetError: a catalog does not answer.
    :raises ValueError: the place is a catalog of Spark, whose tables are already known by their names.
    """
    tables = StoredTables(place)
    if place.startswith("table:"):
        raise ValueError(f"{place}: Spark knows these tables: spark.table('{place[6:]}.exchanges')")
    if tables.folder is None:
        return {name: tables.frame(spark, name) for name in TABLES if tables.has(name)}
    refuse_no_folder(tables.folder, place)
    out = {}
    inside = join(tables.folder, STATISTICS_FOLDER)
    captured = {**TABLES, FINDING_CHANGES.name: FINDING_CHANGES}
    for folder, prefix, known in ((tables.folder, "", captured), (inside, "stats_", STATISTICS)):
        for name in folders_in(folder) if not prefix or is_folder(folder) else ():
            if prefix or name in known:
                out[prefix + name] = stored(spark, join(folder, name), known.get(name))
    return out


def _frame(spark: SparkSession, paths: list[str], base: str | None, table: Table | None) -> DataFrame:
    """The table of Parquet files.

    :param base: the folder below which names of folders are partitions.
    :raises TargetError: the files are not this table.
    """
    if not paths:
        return spark.createDataFrame([], "" if table is None else ddl(table))
    reader = spark.read.option("mergeSchema", "true")
    if base is not None:
        reader = reader.option("basePath", without_query(base))
    frame = reader.parquet(*map(without_query, paths))
    if table is not None and (first := table.columns[0].name) not in frame.columns:
        where = paths[0] if base is None else base
        raise TargetError(f"{where}: kdissect did not make this table: it has no column {first}")
    return frame
