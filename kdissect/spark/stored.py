"""Tables that were written → DataFrames. Files that differ in their columns are one table, by name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kdissect.present.statistics import STATISTICS
from kdissect.spark.storage import counts, is_remote
from kdissect.spark.tables import TABLES, ddl
from kdissect.spark.targets import Delta, Folder, Iceberg, needs, target_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STATISTICS = "stats"
"""The folder of statistics, in that of the tables."""


def stored(spark: SparkSession, path: str, schema: str) -> DataFrame:
    """A table of Parquet or Delta.

    :param schema: what it has where nothing was written: of a table without rows, a partition has no file.
    :raises NotInstalledError: it is of Delta, whose library is not installed.
    """
    paths = [path]
    if os.path.isdir(f"{path}/_delta_log"):
        needs("deltalake", "delta")
        parent, _, name = path.rpartition("/")
        paths = Delta(parent).files(name)  # others in its folder do not count
    elif not is_remote(path) and not any(
        name.endswith(".parquet") for _, _, names in os.walk(path) for name in names
    ):
        paths = []
    return _frame(spark, paths, path, schema)


def all_stored(spark: SparkSession, place: str) -> dict[str, DataFrame]:
    """All tables of a place, by name; those of statistics begin with ``stats_``.

    :param place: a folder of Parquet or Delta, or as ``--to`` names it.
    :raises FileNotFoundError: there is no such folder.
    :raises NotInstalledError: a library is not installed that the tables need.
    :raises TargetError: a catalog does not answer.
    :raises ValueError: tables of a catalog of Spark are there already, under their names.
    """
    if place.startswith(("delta:", "parquet:", "iceberg:", "table:")):
        target = target_of(place)
        if isinstance(target, Iceberg):
            return {
                name: _frame(spark, target.files(name), None, ddl(TABLES[name])) for name in target.names()
            }
        if not isinstance(target, Delta | Folder):
            raise ValueError(f"{place}: Spark knows these tables: spark.table('{target.where}.exchanges')")
        place = target.where
    out = {}
    for folder, prefix, known in ((place, "", TABLES), (f"{place}/{_STATISTICS}", "stats_", STATISTICS)):
        names = sorted(os.listdir(folder)) if not prefix or os.path.isdir(folder) else []
        for name in names:
            path = f"{folder}/{name}"
            if counts(name) and os.path.isdir(path) and (prefix or name in known):
                schema = ddl(known[name]) if name in known else ""
                out[prefix + name] = stored(spark, path, schema)
    return out


def _frame(spark: SparkSession, paths: list[str], base: str | None, schema: str) -> DataFrame:
    """:param base: the folder from which on names of folders tell what the table is partitioned by."""
    if not paths:
        return spark.createDataFrame([], schema)
    reader = spark.read.option("mergeSchema", "true")
    if base is not None:
        reader = reader.option("basePath", base)
    return reader.parquet(*paths)
