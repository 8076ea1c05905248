"""Folders that the driver shares with its workers, for files that exist only while a job runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kdissect.spark.settings import TableSettings
from kdissect.spark.writing import remove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_local(spark: SparkSession) -> bool:
    """Whether Spark's workers are on this machine, with the same folders."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return False
    return str(spark.sparkContext.master).startswith("local")


def spare_folder(spark: SparkSession, settings: TableSettings) -> str | None:
    """A new folder, which the caller removes; None if no folder is known that workers share.

    On this machine it is in the folder for Spark's own files. On a cluster it is in the folder for progress,
    if there is one.
    """
    if is_local(spark):
        parent = spark.sparkContext.getConf().get("spark.local.dir")
    elif settings.progress is not None:
        parent = settings.progress
    else:
        return None
    first = None if parent is None else parent.partition(",")[0]
    return tempfile.mkdtemp(prefix="kdissect-", dir=first)


@contextmanager
def room(spark: SparkSession, settings: TableSettings) -> Iterator[str | None]:
    """A new folder of :func:`spare_folder`, which is removed at the end."""
    folder = spare_folder(spark, settings)
    try:
        yield folder
    finally:
        if folder is not None:
            remove(folder)
