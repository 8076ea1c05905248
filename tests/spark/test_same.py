"""Spark gives the rows of ``kdissect read``: every table, however many tasks share the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import kdissect.spark
from tests.spark.same import CAPTURES, TABLES, read_rows, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = ("basic-kafka43.pcapng", "consumer-group-kip848.pcapng", "loss.pcapng")


@pytest.mark.parametrize("tasks", [1, 2, 7])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("strategy", ["replicas", "buckets", "shuffle"])
def test_exchanges_are_those_of_read(spark: SparkSession, name: str, tasks: int, strategy: str) -> None:
    path = CAPTURES / name
    frame = kdissect.spark.table(spark, "exchanges", path, strategy=strategy, tasks=tasks, split_bytes=20_000)
    assert spark_rows(frame) == read_rows("exchanges", [path])


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("strategy", ["replicas", "buckets", "shuffle"])
def test_the_other_tables_are_those_of_read(spark: SparkSession, table: str, strategy: str) -> None:
    path = CAPTURES / "loss.pcapng"
    frame = kdissect.spark.table(spark, table, path, strategy=strategy, tasks=2, split_bytes=20_000)
    assert spark_rows(frame) == read_rows(table, [path])
