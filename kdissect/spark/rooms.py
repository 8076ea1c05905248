"""Folders that the driver shares with its workers, for what is there only while a job runs."""

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
    """Whether its workers are on this machine, and have its folders."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return False
    return str(spark.sparkContext.master).startswith("local")


def spare_folder(spark: SparkSession, settings: TableSettings) -> str | None:
    """A new folder, to be removed at the end; None where none is known that workers share.

    On this machine it is where Spark puts its own files. On a cluster it is in the folder for progress, if
    there is one.
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
    """The same, removed here."""
    folder = spare_folder(spark, settings)
    try:
        yield folder
    finally:
        if folder is not None:
            remove(folder)
