"""Tables that were written → DataFrames. Files with different columns are one table; columns are matched by
name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from kdissect.present.columns import Table
from kdissect.present.statistics import STATISTICS
from kdissect.spark.changes import FINDING_CHANGES
from kdissect.spark.provenance import STATISTICS as STATISTICS_FOLDER
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
    RUN,
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
    :raises TargetError: the table is Delta, and cannot be read here; or kdissect did not make it.
    :raises CaptureError: its folder cannot be listed.
    """
    if is_folder(join(path, "_delta_log")):
        return _delta_frame(spark, path, table)
    has_files = any(name.endswith(".parquet") for name in map(without_query, files_below(path)))
    return _frame(spark, [path] if has_files else [], path, table)


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
            found = self._target.stored(name)
            return _frame(spark, found.files, None, TABLES[name], found.schema)
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


def _delta_frame(spark: SparkSession, path: str, table: Table | None) -> DataFrame:
    """A Delta table: only the files that its log names.

    kdissect writes a run's files into a folder of their own. Other programs that rewrite files, as OPTIMIZE
    does, write them above such folders. If Spark reads both at once, it silently leaves out the files above.

    :raises NotInstalledError: the library is not installed.
    :raises TargetError: it cannot be read, or kdissect did not make it.
    """
    from pyspark.sql import DataFrame

    needs("deltalake", "delta")
    parent, _, name = path.rpartition("/")
    found = Delta(parent).stored(name)
    layouts: dict[tuple[str, ...], list[str]] = {}
    for file in found.files:
        layouts.setdefault(_partitions_in(file), []).append(file)
    frames = []
    for names, files in layouts.items():
        if not set(found.partitions) <= set(names):
            raise TargetError(
                f"{path}: the partitions of {files[0]} are not in the names of its folders; "
                "read this table with Spark's own package for Delta"
            )
        frames.append(_frame(spark, files, path if names else None, table, found.schema).drop(RUN))
    return reduce(DataFrame.unionByName, frames) if frames else _frame(spark, [], path, table, found.schema)


def _partitions_in(path: str) -> tuple[str, ...]:
    """The names of the partitions in the folders of a file."""
    folders = reversed(path.split("/")[:-1])
    return tuple(folder.partition("=")[0] for folder in takewhile(lambda folder: "=" in folder, folders))


def _frame(
    spark: SparkSession, paths: Sequence[str], base: str | None, table: Table | None, schema: Any = None
) -> DataFrame:
    """The table of Parquet files.

    :param base: the folder below which names of folders are partitions.
    :param schema: the columns as Arrow has them, if they are known. Otherwise the files tell them.
    :raises TargetError: the files are not this table.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    if schema is not None:
        columns: Any = from_arrow_schema(schema)
    else:
        columns = None if paths else "" if table is None else ddl(table)
    if not paths:
        return spark.createDataFrame([], columns)
    reader = spark.read.option("mergeSchema", "true") if columns is None else spark.read.schema(columns)
    if base is not None:
        reader = reader.option("basePath", without_query(base))
    frame = reader.parquet(*map(without_query, paths))
    if table is not None and (first := table.columns[0].name) not in frame.columns:
        where = paths[0] if base is None else base
        raise TargetError(f"{where}: kdissect did not make this table: it has no column {first}")
    return frame
